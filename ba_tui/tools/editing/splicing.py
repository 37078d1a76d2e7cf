"""Applies changes that were found in plain text to the text as it stands in the file, with the line ends it has.

Finding the changes is matching.py and hunks.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ba_tui.core.values import frozen
from ba_tui.tools.editing.documents import Positions, line_end, with_line_end


@frozen
class Splice:
    """Put ``text`` in the place of what stands from ``start`` to ``end``."""

    start: int
    end: int
    text: str


def spliced(raw: str, plain: str, changes: Sequence[Splice], *, windows: bool = False) -> str:
    """``raw`` with ``changes``, whose places are offsets in ``plain``, what ``plain_lines`` makes of it.

    ``windows``: what is put in was written with ``\\r\\n``, which counts where ``raw`` has no line end of its own.
    """
    usual = "\r\n" if windows and not re.search("[\r\n]", raw) else line_end(raw)
    positions = Positions(raw)
    pieces: list[str] = []
    at = 0
    for change in changes:
        start, end, text = _tightened(plain, change)
        first, last = positions.raw(start), positions.raw(end)
        near = raw[first:last] if "\n" in plain[start:end] else raw[first:]
        pieces += [raw[at:first], with_line_end(text, _end_near(near, usual))]
        at = last
    return "".join([*pieces, raw[at:]])


def shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items both begin with, and how many of the rest both end with."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _tightened(plain: str, change: Splice) -> tuple[int, int, str]:
    """Without what stays the same at both ends, so that mixed line ends around the change stay as they are."""
    old, new = plain[change.start : change.end], change.text
    head, tail = shared_ends(old, new)
    return change.start + head, change.end - tail, new[head : len(new) - tail]


def _end_near(near: str, usual: str) -> str:
    """The line end used at the place of a change: the first there, else the file's usual one."""
    found = re.search("\r\n|\n", near)
    return found.group(0) if found else usual
