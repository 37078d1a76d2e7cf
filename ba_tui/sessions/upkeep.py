"""Work that is done now and then: old results are deleted, checkpoints are pruned. At each start, temporary folders
are removed that killed processes left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

from ba_tui.processes.scratch import clear_scratch
from ba_tui.resources import Places
from ba_tui.settings.sections.sessions import CheckpointSettings

HOUR = 3600.0
MB = 1_000_000
STAMP = "cleaned"
"""A file in the state folder; its time says when a run that nobody attends cleaned last."""
PATIENCE = 2.0
"""Seconds that such a run may clean; the next one goes on."""


async def upkeep(where: Places, kept: CheckpointSettings) -> None:
    """Clean and prune now and then, until cancelled."""
    from ba_tui.sessions.checkpoints.prune import keep_pruned  # noqa: PLC0415
    from ba_tui.sessions.results.cleaning import keep_clean  # noqa: PLC0415 - nothing is cleaned at the start

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(clear_scratch))
        group.create_task(keep_clean(where.sessions))
        group.create_task(keep_pruned(where.checkpoints, where.sessions, int(kept.max_total_mb * MB)))


def tidy(where: Places, kept: CheckpointSettings) -> bool:
    """Clean and prune once for at most ``PATIENCE`` seconds; False when that was done within the last hour. Blocks."""
    clear_scratch()
    stamp = where.state / STAMP
    with contextlib.suppress(OSError):
        if time.time() - stamp.stat().st_mtime < HOUR:
            return False
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp.touch()
    except OSError:
        return False
    from ba_tui.sessions.checkpoints.prune import prune  # noqa: PLC0415 - once an hour
    from ba_tui.sessions.results.cleaning import StorageLimits, clean  # noqa: PLC0415

    stop = threading.Event()
    timer = threading.Timer(PATIENCE, stop.set)
    timer.daemon = True
    timer.start()
    try:
        clean(where.sessions, StorageLimits(), stop)
        prune(where.checkpoints, where.sessions, int(kept.max_total_mb * MB), stop)
    finally:
        timer.cancel()
    return True
