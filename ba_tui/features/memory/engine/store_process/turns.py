"""Whose turn it is: questions, for which somebody waits, go before work that nobody waits for.

All work of the process gives way to a question: Chroma holds the interpreter while it takes in vectors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_PAUSE = 0.002
_counting = threading.Lock()
_questions = 0


@contextmanager
def asking() -> Generator[None]:
    """While this lasts, no work begins. Never around work."""
    global _questions
    with _counting:
        _questions += 1
    try:
        yield
    finally:
        with _counting:
            _questions -= 1


def give_way() -> None:
    """Wait until nobody asks anything."""
    while _questions:
        time.sleep(_PAUSE)


class Turns:
    """A lock by itself gives work that goes on and on nearly all turns. ``lock`` is for what is neither."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    @contextmanager
    def question(self) -> Generator[None]:
        """The next turn."""
        with asking(), self.lock:
            yield

    @contextmanager
    def work(self) -> Generator[None]:
        """A turn when no question waits. Never within another turn."""
        give_way()
        with self.lock:
            yield
