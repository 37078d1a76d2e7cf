"""Selection and search in the transcript: positions survive older records being inserted above.

Whole records are copied as their source, parts line by line, without gutters and soft line ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition, TranscriptLayout
from ba_tui.faces.tui.transcript.lines import PaintedLine, copied
from ba_tui.faces.tui.transcript.records import Record, ToolRow, source

Position: TypeAlias = tuple[int, int]
"""A key and a character within its row."""
_BITS = 24


def key(transcript: TranscriptLayout, place: LayoutPosition) -> int:
    """Return a number that grows downwards."""
    return ((place.record - transcript.base << _BITS) + place.block + 1 << _BITS) + place.line


def place_of(transcript: TranscriptLayout, number: int) -> LayoutPosition:
    line = number & (1 << _BITS) - 1
    block = (number >> _BITS & (1 << _BITS) - 1) - 1
    return LayoutPosition((number >> 2 * _BITS) + transcript.base, block, line)


def selected(transcript: TranscriptLayout, start: Position | None, end: Position | None) -> str:
    """Return the source text between two positions; None means the very first or last."""
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
    """Yield the selected rows of one record with their ranges of characters."""
    for block in range(len(transcript.layouts[at].opened()[0])):
        for number, line in enumerate(transcript.lay(at, block)):
            place = LayoutPosition(at, block, number)
            size = len(line.text)
            if (first and place < first[0]) or (final and place > final[0]):
                continue
            begin = min(first[1], size) if first and place == first[0] else 0
            stop = min(final[1], size) if final and place == final[0] else size
            yield line, begin, stop


class TranscriptSearch:
    """One query over all records. Capitals in the query make it exact."""

    def __init__(self, query: str = "") -> None:
        self.query = query
        flags = re.IGNORECASE if query == query.lower() else re.NOFLAG
        self.pattern = re.compile(re.escape(query), flags) if query else None
        self.hits: list[int] = []
        """The place of the record of every hit, oldest first."""
        self.at = -1

    def over(self, records: Sequence[Record], near: int) -> None:
        """Look through ``records``; the current hit becomes the last one not below ``near``."""
        self.hits = []
        if self.pattern is None:
            return
        for place, record in enumerate(records):
            found = self.pattern.findall(_text(record))
            self.hits += [place] * len(found)
        self.at = max(0, bisect_right(self.hits, near) - 1) if self.hits else -1

    def step(self, by: int) -> None:
        """Go to the next (1) or previous (-1) hit, around the ends."""
        if self.hits:
            self.at = (self.at + by) % len(self.hits)

    @property
    def current(self) -> tuple[int, int] | None:
        """The place of the record with the current hit, and the number of the hit within it, from 0."""
        if not 0 <= self.at < len(self.hits):
            return None
        place = self.hits[self.at]
        return place, self.at - bisect_left(self.hits, place)

    @property
    def tally(self) -> str:
        if not self.query:
            return ""
        return f"{self.at + 1}/{len(self.hits)}" if self.hits else "not found"


def _text(record: Record) -> str:
    if isinstance(record, ToolRow):
        return f"{record.name} {record.target}"
    return source(record)
