"""What a mouse selection copies: positions that survive older records coming in above, and the source text between.

Whole records copy as their source, parts of them line by line; gutters and soft line ends are never copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ba_tui.faces.tui.transcript.lines import PaintedLine, copied
from ba_tui.faces.tui.transcript.records import source
from ba_tui.faces.tui.transcript.stack import FIRST, SheetStack, StackPosition

Position: TypeAlias = tuple[int, int]
"""A key and a character within its row."""
_BITS = 24


def key(stack: SheetStack, place: StackPosition) -> int:
    """A number that grows downwards."""
    return ((place.sheet - stack.base << _BITS) + place.block + 1 << _BITS) + place.line


def place_of(stack: SheetStack, number: int) -> StackPosition:
    line = number & (1 << _BITS) - 1
    block = (number >> _BITS & (1 << _BITS) - 1) - 1
    return StackPosition((number >> 2 * _BITS) + stack.base, block, line)


def selected(stack: SheetStack, start: Position | None, end: Position | None) -> str:
    """The source text between two positions; None means the very first or last."""
    if not stack.sheets:
        return ""
    top = stack.settled(place_of(stack, start[0])) if start else FIRST
    low = stack.settled(place_of(stack, end[0])) if end else stack.last()
    parts: list[str] = []
    for at in range(top.sheet, low.sheet + 1):
        first = (top, max(0, start[1])) if start and at == top.sheet else None
        final = (low, max(0, end[1])) if end and at == low.sheet else None
        if first or final:
            parts.append(copied(list(_between(stack, at, first, final))))
        else:
            parts.append(source(stack.sheets[at].record))
    return "\n\n".join(part for part in parts if part)


def _between(
    stack: SheetStack, at: int, first: tuple[StackPosition, int] | None, final: tuple[StackPosition, int] | None
) -> Iterable[tuple[PaintedLine, int, int]]:
    """The selected rows of one sheet with their ranges of characters."""
    for block in range(len(stack.sheets[at].opened()[0])):
        for number, line in enumerate(stack.lay(at, block)):
            place = StackPosition(at, block, number)
            size = len(line.text)
            if (first and place < first[0]) or (final and place > final[0]):
                continue
            begin = min(first[1], size) if first and place == first[0] else 0
            stop = min(final[1], size) if final and place == final[0] else size
            yield line, begin, stop
