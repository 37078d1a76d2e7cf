"""The executor of steps that depend on each other, for workflows and plans.

The caller defines what a step does and what a failure means.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from graphlib import TopologicalSorter
from typing import Generic, TypeVar

from ba_tui.core.values import frozen

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
AT_ONCE = 8


@frozen
class Steps(Generic[K, T]):
    """A set of steps. ``waits``: the dependencies of each step, in the order in which ready steps are begun.

    ``run`` executes one step; after an exception no further step is begun. ``reads``: whether a step is read-only and
    may run in parallel with other such steps; every other step runs alone. ``at_once``: maximum parallel steps.
    """

    waits: Mapping[K, Collection[K]]
    run: Callable[[K], Awaitable[T]]
    reads: Callable[[K], bool]
    at_once: int = AT_ONCE


async def execute(steps: Steps[K, T]) -> dict[K, T]:
    """Run all steps, each after its dependencies, and return their results.

    After a failure the running steps finish normally; then the first failure is raised. When the caller is cancelled,
    they are cancelled too, and have ended before this returns. The cost of a step does not depend on their number.

    Raises:
        graphlib.CycleError: steps wait for each other; none was begun. KeyError: a step waits for an unknown one.
    """
    return await _Execution(steps).all()


class _Execution(Generic[K, T]):
    def __init__(self, steps: Steps[K, T]) -> None:
        self._steps = steps
        self._keys = list(steps.waits)
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._sorter = TopologicalSorter(
            {place: [self._places[other] for other in waits] for place, waits in enumerate(steps.waits.values())}
        )
        self._sorter.prepare()
        self._ready: list[int] = []
        self._running: dict[asyncio.Task[T], int] = {}
        self._failed: Exception | None = None
        self._values: dict[K, T] = {}

    async def all(self) -> dict[K, T]:
        self._collect()
        try:
            while self._running or (self._ready and self._failed is None):
                await self._begin()
                if self._running:
                    await self._settle()
        finally:
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait(self._running)
        if self._failed:
            raise self._failed
        return self._values

    def _collect(self) -> None:
        """Add the steps whose dependencies have ended."""
        for place in self._sorter.get_ready():
            heapq.heappush(self._ready, place)

    async def _begin(self) -> None:
        """Begin the steps that may run now. A step that must run alone blocks those after it, so that it gets its
        turn.
        """
        while self._ready and self._failed is None and len(self._running) < self._steps.at_once:
            key = self._keys[self._ready[0]]
            last = len(self._ready) == 1 and not self._running
            reads = last or self._steps.reads(key)
            if self._running and not reads:
                return
            place = heapq.heappop(self._ready)
            if last or not reads:
                # No other step runs in parallel, so no task is needed.
                await self._alone(place)
                continue
            self._running[asyncio.ensure_future(self._run(place))] = place

    async def _run(self, place: int) -> T:
        return await self._steps.run(self._keys[place])

    async def _alone(self, place: int) -> None:
        try:
            self._done(place, await self._run(place))
        except Exception as error:  # noqa: BLE001 - raised once the others have ended
            self._failed = error
        # Steps that never await must not block the event loop.
        await asyncio.sleep(0)

    async def _settle(self) -> None:
        ended, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            place = self._running.pop(task)
            error = task.exception()
            if error is None:
                self._done(place, task.result())
            elif isinstance(error, Exception):
                self._failed = self._failed or error
            else:
                raise error

    def _done(self, place: int, value: T) -> None:
        self._values[self._keys[place]] = value
        self._sorter.done(place)
        self._collect()
