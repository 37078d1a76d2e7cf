"""What a mouse selection copies: positions that survive older records coming in above, and the source text between.

Whole records copy as their source, parts of them line by line; gutters and soft line ends are never copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition, TranscriptLayout
from ba_tui.faces.tui.transcript.lines import PaintedLine, copied
from ba_tui.faces.tui.transcript.records import source

Position: TypeAlias = tuple[int, int]
"""A key and a character within its row."""
_BITS = 24


def key(transcript: TranscriptLayout, place: LayoutPosition) -> int:
    """A number that grows downwards."""
    return ((place.record - transcript.base << _BITS) + place.block + 1 << _BITS) + place.line


def place_of(transcript: TranscriptLayout, number: int) -> LayoutPosition:
    line = number & (1 << _BITS) - 1
    block = (number >> _BITS & (1 << _BITS) - 1) - 1
    return LayoutPosition((number >> 2 * _BITS) + transcript.base, block, line)


def selected(transcript: TranscriptLayout, start: Position | None, end: Position | None) -> str:
    """The source text between two positions; None means the very first or last."""
    if not transcript.layouts:
        return ""
    top = transcript.settled(place_of(transcript, start[0])) if start else FIRST
    low = transcript.settled(place_of(transcript, end[0])) if end else transcript.last()
    parts: list[str] = []
    for at in range(top.record, low.record + 1):
        first = (top, max(0, start[1])) if start and at == top.record else None
        final = (low, max(0, end[1])) if end and at == low.record else None
        if first or final:
            parts.append(copied(list(_between(transcript, at, first, final))))
        else:
            parts.append(source(transcript.layouts[at].record))
    return "\n\n".join(part for part in parts if part)


def _between(
    transcript: TranscriptLayout,
    at: int,
    first: tuple[LayoutPosition, int] | None,
    final: tuple[LayoutPosition, int] | None,
) -> Iterable[tuple[PaintedLine, int, int]]:
    """The selected rows of one record with their ranges of characters."""
    for block in range(len(transcript.layouts[at].opened()[0])):
        for number, line in enumerate(transcript.lay(at, block)):
            place = LayoutPosition(at, block, number)
            size = len(line.text)
            if (first and place < first[0]) or (final and place > final[0]):
                continue
            begin = min(first[1], size) if first and place == first[0] else 0
            stop = min(final[1], size) if final and place == final[0] else size
            yield line, begin, stop
