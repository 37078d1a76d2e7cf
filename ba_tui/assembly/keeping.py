"""Checkpoints of one conversation: the store of its project, the guard that takes them, their upkeep.

What a checkpoint is stands in sessions/checkpoints.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.rewinding import course
from ba_tui.resources import Places, folder_slug, places, project_root
from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints
from ba_tui.sessions.checkpoints.shadow import ShadowLimits, Store
from ba_tui.sessions.journal import JournalFile
from ba_tui.tools.guards.checkpoint import Checkpointing

if TYPE_CHECKING:
    from ba_tui.settings import Settings

MB = 1_000_000


def checkpoints_for(where: Places, cwd: Path, session: str, settings: Settings) -> SessionCheckpoints:
    """Those of ``session`` in the project of ``cwd``. Touches no disk but to find the project."""
    root = project_root(cwd)
    ours = (where.home,) if where.home else (where.data, where.cache, where.state)
    limits = ShadowLimits(largest=int(settings.checkpoints.max_file_mb * MB))
    return SessionCheckpoints(Store(where.checkpoints / folder_slug(root), root, ours, limits), session)


def checkpointing(checkpoints: SessionCheckpoints) -> Checkpointing:
    return Checkpointing(checkpoints.take, checkpoints.settle)


async def upkeep(where: Places) -> None:
    """Clean and prune now and then, until cancelled."""
    from ba_tui.sessions.checkpoints.prune import keep_pruned  # noqa: PLC0415
    from ba_tui.sessions.results.cleaning import keep_clean  # noqa: PLC0415 - nothing is cleaned at the start

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_clean(where.sessions))
        group.create_task(keep_pruned(where.checkpoints, where.sessions))


def session_patch(info: SessionInfo, *, stat: bool = False) -> bytes:
    """What changed in files since a session began, as a patch or as a line a file; empty when it changed none.

    Raises:
        StorageError: the session or its checkpoints can't be read.
    """
    where = places()
    folder = where.sessions / folder_slug(info.cwd) / info.id
    first = course(JournalFile.peek(folder, running=bool(info.locked_by)).read()).first
    if not first:
        return b""
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415 - no conversation needs them for this
    from ba_tui.settings import load_settings  # noqa: PLC0415

    root = project_root(info.cwd)
    settings = load_settings({}, where, root, trusted=Trust(where).trusted(root)).settings
    return checkpoints_for(where, info.cwd, info.id, settings).patch(first, stat=stat)
