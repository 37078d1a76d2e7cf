"""Hands the events of a conversation to watchers: any number of them, beside the face that writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Generator, Sequence

from ba_tui.core.events import TRANSIENT, Event

LAG = 10_000
"""Events that wait for a watcher; beyond that it misses deltas and progress, but nothing that the journal keeps."""
PASSING = 2_000
"""Deltas and lines of progress since the newest event of the journal that are kept for a watcher who joins late."""


class Watcher:
    """One watcher's events that wait to be read; ``passing`` came before it joined and stands in no journal."""

    def __init__(self, passing: Sequence[Event]) -> None:
        self._passing = passing
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def hear(self, event: Event) -> None:
        if len(self._waiting) < LAG or not isinstance(event, TRANSIENT):
            self._waiting.append(event)
            self._arrived.set()

    def close(self) -> None:
        self._closed = True
        self._arrived.set()

    async def after(self, replay: Sequence[Event]) -> AsyncIterator[Event]:
        """``replay``, which was read from the journal since the watcher joined, then what is not in it."""
        # An event and its copy from the journal are equal. Both carry the same time, which finds the copy at once.
        copies = {event.at: event for event in replay[-len(self._waiting) :]} if self._waiting else {}
        known = [place for place, event in enumerate(self._waiting, 1) if copies.get(event.at) == event]
        for _ in range(known[-1] if known else 0):
            self._waiting.popleft()
        for event in (*replay, *(() if known else self._passing)):
            yield event
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()


class Followers:
    """The watchers of one conversation."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._passing: deque[Event] = deque(maxlen=PASSING)

    @contextlib.contextmanager
    def joined(self) -> Generator[Watcher]:
        watcher = Watcher(tuple(self._passing))
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def share(self, event: Event) -> None:
        """A core.turn.Listener."""
        if isinstance(event, TRANSIENT):
            self._passing.append(event)
        else:
            self._passing.clear()
        for watcher in self._watchers:
            watcher.hear(event)

    def close(self) -> None:
        """Watchers read what waits, then end."""
        for watcher in self._watchers:
            watcher.close()
