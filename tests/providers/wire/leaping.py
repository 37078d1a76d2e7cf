"""A loop whose clock leaps: time passes only while everything waits, so long waits cost nothing and are exact."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.noticing.leaks import pending


class _Leaps(selectors.DefaultSelector):
    """Waits by moving the clock of ``loop`` on."""

    def __init__(self, loop: LeapingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and no timer is set"
        self._loop.now += max(0.0, timeout)
        return super().select(0)


class LeapingLoop(asyncio.SelectorEventLoop):
    """``now`` is the time in seconds. A test may add to it: that is work which takes time."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Leaps(self))

    def time(self) -> float:
        return self.now


class Leaping:
    """Runs coroutines in ``loop``, whose time is everybody's."""

    def __init__(self, loop: LeapingLoop, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.loop = loop
        self.run = run


@pytest.fixture
def leaping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaping]:
    """Fails a test that leaves a task or a timer in the loop."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, LeapingLoop)
        monkeypatch.setattr(time, "monotonic", loop.time)
        yield Leaping(loop, runner.run)
        assert not pending(loop)
