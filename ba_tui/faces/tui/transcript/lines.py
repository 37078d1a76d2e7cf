"""Painted lines: the segments of one row of the transcript and its text for copying; wrapping to a width. Widths are
terminal cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.results import Table
from ba_tui.core.text.cells import hard_cuts
from ba_tui.core.values import frozen

Segments = tuple[Segment, ...]


@frozen
class Unit:
    """Lines that belong together: if all ``count`` of them are selected, ``text`` is copied. ``opens`` marks the head
    of a code block, whose closing line is copied only together with the head.
    """

    text: str
    count: int = 1
    opens: bool = False

    # Two with the same words are two.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class PaintedLine(NamedTuple):
    """``gutter`` is painted and never copied; ``glue`` separates this line from the next in a copy. ``fill`` paints the
    rest of the row; ``closes`` is the source that ends a code block; ``table`` is the whole table if its last columns
    are not shown.
    """

    segments: Segments = ()
    gutter: Segments = ()
    unit: Unit | None = None
    glue: str = "\n"
    fill: Style | None = None
    closes: str = ""
    table: Table | None = None

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


BLANK = PaintedLine()

_WIDE = (
    r"\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    r"\U00020000-\U0003fffd"
)
_OPENING = "「『（【《〈“‘［｛"
_CLOSING = "、。，．：；！？」』）】》〉”’…—～ー々％］｝"
_PIECES = (
    rf"[{_OPENING}]*[{_WIDE}][{_CLOSING}]*[ \u3000]*"
    rf"|[^\s{_WIDE}]+[{_CLOSING}]*\s*"
    rf"|\s+"
    rf"|."
)


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(_PIECES)


def cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Return where ``text`` (one line, no tabs) is cut to fit ``width`` cells: at spaces, between CJK words, else
    anywhere.
    """
    width = max(1, width)
    if cell_len(text) <= width:
        return [(0, len(text))]
    return _ascii_cuts(text, width) if text.isascii() else _cell_cuts(text, width)


def _ascii_cuts(text: str, width: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start, size = 0, len(text)
    while size - start > width:
        space = text.rfind(" ", start + 1, start + width + 1)
        if space < 0:
            end = after = start + width
        else:
            end = after = space
            while end > start + 1 and text[end - 1] == " ":
                end -= 1
            while after < size and text[after] == " ":
                after += 1
        found.append((start, end))
        start = after
    if start < size or not found:
        found.append((start, size))
    return found


def _cell_cuts(text: str, width: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start, used = 0, 0
    # A joiner changes what its neighbours take, so that their sizes do not add up.
    joined = "\u200d" in text
    for piece in _pieces().finditer(text):
        words = piece[0].rstrip()
        end = piece.start() + len(words)
        wide = cell_len(text[start:end]) if joined else used + cell_len(words)
        if used and wide > width:
            found.append(_trimmed(text, start, piece.start()))
            start, wide = piece.start(), cell_len(words)
        if wide > width:
            hard = hard_cuts(text[start:end], width)
            found += [(start + a, start + b) for a, b in hard[:-1]]
            start += hard[-1][0]
            wide = cell_len(text[start:end])
        used = wide + cell_len(piece[0][len(words) :])
    found.append(_trimmed(text, start, len(text)))
    return found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    return start, start + len(text[start:end].rstrip())


def clipped_segments(runs: Sequence[Segment], width: int, more: str = "…") -> Segments:
    """Return ``runs`` in at most ``width`` cells, with an ellipsis if the end is cut."""
    text = "".join(run.text for run in runs)
    if cell_len(text) <= width:
        return tuple(runs)
    kept = sliced(runs, *hard_cuts(text, max(1, width - cell_len(more)))[0])
    return (*kept, Segment(more, kept[-1].style if kept else None))


def sliced(runs: Sequence[Segment], start: int, end: int) -> Segments:
    """Return the characters from ``start`` to ``end`` of ``runs``."""
    kept: list[Segment] = []
    at = 0
    for run in runs:
        text = run.text
        upto = at + len(text)
        if upto > start and at < end:
            part = text[max(0, start - at) : end - at]
            kept.append(run if part == text else Segment(part, run.style))
        if upto >= end:
            break
        at = upto
    return tuple(kept)


def wrapped(runs: Sequence[Segment], width: int, *, hard: bool = False) -> list[tuple[Segments, str]]:
    """Yield ``runs`` cut to ``width``, each line with the text that a copy adds after it (a space, or nothing)."""
    text = "".join(run.text for run in runs)
    places = hard_cuts(text, width) if hard else cuts(text, width)
    if len(places) == 1 and places[0] == (0, len(text)):
        return [(tuple(runs), "\n")]
    lines: list[tuple[Segments, str]] = []
    for (start, end), following in zip(places, [*places[1:], None], strict=True):
        glue = "\n" if following is None else text[end : following[0]]
        lines.append((sliced(runs, start, end), glue))
    return lines


def broken(runs: Iterable[Segment]) -> list[list[Segment]]:
    """Return ``runs`` split at line ends."""
    lines: list[list[Segment]] = [[]]
    for run in runs:
        if "\n" not in run.text:
            lines[-1].append(run)
            continue
        first, *others = run.text.split("\n")
        if first:
            lines[-1].append(Segment(first, run.style))
        lines += [[Segment(part, run.style)] if part else [] for part in others]
    return lines


def copied(lines: Sequence[tuple[PaintedLine, int, int]]) -> str:
    """Return the source text of selected lines, each with the range of characters that is selected."""
    parts: list[str] = []
    opened = False
    at = 0
    while at < len(lines):
        line, start, end = lines[at]
        unit = line.unit
        if unit is not None and _whole(lines[at : at + unit.count], unit):
            opened = unit.opens or opened
            at += unit.count
            line = lines[at - 1][0]
            parts += (unit.text, "\n")
        else:
            text = line.text
            if not (unit is not None and unit.opens):
                parts += (text[start:end], line.glue if end >= len(text) else "\n")
            at += 1
        if line.closes and opened:
            parts += (line.closes, "\n")
            opened = False
    if parts:
        parts.pop()
    return "".join(parts)


def _whole(lines: Sequence[tuple[PaintedLine, int, int]], unit: Unit) -> bool:
    """Return all of a unit, each line from its first to its last character."""
    return len(lines) == unit.count and all(
        line.unit is unit and start <= 0 and end >= len(line.text) for line, start, end in lines
    )
