"""The thread in which the evidence of a session grows and answers are judged, one piece of work after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from ba_tui.core.events import Event

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.grounding.observing import Observing

log = logging.getLogger(__name__)
T = TypeVar("T")


class EvidenceThread:
    """``stored`` reads a stored result. What judges figures is loaded with the first piece of work."""

    def __init__(self, stored: Callable[[str], str]) -> None:
        self._stored = stored
        self._thread = ThreadPoolExecutor(1, "figures")
        self._observing: Observing | None = None

    def add(self, events: Sequence[Event]) -> None:
        """Index ``events`` behind what waits. Returns at once."""
        self._thread.submit(self._index, events)

    async def run(self, work: Callable[[Observing], T]) -> T:
        """Do ``work`` once all events before it are indexed."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._evidence()))

    def close(self) -> None:
        """Wait for the piece of work that runs, and leave out the others."""
        self._thread.shutdown(cancel_futures=True)

    def _index(self, events: Sequence[Event]) -> None:
        # An error here would be seen by nobody, and must not cost the other events.
        for event in events:
            try:
                self._evidence().apply(event)
            except Exception:
                log.exception("an event was not indexed for figures")

    def _evidence(self) -> Observing:
        if self._observing is None:
            from ba_tui.features.data.analysis.grounding.observing import Observing  # noqa: PLC0415 - not before the first figure

            self._observing = Observing(self._stored)
        return self._observing
