"""The one engine for steps that wait for each other: workflows and plans are both carried out by it.

What a step does, and what a failure means, is the business of whoever runs the steps.
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
    """``waits``: what each step waits for, in the order in which steps are begun when several could be.

    ``run`` does one step; when it raises, no further step is begun. ``reads``: whether a step only reads, so that it
    may run beside others that do; any other step runs alone. ``at_once``: the most that run at the same time.
    """

    waits: Mapping[K, Collection[K]]
    run: Callable[[K], Awaitable[T]]
    reads: Callable[[K], bool]
    at_once: int = AT_ONCE


async def execute(steps: Steps[K, T]) -> dict[K, T]:
    """Run all steps, each after those that it waits for, and return what they gave.

    After a failure the steps that are running end by themselves; then the first failure is raised. When the caller is
    cancelled they are cancelled too, and have ended before this returns. The cost of a step does not depend on how many
    there are.

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
        """Add the steps that nothing holds up any more."""
        for place in self._sorter.get_ready():
            heapq.heappush(self._ready, place)

    async def _begin(self) -> None:
        """Begin what may run now. A step that must run alone holds up those behind it, so that its turn comes."""
        while self._ready and self._failed is None and len(self._running) < self._steps.at_once:
            key = self._keys[self._ready[0]]
            last = len(self._ready) == 1 and not self._running
            reads = last or self._steps.reads(key)
            if self._running and not reads:
                return
            place = heapq.heappop(self._ready)
            if last or not reads:
                # Nothing can run beside it, so it needs no task of its own.
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
        # Steps that never wait must not hold up the program.
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
