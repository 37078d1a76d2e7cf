"""Questions to the shelves beside a search: what says the same, what is pinned, what an entry replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.shelf import Shelf

_LONGEST = 100
"""Entries of a history: a chain that leads back to itself must end."""


class Catalog:
    """``fresh`` brings the indexes of the ``shelves`` up to date."""

    def __init__(self, shelves: Sequence[Shelf], fresh: Callable[[], Awaitable[None]]) -> None:
        self._shelves = shelves
        self._fresh = fresh

    async def same(self, text: str) -> list[Entry]:
        """Current entries with the words of ``text`` in the same order, oldest first."""
        return await self._each(lambda lookup: lookup.printed(text))

    async def pinned(self) -> list[Entry]:
        """Pinned entries that nothing supersedes, oldest first."""
        return await self._each(lambda lookup: lookup.pinned())

    async def history(self, id: str) -> list[Entry]:
        """An entry and those it superseded, newest first."""
        chain: list[Entry] = []
        while id and len(chain) < _LONGEST:
            found = await self._each(lambda lookup, id=id: list(lookup.entries([id]).values()))
            if not found:
                break
            chain.append(found[0])
            id = found[0].supersedes
        return chain

    async def _each(self, question: Callable[[Lookup], list[Entry]]) -> list[Entry]:
        await self._fresh()
        found: list[Entry] = []
        for shelf in self._shelves:
            if shelf.exists:
                found += await asyncio.to_thread(question, shelf.lookup)
        return found
