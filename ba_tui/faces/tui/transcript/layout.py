"""The layouts of all records in order: positions of rows, their contents, and distances. A LayoutPosition is stable;
line numbers change when a guessed height is replaced by a painted one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ba_tui.faces.tui.transcript.lines import BLANK, PaintedLine
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.record_layout import Heights, PaintedBlock, RecordLayout
from ba_tui.faces.tui.transcript.records import MemoryNote, NoticeRecord, Prompt, Record, Thought, ToolRow
from ba_tui.faces.tui.transcript.rows import Look

KEPT = 12_000
"""Painted lines in the cache; others are painted again when they are visible."""
GAP = -1


class LayoutPosition(NamedTuple):
    """A row: ``block`` is GAP for the blank line above a record."""

    record: int
    block: int
    line: int


class ShownLine(NamedTuple):
    place: LayoutPosition
    line: PaintedLine


FIRST = LayoutPosition(0, GAP, 0)


class TranscriptLayout:
    """Sheets by place; ``look`` is set before anything is laid out."""

    def __init__(self) -> None:
        self.base = 0
        """How many records came in above since the first one."""
        self.layouts: list[RecordLayout] = []
        self.look = Look(80, Palette(), 0.0)
        self._heights = Heights()
        self._edition = 0
        self._laid: deque[tuple[PaintedBlock, int]] = deque()
        self._kept = 0
        self.behind: list[RecordLayout] = []
        """Sheets of prose that came faster than it could be cut into blocks."""

    @property
    def height(self) -> int:
        return self._heights.total

    def restyle(self, look: Look) -> None:
        """Use another width or theme; everything is painted again when it is next shown."""
        self.look = look
        self._edition += 1

    def tick(self, now: float) -> None:
        self.look = Look(self.look.width, self.look.palette, now)

    def replace_from(self, at: int, records: Sequence[Record]) -> None:
        """Set the ``records`` from place ``at`` on."""
        while len(self.layouts) > at:
            self.layouts.pop()
            self._heights.pop()
        before = self.layouts[-1].record if self.layouts else None
        for record in records:
            layout = RecordLayout(record, _gap(before, record), self.look.width)
            if getattr(record, "open", False):
                layout.opened()
            self.layouts.append(layout)
            self._heights.append(layout.height)
            before = record

    def update(self, at: int, record: Record) -> None:
        """Replace the record at place ``at``."""
        layout = self.layouts[at]
        if type(layout.record) is type(record):
            layout.update(record)
            self._heights.set(at, layout.height)
            if layout.behind and layout not in self.behind:
                self.behind.append(layout)
            return
        later = [layout.record for layout in self.layouts[at + 1 :]]
        self.replace_from(at, [record, *later])

    def catch_up(self) -> None:
        """Lay out more of the records that are ``behind``."""
        for layout in self.behind:
            if layout in self.layouts:
                layout.catch_up()
                self._heights.set(self.layouts.index(layout), layout.height)
        self.behind = [layout for layout in self.behind if layout.behind and layout in self.layouts]

    def prepend(self, layouts: list[RecordLayout]) -> int:
        """Add older records above all others; return by how many places the others moved."""
        if layouts and self.layouts:
            self.layouts[0].gap = _gap(layouts[-1].record, self.layouts[0].record)
        self.layouts[:0] = layouts
        self.base += len(layouts)
        self._heights = Heights(layout.height for layout in self.layouts)
        return len(layouts)

    def lay(self, layout: int, block: int) -> list[PaintedLine]:
        """Return the painted lines of a block; its height is right from now on."""
        page = self.layouts[layout]
        cell = page.opened()[0][block]
        fresh = cell.lines is None or cell.edition != self._edition
        lines = page.lay(block, self.look, self._edition)
        if fresh:
            self._heights.set(layout, page.height)
            self._remember(cell, len(lines))
        return lines

    def _remember(self, block: PaintedBlock, size: int) -> None:
        self._laid.append((block, size))
        self._kept += size
        while self._kept > KEPT and len(self._laid) > 200:
            old, lines = self._laid.popleft()
            self._kept -= lines
            if old is not block:
                old.lines = None

    def y(self, place: LayoutPosition) -> int:
        """Return the line number of ``place``, as far as heights are known."""
        if not self.layouts:
            return 0
        layout = self.layouts[place.record]
        top = self._heights.before(place.record)
        if place.block == GAP:
            return top + place.line
        return top + layout.gap + layout.opened()[1].before(place.block) + place.line

    def at(self, y: int) -> LayoutPosition:
        """Return the place of line ``y``."""
        if not self.layouts:
            return FIRST
        at, offset = self._heights.find(y)
        layout = self.layouts[at]
        if offset < layout.gap:
            return LayoutPosition(at, GAP, offset)
        block, line = layout.opened()[1].find(offset - layout.gap)
        height = len(self.lay(at, block))
        return self._settled(LayoutPosition(at, block, min(line, max(0, height - 1))))

    def settled(self, place: LayoutPosition) -> LayoutPosition:
        """Return the nearest place that exists, after blocks came, went or changed their height."""
        if not self.layouts:
            return FIRST
        layout = min(place.record, len(self.layouts) - 1)
        if layout != place.record:
            return self.last()
        blocks = self.layouts[layout].opened()[0]
        if place.block == GAP:
            return (
                LayoutPosition(layout, GAP, 0)
                if self.layouts[layout].gap
                else self._settled(LayoutPosition(layout, 0, 0))
            )
        block = min(place.block, len(blocks) - 1)
        height = len(self.lay(layout, block))
        return self._settled(LayoutPosition(layout, block, min(place.line, max(0, height - 1))))

    def _settled(self, place: LayoutPosition) -> LayoutPosition:
        """Return a position after an empty block, whose line 0 does not exist."""
        if self.lay(place.record, place.block):
            return place
        return self._down(place) or self._up(place) or place

    def last(self) -> LayoutPosition:
        at = len(self.layouts) - 1
        if at < 0:
            return FIRST
        block = len(self.layouts[at].opened()[0]) - 1
        height = len(self.lay(at, block))
        place = LayoutPosition(at, block, max(0, height - 1))
        return place if height else self._up(place) or FIRST

    def _down(self, place: LayoutPosition) -> LayoutPosition | None:
        """Return the next row."""
        at, block, line = place
        size = self.layouts[at].gap if block == GAP else len(self.lay(at, block))
        if line + 1 < size:
            return LayoutPosition(at, block, line + 1)
        while True:
            block += 1
            if block >= len(self.layouts[at].opened()[0]):
                at, block = at + 1, GAP
                if at >= len(self.layouts):
                    return None
            size = self.layouts[at].gap if block == GAP else len(self.lay(at, block))
            if size:
                return LayoutPosition(at, block, 0)

    def _up(self, place: LayoutPosition) -> LayoutPosition | None:
        """Return the row above."""
        at, block, line = place
        if line > 0:
            return LayoutPosition(at, block, line - 1)
        while True:
            block -= 1
            if block < GAP:
                at -= 1
                if at < 0:
                    return None
                block = len(self.layouts[at].opened()[0]) - 1
            size = self.layouts[at].gap if block == GAP else len(self.lay(at, block))
            if size:
                return LayoutPosition(at, block, size - 1)

    def moved(self, place: LayoutPosition, rows: int) -> LayoutPosition:
        """Return the position ``rows`` further down, or up if negative; it stops at the ends."""
        if not self.layouts:
            return FIRST
        step = self._down if rows > 0 else self._up
        for _ in range(abs(rows)):
            following = step(place)
            if following is None:
                break
            place = following
        return place

    def window(self, place: LayoutPosition, rows: int) -> list[ShownLine]:
        """Return ``rows`` rows from ``place`` on, fewer at the end."""
        shown: list[ShownLine] = []
        if not self.layouts:
            return shown
        following: LayoutPosition | None = self.settled(place)
        while following is not None and len(shown) < rows:
            at, block, line = following
            if block == GAP:
                shown.append(ShownLine(following, BLANK))
                following = self._down(following)
                continue
            lines = self.lay(at, block)[line : line + rows - len(shown)]
            shown += [ShownLine(LayoutPosition(at, block, line + more), text) for more, text in enumerate(lines)]
            following = self._down(shown[-1].place) if shown else None
        return shown


def _gap(before: Record | None, record: Record) -> int:
    """Return the blank lines above a record: none between calls and thoughts, nor above memories."""
    if before is None or (isinstance(record, MemoryNote) and isinstance(before, Prompt | MemoryNote | ToolRow)):
        return 0
    close = (ToolRow, Thought)
    if isinstance(record, close) and isinstance(before, close):
        return 0
    return 0 if isinstance(record, NoticeRecord) and isinstance(before, NoticeRecord) else 1


def layouts_of(records: Sequence[Record], width: int) -> list[RecordLayout]:
    """Return layouts of older records."""
    layouts: list[RecordLayout] = []
    before: Record | None = None
    for record in records:
        layouts.append(RecordLayout(record, _gap(before, record), width))
        before = record
    return layouts
