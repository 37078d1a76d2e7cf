"""Painted lines: what one row of the transcript shows and what it copies, and wrapping words to a width.

Widths are terminal cells. What the words mean is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.results import Table
from ba_tui.core.values import frozen

Segments = tuple[Segment, ...]


@frozen
class Unit:
    """Lines that belong together: when all ``count`` of them are selected, ``text`` is what is copied.

    ``opens`` marks the head of a code block, whose closing line is copied with the last one only when the head is.
    """

    text: str
    count: int = 1
    opens: bool = False

    # Two with the same words are two.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class PaintedLine(NamedTuple):
    """``gutter`` is painted and never copied; ``glue`` stands between this line and the next in a copy.

    ``fill`` paints the rest of the row; ``closes`` is the source that ends a code block; ``table`` is all of a table
    whose last columns are not shown.
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
    """Where ``text`` (one line, no tabs) is cut to fit ``width`` cells: at spaces, between CJK words, else hard."""
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


def hard_cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Cut after every ``width`` cells, never within what a reader sees as one character."""
    width = max(1, width)
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)] or [(0, 0)]
    found: list[tuple[int, int]] = []
    start, used = 0, 0
    # A joiner changes what its neighbours take, so that their sizes do not add up.
    joined = "\u200d" in text
    for begin, end, size in split_graphemes(text)[0]:
        wide = cell_len(text[start:end]) if joined else used + size
        if begin > start and wide > width:
            found.append((start, begin))
            start, wide = begin, size
        used = wide
    found.append((start, len(text)))
    return found


def clipped(text: str, width: int, more: str = "…") -> str:
    """``text`` in at most ``width`` cells; what is left out at its end is marked."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(more)
    if room <= 0:
        return more[: max(0, width)]
    start, end = hard_cuts(text, room)[0]
    kept = text[start:end].rstrip()
    return kept + more if cell_len(kept) <= room else more


def clipped_segments(runs: Sequence[Segment], width: int, more: str = "…") -> Segments:
    """``runs`` in at most ``width`` cells; what is left out at their end is marked."""
    text = "".join(run.text for run in runs)
    if cell_len(text) <= width:
        return tuple(runs)
    kept = sliced(runs, *hard_cuts(text, max(1, width - cell_len(more)))[0])
    return (*kept, Segment(more, kept[-1].style if kept else None))


def clipped_middle(text: str, width: int, more: str = "…") -> str:
    """The same for paths: the end says most, the start is kept as far as there is room."""
    if cell_len(text) <= width or width < 12:
        return clipped(text, width, more)
    room = width - cell_len(more)
    head = text[: hard_cuts(text, room // 3)[0][1]]
    left = room - cell_len(head)
    start = len(text)
    for begin, _end, size in reversed(split_graphemes(text)[0]):
        left -= size
        if left < 0:
            break
        start = begin
    return head + more + text[start:]


def sliced(runs: Sequence[Segment], start: int, end: int) -> Segments:
    """The characters from ``start`` to ``end`` of ``runs``."""
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
    """``runs`` cut to ``width``, each line with the glue that a copy puts behind it (a space, or nothing)."""
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
    """``runs`` split at their line ends."""
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
    """The source text of selected lines, each with the range of characters that is selected."""
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
    """All of a unit, each line from its first to its last character."""
    return len(lines) == unit.count and all(
        line.unit is unit and start <= 0 and end >= len(line.text) for line, start, end in lines
    )
