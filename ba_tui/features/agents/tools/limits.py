"""How many agents work at once, and when a type of agent that only fails is not started again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ba_tui.core.errors import UsageError
from ba_tui.core.spawning import ChildResult

INSTANT_FAILURES = 2
"""Agents of one type that may fail before they said anything; the next one is refused."""
MOST_BACKGROUND = 32
"""Agents in the background of one session that have not ended; the next one is refused. Each keeps its conversation in
memory, also while it waits for a place."""


class Places:
    """Places for agents that work; who comes when all are taken waits in line.

    An agent gives its place away while it waits for agents of its own: so a chain of them can't wait for itself.
    """

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self._begun: set[str] = set()
        self._holding: set[str] = set()
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def taken(self, agent: str) -> AsyncGenerator[None]:
        """A place for ``agent``, as soon as there is one."""
        await self._free.acquire()
        self._begun.add(agent)
        self._holding.add(agent)
        try:
            yield
        finally:
            self._begun.discard(agent)
            self._give(agent)

    @asynccontextmanager
    async def lent(self, agent: str) -> AsyncGenerator[None]:
        """The place of ``agent`` is free for others while it waits for agents below it."""
        self._waiting[agent] += 1
        self._give(agent)
        try:
            yield
        finally:
            self._waiting[agent] -= 1
        # Not when it is cancelled: it needs no place any more, and must not wait for one.
        if not self._waiting[agent] and agent in self._begun and agent not in self._holding:
            await self._free.acquire()
            self._holding.add(agent)

    def _give(self, agent: str) -> None:
        if agent in self._holding:
            self._holding.discard(agent)
            self._free.release()


class Failures:
    """The failures of one agent's children in one turn, by type. Made by ``Branch.state``."""

    def __init__(self) -> None:
        self._row: dict[str, list[str]] = {}

    def check(self, kind: str) -> None:
        """Raise UsageError when the last agents of this type failed at once."""
        failed = self._row.get(kind, [])
        if len(failed) >= INSTANT_FAILURES:
            message = f"{kind} is not started again: it failed at once {len(failed)} times. {failed[-1]}"
            raise UsageError(message, "Do the work yourself, or tell the person.")

    def note(self, kind: str, result: ChildResult) -> None:
        instant = result.status == "error" and not result.message.blocks
        if instant:
            why = result.error.message if result.error else ""
            self._row.setdefault(kind, []).append(why)
        else:
            self._row.pop(kind, None)
