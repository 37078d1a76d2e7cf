"""The store of memory as one process uses it: the project's shelf and the global one, written and searched.

A shelf is an append-only log with the indexes made from it (``shelf``). Vectors live in a helper process
(``helper``); without it, entries are found by words in this process, else the newest ones are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ba_tui.core.ports.memory import Entry, MemoryState, Scope
from ba_tui.memory.recall import Ask, Found
from ba_tui.memory.setup import StoreSetup

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""What is done, and all there is to do; in entries or bytes."""


class MemoryStore:
    """Entries of ``project`` (a slug) and global ones, below ``folder`` (``Places.memory``).

    Making one touches no disk and starts nothing. Methods raise StorageError when nothing could be written and
    UsageError for a text that cannot be kept; both are one line for people. Use it on one event loop.
    """

    def __init__(self, folder: Path, project: str, setup: StoreSetup | None = None) -> None:
        """``catalog`` answers further questions: ``same(text)``, ``pinned()``, ``history(id)``."""
        ...

    async def add(self, entries: Sequence[Entry]) -> None:
        """Store new entries: global ones have no ``project``. When it returns they are in the log.

        An id that is there already is ignored. Make ids with ``entries.new_id(at)``. An entry with ``supersedes``
        marks that entry as superseded.
        """
        ...

    async def change(self, id: str, **fields: Any) -> Entry:
        """Set fields of an entry; returns it as it is then. ``project=""`` makes it global.

        Raises UsageError when there is none.
        """
        ...

    async def forget(self, ids: Collection[str]) -> int:
        """Remove entries from the logs, the indexes and the vectors, and verify it by a query; how many there were."""
        ...

    async def mark_used(self, ids: Collection[str], at: float) -> None:
        """Note that these entries went with a request."""
        ...

    async def search(self, ask: Ask) -> Found:
        """What memory knows of a request, by vectors when the helper is ready, else by words, else the newest.

        Never raises. Waits for a helper that must start first only when ``ask.explicit``; otherwise it starts it in the
        background and says in ``Found.why`` that this search went by words.
        """
        ...

    async def get(self, ids: Collection[str]) -> dict[str, Entry]:
        """The entries that there are, by id."""
        ...

    async def listed(self, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> list[Entry]:
        """Entries, newest first, pinned ones before all others, superseded ones too."""
        ...

    async def slot(self, subject: str, attribute: str, scope: Scope = "project") -> Entry | None:
        """The newest current entry on this subject and attribute; upper case and spaces do not matter."""
        ...

    async def state(self) -> MemoryState:
        """Counts, bytes on the disk, and why it is not searched by vectors when it is not."""
        ...

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Make all indexes anew from the logs. Kept vectors are used again."""
        ...

    async def export(self, path: Path) -> int:
        """Write all entries as JSON lines, those of a later ba included; how many there are."""
        ...

    async def import_(self, path: Path) -> Mapping[str, int]:
        """Add the entries of an exported file: how many were ``new``, ``known`` and ``bad``.

        Entries of any project become this project's.
        """
        ...

    def warm(self) -> None:
        """Start the helper in the background."""
        ...

    async def sync(self) -> None:
        """Wait until what was stored is on the disk: at the end of a turn. Also removes what expired."""
        ...

    async def close(self) -> None:
        """End the helper."""
        ...
