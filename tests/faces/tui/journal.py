"""A journal in memory."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import SessionNotSaved
from ba_tui.core.events import TRANSIENT, Event, TurnStarted


class Memory:
    """A journal without a file."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self.events = list(events)
        self.closed = False
        self.full: SessionNotSaved | None = None
        """Why nothing more can be kept; what comes waits."""
        self._waiting: list[Event] = []

    def append(self, event: Event) -> None:
        if not isinstance(event, TRANSIENT):
            self._waiting.append(event)
            self.sync()

    def read(self) -> list[Event]:
        return list(self.events)

    def tail(self, limit: int) -> list[Event]:
        first = max(0, len(self.events) - limit)
        starts = [index for index, event in enumerate(self.events) if isinstance(event, TurnStarted) and index >= first]
        return self.events[starts[0] :] if starts else []

    def later(self, place: int) -> tuple[list[Event], int]:
        return self.events[place:], len(self.events)

    def sync(self) -> None:
        if self.full and self._waiting:
            raise self.full
        self.events += self._waiting
        self._waiting.clear()

    def close(self) -> None:
        self.closed = True
