"""Where the characters that people see begin and end: a family emoji, a flag or a letter with its marks is one.

Unicode calls them extended grapheme clusters. ``regex`` knows them; it is loaded for the first text that is not ASCII.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

REACH = 1_000
"""Characters on either side that are looked at: a line of any length costs the same."""
CLUSTER = r"\X"
_loaded = threading.Event()


@lru_cache(8)
def _pattern(source: str) -> Pattern[str]:
    import regex  # noqa: PLC0415 - 30 ms, only for text that needs it

    return regex.compile(source)


def load() -> None:
    """Make the rest quick; meant for a thread."""
    _pattern(CLUSTER)
    _loaded.set()


def known(text: str) -> bool:
    """Return whether the clusters of ``text`` can be told at once."""
    return text.isascii() or _loaded.is_set()


def cluster_before(text: str, column: int) -> int:
    """Return where the cluster that ends at ``column`` begins, or the one that ``column`` is in; 0 at the start."""
    boundaries = _boundaries(text, column)
    return boundaries[max(0, bisect_left(boundaries, column) - 1)]


def cluster_start(text: str, column: int) -> int:
    """Return ``column``, or the beginning of the cluster that it is in."""
    boundaries = _boundaries(text, column)
    return boundaries[max(0, bisect_right(boundaries, column) - 1)]


def cluster_after(text: str, column: int) -> int:
    """Return where the cluster at ``column`` ends; the length of ``text`` at its end."""
    boundaries = _boundaries(text, column)
    return boundaries[min(len(boundaries) - 1, bisect_right(boundaries, column))]


def without_last(text: str) -> str:
    """Return ``text`` without its last cluster, as Backspace leaves it."""
    return text[: cluster_before(text, len(text))]


def word_before(text: str, column: int) -> int:
    """Return where the word, or the run of signs, before ``column`` begins; letters keep their marks."""
    starts = [found.start() for found in _pattern(r"\w+|[^\w\s]+").finditer(text, 0, column)]
    return cluster_start(text, starts[-1]) if starts else 0


def word_after(text: str, column: int, *, signs: bool = True) -> int:
    """Return where the word behind ``column`` ends; a run of signs counts as one unless told otherwise."""
    found = _pattern(r"\w+|[^\w\s]+" if signs else r"\w+").search(text, column)
    return cluster_after(text, found.end() - 1) if found else len(text)


def _boundaries(text: str, column: int) -> Sequence[int]:
    """Places between clusters around ``column``."""
    if text.isascii():
        return range(len(text) + 1)
    first = max(0, column - REACH)
    part = text[first : column + REACH]
    return [*(first + found.start() for found in _pattern(CLUSTER).finditer(part)), first + len(part)]
