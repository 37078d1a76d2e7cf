"""The layouts of all records in order: positions of rows, their contents, and distances. A LayoutPosition is stable;
line numbers change when a guessed height is replaced by a painted one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ba_tui.core.results import CommandText, Diff, Diffs, ToolResult
from ba_tui.core.text.figures import DOUBTFUL, FigureVerdict
from ba_tui.faces.tui.transcript.figure_marks import FigureMarks
from ba_tui.faces.tui.transcript.lines import BLANK, PaintedLine
from ba_tui.faces.tui.transcript.markdown import MEASURE, Chunks, MarkdownChunk, painted
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.records import MemoryNote, NoticeRecord, Prompt, ProseRecord, Record, Thought, ToolRow
from ba_tui.faces.tui.transcript.rows import FOLDED, GUTTER, Look, figure_footer, partial, rows

# Sums and look-ups of heights take logarithmic time (a Fenwick tree), so that long sessions scroll fast.


class Heights:
    """Numbers from 0 up, by place."""

    __slots__ = ("_sums", "values")

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.values: list[int] = []
        self._sums = [0]
        for value in values:
            self.append(value)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> int:
        return self.before(len(self.values))

    def append(self, value: int) -> None:
        self.values.append(value)
        at = len(self.values)
        total, step = value, 1
        while step < at & -at:
            total += self._sums[at - step]
            step <<= 1
        self._sums.append(total)

    def pop(self) -> None:
        self.values.pop()
        self._sums.pop()

    def set(self, place: int, value: int) -> None:
        change = value - self.values[place]
        if not change:
            return
        self.values[place] = value
        at = place + 1
        while at < len(self._sums):
            self._sums[at] += change
            at += at & -at

    def before(self, place: int) -> int:
        """Return the sum of all values before ``place``."""
        total = 0
        while place:
            total += self._sums[place]
            place &= place - 1
        return total

    def find(self, offset: int) -> tuple[int, int]:
        """Return the place at ``offset`` and the offset within it; the end of the last place for larger ones."""
        place, left = 0, max(0, offset)
        step = 1 << max(0, len(self.values).bit_length() - 1)
        while step:
            if place + step < len(self._sums) and self._sums[place + step] <= left:
                place += step
                left -= self._sums[place]
            step >>= 1
        if place >= len(self.values):
            return max(0, len(self.values) - 1), self.values[-1] if self.values else 0
        return place, left


PIECE, BUDGET = 8_000, 0.04
"""Characters of prose that are cut into blocks at a time, and seconds after which the rest waits for the next time."""


class PaintedBlock:
    """A piece of prose, or all of another record. ``edition`` tells for which width and theme ``lines`` were made."""

    __slots__ = ("chunk", "edition", "lines")

    def __init__(self, chunk: MarkdownChunk | None) -> None:
        self.chunk = chunk
        self.lines: list[PaintedLine] | None = None
        self.edition = -1


class RecordLayout:
    """``heights`` has an entry for each block once the record was shown; ``height`` includes the gap above."""

    __slots__ = ("_chunks", "_fed", "_marked", "_unsourced", "blocks", "expanded", "gap", "heights", "record", "rough")

    def __init__(self, record: Record, gap: int, width: int) -> None:
        self.record = record
        self.gap = gap
        self.expanded = isinstance(record, ToolRow) and record.own
        self.blocks: list[PaintedBlock] | None = None
        self.heights: Heights | None = None
        self.rough = _guess(record, width)
        self._chunks: Chunks | None = None
        self._fed = 0
        self._marked: list[str] | None = None
        self._unsourced: frozenset[int] | None = None

    @property
    def height(self) -> int:
        return self.gap + (self.heights.total if self.heights is not None else self.rough)

    def update(self, record: Record) -> None:
        """Show ``record``. Prose that only grew keeps its painted lines."""
        before, self.record = self.record, record
        if not isinstance(record, ProseRecord):
            self.forget()
            return
        grown = isinstance(before, ProseRecord) and record.text.startswith(before.text)
        if self._chunks is None or not grown:
            self.rough = _guess(record, MEASURE)
            self.blocks = self.heights = self._chunks = None
            if self.expanded or record.open:
                self.opened()
            return
        if self.blocks and isinstance(before, ProseRecord) and before.partial != record.partial:
            self.blocks[-1].lines = None
        if isinstance(before, ProseRecord) and before.grounded is not record.grounded:
            self._marked = None
            self.forget()
        self._feed(record)

    @property
    def behind(self) -> bool:
        """Whether a part of the prose is not cut into blocks yet, because it would take too long at once."""
        return isinstance(self.record, ProseRecord) and self._chunks is not None and self._fed < len(self.record.text)

    def catch_up(self) -> None:
        """Cut more of the prose into blocks."""
        if self.behind and isinstance(self.record, ProseRecord):
            self._feed(self.record)

    def opened(self) -> tuple[list[PaintedBlock], Heights]:
        """Return the blocks; prose is cut into its pieces here."""
        if self.blocks is None or self.heights is None:
            self.blocks, self.heights = [], Heights()
            if isinstance(self.record, ProseRecord):
                self._chunks, self._fed = Chunks(), 0
                self._feed(self.record, self.record.open)
            else:
                self.blocks.append(PaintedBlock(None))
                self.heights.append(self.rough)
        return self.blocks, self.heights

    def _feed(self, record: ProseRecord, paused: bool = True) -> None:
        """Cut new prose into blocks: as much as the BUDGET allows when ``paused``, else all of it."""
        blocks, heights = self.opened()
        chunks = self._chunks
        if chunks is None:
            return
        self._marked = None
        known = len(chunks.done)
        if blocks and len(blocks) > known:
            blocks.pop()
            heights.pop()
        begin = time.monotonic()
        while self._fed < len(record.text) and not (paused and time.monotonic() - begin > BUDGET):
            chunks.feed(record.text[self._fed : self._fed + PIECE])
            self._fed = min(self._fed + PIECE, len(record.text))
        if not record.open and not self.behind:
            chunks.finish()
            if chunks.definitions:
                for block in blocks:
                    block.lines = None if block.chunk is not None and "[" in block.chunk.text else block.lines
        for chunk in chunks.done[known:]:
            blocks.append(PaintedBlock(chunk))
            heights.append(_guess_chunk(chunk))
        if (open_chunk := chunks.open) is not None:
            blocks.append(PaintedBlock(open_chunk))
            heights.append(_guess_chunk(open_chunk))
        if not blocks:
            blocks.append(PaintedBlock(None))
            heights.append(0)

    def lay(self, at: int, look: Look, edition: int) -> list[PaintedLine]:
        """Return the lines of block ``at``, painted now when they are not, or for another width."""
        blocks, heights = self.opened()
        block = blocks[at]
        if block.lines is None or block.edition != edition:
            block.lines = self._painted(at, look)
            block.edition = edition
            heights.set(at, len(block.lines))
        return block.lines

    def _painted(self, at: int, look: Look) -> list[PaintedLine]:
        record = self.record
        if not isinstance(record, ProseRecord):
            return rows(record, look, expanded=self.expanded)
        blocks, _ = self.opened()
        chunk = blocks[at].chunk
        lines: list[PaintedLine] = []
        if chunk is not None:
            definitions = self._chunks.definitions if self._chunks else ()
            made = painted(self._grounded(at, chunk), look.width - GUTTER, look.palette, definitions, self._unsourced)
            if chunk.spaced and at and made:
                lines.append(PaintedLine(gutter=look.indent))
            lines += [line._replace(gutter=look.indent + line.gutter) for line in made]
        if record.partial and at == len(blocks) - 1:
            lines += partial(record.partial, look)
        grounded = record.grounded
        if grounded and grounded.last and at == len(blocks) - 1 and not grounded.report.is_empty:
            lines += figure_footer(grounded.report, look)
        return lines

    def _grounded(self, at: int, chunk: MarkdownChunk) -> MarkdownChunk:
        """Return the piece ``at`` with its figures marked."""
        record = self.record
        if not isinstance(record, ProseRecord) or record.grounded is None or chunk.language is not None:
            return chunk
        if self._marked is None:
            self._mark(FigureMarks(record.text, record.grounded), record.grounded.report.verdicts)
        return chunk._replace(text=self._marked[at]) if self._marked and at < len(self._marked) else chunk

    def _mark(self, marks: FigureMarks, verdicts: Sequence[FigureVerdict]) -> None:
        """Mark the figures in all pieces."""
        self._marked, upto = [], 0
        for block in self.opened()[0]:
            piece = block.chunk.text if block.chunk else ""
            marked, upto = marks.marked(piece, upto) if piece.strip() else (piece, upto)
            self._marked.append(marked)
        unsourced = (at for at, verdict in enumerate(verdicts) if verdict.label in DOUBTFUL)
        self._unsourced = frozenset(unsourced) if marks.clean else None

    def forget(self) -> None:
        """Paint again when it is next shown; until then the height is unchanged."""
        for block in self.blocks or ():
            block.lines = None


def _guess(record: Record, width: int) -> int:
    """Return a height without painting, good enough for the scroll bar."""
    match record:
        case ProseRecord(text=text):
            return max(1, text.count("\n") + len(text) // max(20, width))
        case Prompt(text=text):
            return 1 + text.count("\n")
        case ToolRow(result=ToolResult(display=CommandText(output=output))):
            return 1 + min(FOLDED, output.count("\n", 0, 1_000))
        case ToolRow(result=ToolResult(display=Diff() | Diffs())):
            return FOLDED
        case _:
            return 1


def _guess_chunk(chunk: MarkdownChunk) -> int:
    return chunk.text.rstrip("\n").count("\n") + 1 + chunk.spaced + bool(chunk.opens) + len(chunk.text) // 200


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
