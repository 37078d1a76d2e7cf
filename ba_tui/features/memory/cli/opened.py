"""The memory of a folder for one command, opened and closed; entries by the beginning of their id."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from ba_tui.cli.config import folder_of, load, say
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.ports.memory import Entry, Scope
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.setup import StoreSetup, setup_of
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.tools.names import proposed_names, with_shared_name
from ba_tui.features.memory.tools.session_memory import SessionMemory
from ba_tui.features.memory.tools.storing import Owner, Storing
from ba_tui.features.memory.tools.waiting import Waiting
from ba_tui.resources import folder_slug, places, project_root

T = TypeVar("T")
PAGE = 5_000
"""Entries that are read at a time where all of them count."""
NAMED = 3
"""Entries that are named where an id is ambiguous."""
SEE = "`ba memory list` shows all ids."


@frozen
class OpenedMemory:
    """``store``: where entries of ``project`` and global ones lie; ``memory``: the same as the app sees it.
    ``embedder`` is what finds entries by meaning."""

    project: str
    embedder: str
    store: MemoryStore
    memory: SessionMemory


def with_memory(cwd: Path | None, work: Callable[[OpenedMemory], Awaitable[T]]) -> T:
    """Do ``work`` with the memory of the project that ``cwd`` belongs to."""
    root = project_root(folder_of(cwd))
    settings, shared = with_shared_name(load(cwd), places(), root)
    for notice in proposed_names(shared):
        say(f"{notice.text} {notice.hint}")
    return _run(folder_slug(root), setup_of(settings.memory, folder_slug(root), _variable), work)


def with_each_memory(work: Callable[[OpenedMemory], Awaitable[T]]) -> list[T]:
    """Do ``work`` with the memory of each project, one after the other. They are searched by words."""
    folder = places().memory / "projects"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [_run(name, StoreSetup(embedder="off"), work) for name in names]


def _run(project: str, setup: StoreSetup, work: Callable[[OpenedMemory], Awaitable[T]]) -> T:
    # What a command has to say of the search, it says itself.
    logging.getLogger("ba_tui.features.memory.engine").addHandler(logging.NullHandler())

    async def run() -> T:
        store = MemoryStore(places().memory, project, setup)
        storing = Storing(lambda: store, lambda: True, Owner(project))
        try:
            return await work(
                OpenedMemory(project, setup.embedder, store, SessionMemory(storing, Waiting(storing), tuple))
            )
        finally:
            await store.close()

    return run_loop(run())


async def every_entry(opened: OpenedMemory, scope: Scope | None = None) -> AsyncIterator[Entry]:
    """All entries, pinned ones first, then newest first."""
    offset = 0
    while page := await opened.store.listed(scope, offset, PAGE):
        for entry in page:
            yield entry
        offset += len(page)


async def entry_of(opened: OpenedMemory, id: str) -> Entry:
    """The entry whose id is or begins with ``id``.

    Raises:
        UsageError: there is none, or more than one.
    """
    if found := (await opened.store.get([id])).get(id):
        return found
    fitting = [entry async for entry in every_entry(opened) if id and entry.id.startswith(id)]
    if not fitting:
        raise UsageError(f"There is no memory {id!r} in this project or among the global ones.", SEE)
    if len(fitting) > 1:
        named = ", ".join(f"{each.id} “{one_line(each.text, 30)}”" for each in fitting[:NAMED])
        more = f" and {len(fitting) - NAMED:,} more" if len(fitting) > NAMED else ""
        raise UsageError(f"{id!r} is the beginning of {len(fitting):,} ids: {named}{more}.", "Write more of the id.")
    return fitting[0]


def _variable(name: str) -> str:
    return os.environ.get(name, "")
