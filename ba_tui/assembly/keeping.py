"""Checkpoints of one conversation: the store of its project, the guard that takes them, their upkeep."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ba_tui.resources import Places, folder_slug, project_root
from ba_tui.sessions.checkpoints import SessionCheckpoints
from ba_tui.sessions.cleaning import keep_clean
from ba_tui.sessions.prune import keep_pruned
from ba_tui.sessions.shadow import Store
from ba_tui.tools.guards.checkpoint import Checkpointing


def checkpoints_for(where: Places, cwd: Path, session: str) -> SessionCheckpoints:
    """Those of ``session`` in the project of ``cwd``. Touches no disk but to find the project."""
    root = project_root(cwd)
    ours = (where.home,) if where.home else (where.data, where.cache, where.state)
    return SessionCheckpoints(Store(where.checkpoints / folder_slug(root), root, ours), session)


def checkpointing(checkpoints: SessionCheckpoints) -> Checkpointing:
    return Checkpointing(checkpoints.take, checkpoints.settle)


async def upkeep(where: Places) -> None:
    """Clean and prune now and then, until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(keep_clean(where.sessions))
        group.create_task(keep_pruned(where.checkpoints, where.sessions))
