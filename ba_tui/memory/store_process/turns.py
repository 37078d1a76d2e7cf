"""Whose turn it is: questions, for which somebody waits, go before work that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_PAUSE = 0.002


class Turns:
    """A lock by itself gives work that goes on and on nearly all turns. ``lock`` is for what is neither."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._counting = threading.Lock()
        self._questions = 0

    @contextmanager
    def question(self) -> Generator[None]:
        """The next turn."""
        with self._counting:
            self._questions += 1
        try:
            with self.lock:
                yield
        finally:
            with self._counting:
                self._questions -= 1

    @contextmanager
    def work(self) -> Generator[None]:
        """A turn when no question waits. Never within another turn."""
        while self._questions:
            time.sleep(_PAUSE)
        with self.lock:
            yield
