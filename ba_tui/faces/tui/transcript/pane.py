"""The transcript as a line-API widget that paints cached strips, its search and selection, and its messages.

``view`` supplies records and handles keys; ``layout`` computes positions.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, cast

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ba_tui.core.text.cells import has_few_characters
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition, ShownLine, TranscriptLayout
from ba_tui.faces.tui.transcript.lines import PaintedLine, Segments, copied
from ba_tui.faces.tui.transcript.palette import ASCII, COMPONENTS, UNICODE, Palette, palette_of
from ba_tui.faces.tui.transcript.records import End, Prompt, Record, ToolRow, source
from ba_tui.faces.tui.transcript.rows import Look

# Positions survive older records being inserted above. Whole records are copied as their source, parts line by line,
# without gutters and soft line ends.

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


# Every cell carries its position in its style's meta, so that a drag anywhere in the row selects words.

Span = tuple[int, int]


class Overlay(NamedTuple):
    """The highlights of a row: selected characters, the searched pattern, and whether its record has the cursor.
    ``number`` identifies the row within selections.
    """

    number: int
    prompt: bool = False
    selected: Span | None = None
    wanted: re.Pattern[str] | None = None
    focused: bool = False


def strip(line: PaintedLine, width: int, palette: Palette, overlay: Overlay) -> Strip:
    """Return ``line`` in exactly ``width`` cells."""
    words = line.segments
    if overlay.wanted is not None:
        for found in overlay.wanted.finditer(line.text):
            words = over(words, found.span(), palette.match)
    if overlay.selected is not None:
        start, end = overlay.selected
        size = len(line.text)
        span = (max(0, start), size if end < 0 else min(end, size))
        words = over(words, span, palette.selection)
    before = (_edge(line, palette, overlay), *line.gutter)
    x = -sum(len(segment.text) for segment in before)
    segments: list[Segment] = []
    cells = 0
    for segment in (*before, *words):
        place = Style.from_meta({"offset": (x, overlay.number)})
        segments.append(Segment(segment.text, segment.style + place if segment.style else place))
        x += len(segment.text)
        cells += segment.cell_length
    if cells < width:
        ground = line.fill or palette.text
        segments.append(Segment(" " * (width - cells), ground + Style.from_meta({"offset": (x, overlay.number)})))
        cells = width
    made = Strip(segments, cells)
    return made.crop(0, width) if cells > width else made


def _edge(line: PaintedLine, palette: Palette, overlay: Overlay) -> Segment:
    """Return the leftmost cell: a bar for prompts and for the record at the cursor."""
    if overlay.focused and line.gutter:
        return Segment(palette.glyphs.bar, palette.focus)
    if overlay.prompt and line.fill is not None:
        return Segment(palette.glyphs.bar, palette.prompt_mark)
    return Segment(" ", palette.text)


def over(segments: Segments, span: Span, style: Style) -> Segments:
    """Return ``segments`` with ``style`` over the characters of ``span``."""
    start, end = span
    if start >= end:
        return segments
    parts: list[Segment] = []
    at = 0
    for segment in segments:
        text, upto = segment.text, at + len(segment.text)
        low, high = min(max(start, at), upto) - at, max(min(end, upto), at) - at
        if low >= high:
            parts.append(segment)
        else:
            ground = segment.style or Style.null()
            pieces = ((text[:low], ground), (text[low:high], ground + style), (text[high:], ground))
            parts += [Segment(piece, tone) for piece, tone in pieces if piece]
        at = upto
    return tuple(parts)


@dataclass
class RecordOpened(Message, namespace="transcript_view"):
    """The user wants to see all of ``record``."""

    record: Record


@dataclass
class TranscriptCopy(Message, namespace="transcript_view"):
    """``text`` should go to the clipboard."""

    text: str


@dataclass
class NewBelow(Message, namespace="transcript_view"):
    """``count`` records arrived below the visible ones; 0 when the end is visible again."""

    count: int


MARGIN = 2
"""Cells left of a record's sign and right of its words."""


