"""The layout of the transcript as one line-API widget: ``render_lines`` paints cached strips from the scroll place on.

Where records come from is view.py's business, what keys and mouse do is browse.py's, positions are layout.py's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple, cast

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript import style
from ba_tui.faces.tui.transcript.layout import FIRST, Shown, TranscriptLayout
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.messages import NewBelow
from ba_tui.faces.tui.transcript.painter import Overlay, strip
from ba_tui.faces.tui.transcript.palette import ASCII, UNICODE, Palette, palette
from ba_tui.faces.tui.transcript.records import End, Prompt
from ba_tui.faces.tui.transcript.rows import Look
from ba_tui.faces.tui.transcript.search import TranscriptSearch
from ba_tui.faces.tui.transcript.selection import key, selected

MARGIN = 2
"""Cells left of a record's sign and right of its words."""


class Sight(NamedTuple):
    """What holds for all rows of one painting: ``cursor`` is the place of the record with it."""

    size: Size
    cursor: int | None
    selected: Selection | None
    wanted: re.Pattern[str] | None


class TranscriptPane(ScrollView):
    """The transcript, painted. It stays at the bottom while it is there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(style.COMPONENTS)
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
        self._window: list[Shown] = []
        self._following = True
        self._moving = False
        self._grip = (0, 0)
        self._ascii = False
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
            self._colours = palette(look, ASCII if self._ascii else UNICODE)
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
        """Bring place, heights and scroll bar together and paint again; only the rows that differ when told so."""
        rows = self._rows
        if rows < 1:
            # What it held may be gone when there is room again.
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
        """Where the rows are in all of the ``height``. While words come in it moves by whole cells: drawing it takes as
        long as drawing the rows."""
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
        """Rows for the conversation: the search stands below it."""
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
        """Rows as they are: Textual keeps styled rows by their place, and would style all of them anew when they move.

        There is no border and no padding, and whatever a row shows has colours of its own.
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
        """The last row while searching, or while something new is below."""
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
        """The place of the record that keys work on; -1 when there is none. Not the end of a turn: it holds nothing."""
        last = len(self._transcript.layouts) - 1
        if last > 0 and isinstance(self._transcript.layouts[last].record, End):
            last -= 1
        if self.cursor is None and not self._following and self._window:
            return min(self._window[-1].place.record, last)
        return last if self.cursor is None else min(self.cursor, last)


def _alike(one: PaintedLine, other: PaintedLine) -> bool:
    """They look the same, whatever they copy."""
    return one is other or (one.segments == other.segments and one.gutter == other.gutter and one.fill == other.fill)
