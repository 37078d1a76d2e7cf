"""Stored results, read a part at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ba_tui.core.results import Artifact, LineMatch, TextPage


class Reader(Protocol):
    """Stored results, a part at a time. All of it may take as long as a disk does: call it off the loop.

    Raises:
        StorageError: the reference is none of this session, or its file has expired; the message says which.
    """

    def about(self, ref: str) -> Artifact:
        """What is known of it; does not raise for one that has expired."""
        ...

    def read(self, ref: str, offset: int = 0, limit: int = 65_536) -> TextPage:
        """From byte ``offset`` on, at most ``limit`` bytes, never half a character."""
        ...

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> TextPage:
        """From line ``start`` on, at most ``count`` lines and ``limit`` bytes; a longer line is cut there."""
        ...

    def search(self, ref: str, words: str, limit: int = 100, start: int = 1) -> Sequence[LineMatch]:
        """The first lines, from ``start`` on, that hold every one of the words in whatever case."""
        ...
