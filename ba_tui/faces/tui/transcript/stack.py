"""All sheets above each other: where a row of the screen is, what it shows, and how far things are apart.

A Place is what stays still; line numbers change whenever a guessed height gives way to a painted one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ba_tui.faces.tui.transcript.heights import Heights
from ba_tui.faces.tui.transcript.lines import BLANK, PaintedLine
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.records import NoticeRecord, Record, Thought, ToolRow
from ba_tui.faces.tui.transcript.rows import Look
from ba_tui.faces.tui.transcript.sheet import PaintedBlock, RecordSheet

KEPT = 12_000
"""Painted lines kept; older ones are painted again when somebody scrolls back to them."""
GAP = -1


class StackPosition(NamedTuple):
    """A row: ``block`` is GAP for the blank line above a sheet."""

    sheet: int
    block: int
    line: int


class Shown(NamedTuple):
    place: StackPosition
    line: PaintedLine


FIRST = StackPosition(0, GAP, 0)


class SheetStack:
    """Sheets by place; ``look`` is set before anything is laid out."""

    def __init__(self) -> None:
        self.base = 0
        """How many sheets came in above since the first one."""
        self.sheets: list[RecordSheet] = []
        self.look = Look(80, Palette(), 0.0)
        self._heights = Heights()
        self._edition = 0
        self._laid: deque[tuple[PaintedBlock, int]] = deque()
        self._kept = 0
        self.behind: list[RecordSheet] = []
        """Sheets of prose that came faster than it could be cut into blocks."""

    @property
    def height(self) -> int:
        return self._heights.total

    def restyle(self, look: Look) -> None:
        """Another width or theme: everything is painted again when it is next looked at."""
        self.look = look
        self._edition += 1

    def tick(self, now: float) -> None:
        self.look = Look(self.look.width, self.look.palette, now)

    def replace_from(self, at: int, records: Sequence[Record]) -> None:
        """``records`` stand from place ``at`` on."""
        while len(self.sheets) > at:
            self.sheets.pop()
            self._heights.pop()
        before = self.sheets[-1].record if self.sheets else None
        for record in records:
            sheet = RecordSheet(record, _gap(before, record), self.look.width)
            if getattr(record, "open", False):
                sheet.opened()
            self.sheets.append(sheet)
            self._heights.append(sheet.height)
            before = record

    def update(self, at: int, record: Record) -> None:
        """Another record, or another state of it, at place ``at``."""
        sheet = self.sheets[at]
        if type(sheet.record) is type(record):
            sheet.update(record)
            self._heights.set(at, sheet.height)
            if sheet.behind and sheet not in self.behind:
                self.behind.append(sheet)
            return
        later = [sheet.record for sheet in self.sheets[at + 1 :]]
        self.replace_from(at, [record, *later])

    def catch_up(self) -> None:
        """Take in more of what is ``behind``."""
        for sheet in self.behind:
            if sheet in self.sheets:
                sheet.catch_up()
                self._heights.set(self.sheets.index(sheet), sheet.height)
        self.behind = [sheet for sheet in self.behind if sheet.behind and sheet in self.sheets]

    def prepend(self, sheets: list[RecordSheet]) -> int:
        """Older sheets above all others; returns how many places everything moved."""
        if sheets and self.sheets:
            self.sheets[0].gap = _gap(sheets[-1].record, self.sheets[0].record)
        self.sheets[:0] = sheets
        self.base += len(sheets)
        self._heights = Heights(sheet.height for sheet in self.sheets)
        return len(sheets)

    def lay(self, sheet: int, block: int) -> list[PaintedLine]:
        """The painted lines of a block; its height is right from now on."""
        page = self.sheets[sheet]
        cell = page.opened()[0][block]
        fresh = cell.lines is None or cell.edition != self._edition
        lines = page.lay(block, self.look, self._edition)
        if fresh:
            self._heights.set(sheet, page.height)
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

    def y(self, place: StackPosition) -> int:
        """The line number of ``place``, as far as heights are known."""
        if not self.sheets:
            return 0
        sheet = self.sheets[place.sheet]
        top = self._heights.before(place.sheet)
        if place.block == GAP:
            return top + place.line
        return top + sheet.gap + sheet.opened()[1].before(place.block) + place.line

    def at(self, y: int) -> StackPosition:
        """The place of line ``y``."""
        if not self.sheets:
            return FIRST
        at, offset = self._heights.find(y)
        sheet = self.sheets[at]
        if offset < sheet.gap:
            return StackPosition(at, GAP, offset)
        block, line = sheet.opened()[1].find(offset - sheet.gap)
        height = len(self.lay(at, block))
        return self._settled(StackPosition(at, block, min(line, max(0, height - 1))))

    def settled(self, place: StackPosition) -> StackPosition:
        """The nearest place that exists, after blocks came, went or changed their height."""
        if not self.sheets:
            return FIRST
        sheet = min(place.sheet, len(self.sheets) - 1)
        if sheet != place.sheet:
            return self.last()
        blocks = self.sheets[sheet].opened()[0]
        if place.block == GAP:
            return StackPosition(sheet, GAP, 0) if self.sheets[sheet].gap else self._settled(StackPosition(sheet, 0, 0))
        block = min(place.block, len(blocks) - 1)
        height = len(self.lay(sheet, block))
        return self._settled(StackPosition(sheet, block, min(place.line, max(0, height - 1))))

    def _settled(self, place: StackPosition) -> StackPosition:
        """Past an empty block, whose line 0 does not exist."""
        if self.lay(place.sheet, place.block):
            return place
        return self._down(place) or self._up(place) or place

    def last(self) -> StackPosition:
        at = len(self.sheets) - 1
        if at < 0:
            return FIRST
        block = len(self.sheets[at].opened()[0]) - 1
        height = len(self.lay(at, block))
        place = StackPosition(at, block, max(0, height - 1))
        return place if height else self._up(place) or FIRST

    def _down(self, place: StackPosition) -> StackPosition | None:
        """The next row."""
        at, block, line = place
        size = self.sheets[at].gap if block == GAP else len(self.lay(at, block))
        if line + 1 < size:
            return StackPosition(at, block, line + 1)
        while True:
            block += 1
            if block >= len(self.sheets[at].opened()[0]):
                at, block = at + 1, GAP
                if at >= len(self.sheets):
                    return None
            size = self.sheets[at].gap if block == GAP else len(self.lay(at, block))
            if size:
                return StackPosition(at, block, 0)

    def _up(self, place: StackPosition) -> StackPosition | None:
        """The row above."""
        at, block, line = place
        if line > 0:
            return StackPosition(at, block, line - 1)
        while True:
            block -= 1
            if block < GAP:
                at -= 1
                if at < 0:
                    return None
                block = len(self.sheets[at].opened()[0]) - 1
            size = self.sheets[at].gap if block == GAP else len(self.lay(at, block))
            if size:
                return StackPosition(at, block, size - 1)

    def moved(self, place: StackPosition, rows: int) -> StackPosition:
        """``rows`` further down, or up when negative; stops at the ends."""
        if not self.sheets:
            return FIRST
        step = self._down if rows > 0 else self._up
        for _ in range(abs(rows)):
            following = step(place)
            if following is None:
                break
            place = following
        return place

    def window(self, place: StackPosition, rows: int) -> list[Shown]:
        """``rows`` rows from ``place`` on, fewer at the end."""
        shown: list[Shown] = []
        if not self.sheets:
            return shown
        following: StackPosition | None = self.settled(place)
        while following is not None and len(shown) < rows:
            at, block, line = following
            if block == GAP:
                shown.append(Shown(following, BLANK))
                following = self._down(following)
                continue
            lines = self.lay(at, block)[line : line + rows - len(shown)]
            shown += [Shown(StackPosition(at, block, line + more), text) for more, text in enumerate(lines)]
            following = self._down(shown[-1].place) if shown else None
        return shown


def _gap(before: Record | None, record: Record) -> int:
    """Calls and thoughts stand close together, everything else has room."""
    if before is None:
        return 0
    close = (ToolRow, Thought)
    if isinstance(record, close) and isinstance(before, close):
        return 0
    return 0 if isinstance(record, NoticeRecord) and isinstance(before, NoticeRecord) else 1


def sheets_of(records: Sequence[Record], width: int) -> list[RecordSheet]:
    """Sheets for older records, made apart from any stack."""
    sheets: list[RecordSheet] = []
    before: Record | None = None
    for record in records:
        sheets.append(RecordSheet(record, _gap(before, record), width))
        before = record
    return sheets