class Sight(NamedTuple):
    """The state shared by all rows of one painting: ``cursor`` is the place of the record at the cursor."""

    size: Size
    cursor: int | None
    selected: Selection | None
    wanted: re.Pattern[str] | None


class TranscriptPane(ScrollView):
    """The transcript, painted. It stays at the bottom while it is there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    FINDING_KEYS: ClassVar[str] = "Enter older  Down newer  Esc close "
    """What the last row says while searching."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.clock: Callable[[], float] = time.time
        self.cursor: int | None = None
        """The place of the record that keys work on; None means the last one in sight."""
        self.search: TranscriptSearch | None = None
        self._transcript = TranscriptLayout()
        self._place = FIRST
        self._window: list[ShownLine] = []
        self._following = True
        self._moving = False
        self._grip = (0, 0)
        self._styled = False
        self._colours: Palette | None = None
        self._below = 0
        self._strips: LRUCache[tuple[int, bool], tuple[PaintedLine, Strip]] = LRUCache(400)

    def _style(self) -> None:
        """Look the palette up, once a theme, and lay the records out for it and the width."""
        if self._styled or not self.is_attached:
            return
        self._styled = True

        def look(role: str, over: bool) -> Style:
            if role == "selection":
                return self.screen.get_component_rich_style("screen--selection")
            return self.get_component_rich_style(f"transcript--{role.replace('_', '-')}", partial=over)

        if self._colours is None:
            self._colours = palette_of(look, ASCII if has_few_characters(os.environ) else UNICODE)
        self._transcript.restyle(Look(max(12, self.size.width - MARGIN), self._colours, self.clock()))
        self._strips.clear()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styled = False
        self._colours = None
        if self.is_mounted:
            self.call_later(self._show)

    def on_resize(self) -> None:
        self._styled = False
        self._show()

    def _show(self, *, everything: bool = True) -> None:
        """Update place, heights and scroll bar, and repaint; without ``everything`` only the rows that differ."""
        rows = self._rows
        if rows < 1:
            # Its records may be gone when there is room again.
            self._window = []
            return
        self._style()
        transcript, before = self._transcript, self._window
        if self._following:
            self._place = transcript.moved(transcript.last(), 1 - rows)
        self._place = transcript.settled(self._place)
        self._window = transcript.window(self._place, rows)
        if len(self._window) < rows and not self._following:
            self._place = transcript.moved(transcript.last(), 1 - rows)
            self._window = transcript.window(self._place, rows)
        self._scroll_bar(transcript.height, transcript.y(self._place))
        if everything or self._below or len(before) != len(self._window):
            self.refresh()
            return
        rows_changed = [
            y
            for y, (old, new) in enumerate(zip(before, self._window, strict=True))
            if old.place != new.place or not _alike(old.line, new.line)
        ]
        if rows_changed:
            first, last = rows_changed[0], rows_changed[-1]
            self.refresh(Region(0, first, self.size.width, last - first + 1))

    def _scroll_bar(self, height: int, y: int) -> None:
        """Show the position of the rows within ``height``. During streaming the bar moves by whole cells, because
        drawing it takes as long as drawing the rows.
        """
        rows, bar = self.size.height, self.vertical_scrollbar
        # Past the reactives: each would draw the bar, and this one lay the whole screen out again.
        self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), Size(self.size.width, height))
        bar.set_reactive(ScrollBar.window_virtual_size, height)
        bar.set_reactive(ScrollBar.window_size, rows)
        bar.set_reactive(ScrollBar.position, y)
        self._moving = True
        self.scroll_target_y = self.scroll_y = y
        self._moving = False
        cell = (1 if self._following else 8) * rows / max(rows, height)
        grip = round(cell * y), round(cell * rows)
        if grip != self._grip:
            self._grip = grip
            bar.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self._moving or not self.size.height:
            return
        transcript, delta = self._transcript, round(new_value) - round(old_value)
        if not delta:
            return
        far = abs(delta) > 3 * self.size.height
        self._place = transcript.at(round(new_value)) if far else transcript.moved(self._place, delta)
        self.follow_if_at_end()

    @property
    def _rows(self) -> int:
        """The rows of the conversation, without that of the search."""
        return self.size.height - (self.search is not None)

    def _at_end(self) -> bool:
        last = self._transcript.last()
        return any(place == last for place, _ in self._transcript.window(self._place, self._rows))

    def follow_if_at_end(self) -> None:
        """Paint from the place on; stay at the end from now on when it is in sight."""
        self._place = self._transcript.settled(self._place)
        self._following = self._at_end()
        if self._following:
            self._count_below(0)
        self._show()

    def _count_below(self, count: int) -> None:
        if count != self._below:
            self._below = count
            self.post_message(NewBelow(count))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows without Textual's cache of styled rows, which depends on their places and would miss after each
        scroll. There is no border or padding, and each row has its own colours.
        """
        sight = self._sight()
        strips = [self._line(y, sight) for y in crop.line_range]
        background = self.background_colors[1]
        for each in self.get_line_filters():
            strips = [strip.apply_filter(each, background) for strip in strips]
        return [strip.crop(*crop.column_span) for strip in strips]

    def render_line(self, y: int) -> Strip:
        return self._line(y, self._sight())

    def _sight(self) -> Sight:
        cursor = self.chosen() if self.has_focus and self.cursor is not None else None
        return Sight(self.size, cursor, self.text_selection, self.search.pattern if self.search is not None else None)

    def _line(self, y: int, sight: Sight) -> Strip:
        width, height = sight.size
        if y == height - 1 and (over := self._footer(sight)) is not None:
            return over
        if y >= len(self._window):
            last = key(self._transcript, self._window[-1].place) + 1 if self._window else 0
            ground = self._transcript.look.palette.text
            return Strip([Segment(" " * width, ground + Style.from_meta({"offset": (0, last)}))], width)
        return self._row(y, sight)

    def _row(self, y: int, sight: Sight) -> Strip:
        (place, line), transcript = self._window[y], self._transcript
        number = key(transcript, place)
        focused, wanted = place.record == sight.cursor, sight.wanted
        chosen = sight.selected.get_span(number) if sight.selected is not None else None
        cached = self._strips.get((number, focused)) if chosen is None and wanted is None else None
        if cached is not None and _alike(cached[0], line):
            return cached[1]
        prompt = isinstance(transcript.layouts[place.record].record, Prompt)
        overlay = Overlay(number, prompt, chosen, wanted, focused)
        made = strip(line, sight.size.width, transcript.look.palette, overlay)
        if chosen is None and wanted is None:
            self._strips[number, focused] = (line, made)
        return made

    def _footer(self, sight: Sight) -> Strip | None:
        """Return the last row while searching, or while something new is below."""
        width, height = sight.size
        colours = self._transcript.look.palette
        if self.search is not None:
            words = f" Find: {paintable(self.search.query, newlines=False)}_  {self.search.tally}"
            help_words = self.FINDING_KEYS
            line = words.ljust(max(0, width - len(help_words))) + (help_words if width > 60 else "")
            return Strip([Segment(line, colours.bar)]).adjust_cell_length(width, colours.bar)
        if self._below and not self._following and len(self._window) == height:
            pill = Segment(f" {self._below} new {colours.glyphs.down} ", colours.pill)
            row = self._row(height - 1, sight).crop(0, width - pill.cell_length)
            return Strip([*row, pill], width)
        return None

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection
        first = (start.y, start.x) if start is not None else None
        final = (end.y, end.x) if end is not None else None
        text = paintable(selected(self._transcript, first, final))
        return (text, "\n") if text else None

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def chosen(self) -> int:
        """Return the place of the record that keys work on, never the end of a turn; -1 if there is none."""
        last = len(self._transcript.layouts) - 1
        if last > 0 and isinstance(self._transcript.layouts[last].record, End):
            last -= 1
        if self.cursor is None and not self._following and self._window:
            return min(self._window[-1].place.record, last)
        return last if self.cursor is None else min(self.cursor, last)


def _alike(one: PaintedLine, other: PaintedLine) -> bool:
    """Return whether two lines look the same; the text that they copy may differ."""
    return one is other or (one.segments == other.segments and one.gutter == other.gutter and one.fill == other.fill)
