"""Work that is done now and then while ba is open: old results are deleted, checkpoints are pruned."""

from __future__ import annotations

import asyncio

from ba_tui.resources import Places


async def upkeep(where: Places) -> None:
    """Clean and prune now and then, until cancelled."""
    from ba_tui.sessions.checkpoints.prune import keep_pruned  # noqa: PLC0415
    from ba_tui.sessions.results.cleaning import keep_clean  # noqa: PLC0415 - nothing is cleaned at the start

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_clean(where.sessions))
        group.create_task(keep_pruned(where.checkpoints, where.sessions))
