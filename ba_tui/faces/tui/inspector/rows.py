"""Rows, how they fold at a width (plain values, made in any thread), and the line-API view that paints them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, cast

from rich.segment import Segment
from rich.style import Style
from textual import events, on, work
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.worker import Worker, WorkerState

from ba_tui.core.text.cells import width_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen

Piece: TypeAlias = tuple[str, str | Style]
"""Text and its role (a component class of the view without its prefix), or a Style."""


@frozen
class GridCell:
    """A gutter that is neither scrolled nor copied, and the text. ``tone`` paints the whole cell. ``hang``: indent of
    folded lines after the first; it is not copied either.
    """

    pieces: tuple[Piece, ...] = ()
    gutter: str = ""
    tone: str = ""
    hang: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


GridRow: TypeAlias = tuple[GridCell, ...]
"""One cell, or two side by side."""

PICTURES = (
    {code: chr(0x2400 + code) for code in range(32)}
    | {code: f"‹U+{code:04X}›" for code in (*range(0x80, 0xA0), 0x2028, 0x2029)}
    | {0x7F: "\u2421"}
)


def line(*pieces: Piece, gutter: str = "", tone: str = "", hang: str = "") -> GridRow:
    """Return a row of one cell."""
    return (GridCell(pieces, gutter, tone, hang),)


def marked(row: GridRow) -> GridRow:
    """Return ``row`` highlighted."""
    return tuple(replace(cell, tone="selected") for cell in row)


def visible(text: str) -> str:
    """Return text that a user judges in one line, with every control and hidden character visible."""
    if text.isascii() and text.isprintable():
        return text
    # Pictures first: a shell reads a terminal sequence as text, so each of its characters must stay visible.
    return paintable(text.expandtabs(8).translate(PICTURES), newlines=False, reveal=True)


def painted(text: str) -> str:
    """Return text that is only read in one line, without terminal sequences."""
    if text.isascii() and text.isprintable():
        return text
    return paintable(text.expandtabs(8), newlines=False)


def text_rows(text: str, *, reveal: bool = False) -> list[GridRow]:
    """Return a row for each line of foreign text; ``reveal`` if a user judges it."""
    show = visible if reveal else painted
    return [line((show(part), "")) for part in text.split("\n")]


def hanging(cell: GridCell, width: int) -> str:
    """Return the indent of folded lines; empty if it takes more than half of the width."""
    return cell.hang if 2 * width_of(cell.hang) <= width else ""


def folds(text: str, width: int, *, word_wrap: bool = False, hang: int = 0) -> tuple[int, ...]:
    """Return where the lines of ``text`` start when it is folded at ``width`` cells, at spaces when ``word_wrap``.

    Lines after the first one have ``hang`` cells less.
    """
    if width < 1 or width_of(text) <= width:
        return (0,)
    if text.isascii() and not word_wrap and not hang:
        return tuple(range(0, len(text), width))
    starts, used, space = [0], 0, 0
    for index, letter in enumerate(text):
        cells = width_of(letter)
        if used + cells > width:
            start = space if word_wrap and space > starts[-1] else index
            starts.append(start)
            used = hang + width_of(text[start:index])
        used += cells
        if letter == " ":
            space = index + 1
    return tuple(starts)


@frozen
class GridLayout:
    """The layout of rows: the row and its folded line for each line of the view."""

    rows: Sequence[GridRow] | Mapping[int, GridRow]
    """All of them, or those on the lines by their number."""
    lines: Sequence[tuple[int, int]]
    starts: dict[tuple[int, int], tuple[int, ...]]
    """(row, column) -> where each folded line starts; absent when the cell is one line."""
    gutters: tuple[int, ...]
    """Width of the gutter, column by column."""
    columns: tuple[int, ...]
    """Width of the text, column by column."""
    longest: int
    """Cells of the longest unfolded text."""

    def slice(self, row: int, column: int, part: int, text: str) -> tuple[int, int] | None:
        """Return start and end of the text in ``column`` on the row's line ``part``; None if it is empty."""
        starts = self.starts.get((row, column), (0,))
        if part >= len(starts):
            return None
        return starts[part], starts[part + 1] if part + 1 < len(starts) else len(text)


GAP = 1


def lay_out(rows: Sequence[GridRow], width: int, *, wrap: bool, word_wrap: bool = False) -> GridLayout:
    """Fold ``rows`` into lines of ``width`` cells; without ``wrap`` each row is one line."""
    count = max(map(len, rows), default=1)
    gutters = tuple(_widest(row[column].gutter for row in rows if len(row) > column) for column in range(count))
    share = max(1, (width - GAP * (count - 1)) // count)
    columns = tuple(max(1, share - gutter) for gutter in gutters)
    lines: list[tuple[int, int]] = []
    starts: dict[tuple[int, int], tuple[int, ...]] = {}
    longest = 0
    for index, row in enumerate(rows):
        height = 1
        for column, cell in enumerate(row):
            text = cell.text
            longest = max(longest, width_of(text))
            if wrap:
                space = columns[column] if len(row) > 1 else max(1, width - gutters[0])
                hang = width_of(hanging(cell, space))
                if len(cuts := folds(text, space, word_wrap=word_wrap, hang=hang)) > 1:
                    starts[index, column] = cuts
                    height = max(height, len(cuts))
        lines.extend((index, part) for part in range(height))
    return GridLayout(rows, lines, starts, gutters, columns, longest)


def _widest(texts: Iterable[str]) -> int:
    return max(map(width_of, texts), default=0)


class LineView(ScrollView):
    """Scrolls lines that a subclass paints. They are cut at the right edge unless the subclass sets ``overflow-x``."""

    DEFAULT_CSS = """
    LineView {
        background: transparent;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        scrollbar-color: $foreground 25%;
        scrollbar-color-hover: $foreground 40%;
        scrollbar-color-active: $foreground 40%;
        scrollbar-background: $foreground 5%;
        scrollbar-background-hover: $foreground 5%;
        scrollbar-background-active: $foreground 5%;
        scrollbar-corner-color: $foreground 5%;
    }
    """


SMALL = 600
"""Rows that are folded on the loop; more of them go to a thread."""
SMALL_TEXT = 40_000
ROLES = (
    *("heading", "muted", "gutter", "fold", "accent", "selected", "warning", "error", "plus", "minus"),
    *("added", "added-word", "removed", "removed-word"),
    *("key", "keyword", "string", "number", "comment", "name"),
)
OWN_GROUND = {"added", "added-word", "removed", "removed-word"}


class RowView(LineView, can_focus=True):
    """Shows rows. Give it plain rows with ``put``, or a function that makes them in a thread with ``show``."""

    DEFAULT_CSS = """
    RowView {
        & > .sheet--heading { text-style: bold; }
        & > .sheet--plus, & > .sheet--string { color: $text-success; }
        & > .sheet--minus { color: $text-error; }
        & > .sheet--added { background: $success 12%; }
        & > .sheet--added-word { background: $success 35%; text-style: bold; }
        & > .sheet--removed { background: $error 12%; }
        & > .sheet--removed-word { background: $error 35%; text-style: bold; }
        & > .sheet--muted, & > .sheet--fold, & > .sheet--comment { color: $text-muted; }
        & > .sheet--gutter { color: $text-muted; }
        & > .sheet--key { color: $text-muted; }
        & > .sheet--keyword, & > .sheet--accent { color: $text-accent; }
        & > .sheet--number { color: $text-warning; }
        & > .sheet--name { color: $text-primary; }
        & > .sheet--warning { color: $text-warning; }
        & > .sheet--error { color: $text-error; text-style: bold; }
        & > .sheet--selected { background: $primary 10%; text-style: bold; }

        &:ansi {
            & > .sheet--added { color: $text-success; background: transparent; }
            & > .sheet--removed { color: $text-error; background: transparent; }
            & > .sheet--added-word { color: $text-success; background: transparent; text-style: bold reverse; }
            & > .sheet--removed-word { color: $text-error; background: transparent; text-style: bold reverse; }
            & > .sheet--selected { background: transparent; text-style: bold reverse; }
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"sheet--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move('down')", "Down", show=False),
        Binding("k,up", "move('up')", "Up", show=False),
        Binding("g,home", "move('home')", "Top", show=False),
        Binding("G,end", "move('end')", "End", show=False),
        Binding("space,pagedown", "move('page_down')", "Page down", show=False),
        Binding("pageup", "move('page_up')", "Page up", show=False),
    ]

    wrap: var[bool] = var(True)
    """Whether long lines are folded; otherwise the text scrolls sideways."""

    @dataclass
    class LaidOut(Message):
        """The number of lines at the present width is known."""

        view: RowView
        lines: int

        @property
        def control(self) -> RowView:
            return self.view

    @dataclass
    class Picked(Message):
        """A row was clicked."""

        view: RowView
        row: int

        @property
        def control(self) -> RowView:
            return self.view

    def __init__(self, rows: Sequence[GridRow] = (), *, word_wrap: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.word_wrap = word_wrap
        self._wanted = rows
        """The rows to lay out. The layout has those that are painted."""
        self._layout_now: GridLayout | None = None
        self._styles: dict[str, Style] = {}
        self._width = 0
        self._made = False
        self._strips: LRUCache[tuple[int, int, int], Strip] = LRUCache(1_000)

    @property
    def rows(self) -> Sequence[GridRow]:
        """The rows that are shown; before the first layout, those that will be."""
        shown = self._layout_now.rows if self._layout_now else self._wanted
        return shown if isinstance(shown, Sequence) else self._wanted

    @property
    def line_count(self) -> int:
        return len(self._layout_now.lines) if self._layout_now else len(self._wanted)

    def put(self, rows: Sequence[GridRow]) -> None:
        """Show ``rows`` from the top."""
        self._stop("build")
        self._take(rows)
        self.scroll_to(0, 0, animate=False, force=True)

    def swap(self, rows: Sequence[GridRow]) -> None:
        """Show ``rows``, which are mostly the same, at the same scroll position."""
        self._stop("build")
        self._take(rows)

    def reveal(self, row: int, above: int = 1) -> None:
        """Scroll so that ``row`` is near the top, with ``above`` lines before it."""
        lines = self._layout_now.lines if self._layout_now else ()
        at = next((index for index, place in enumerate(lines) if place == (row, 0)), row)
        self.scroll_to(y=max(0, at - above), animate=False, force=True)

    @work(exclusive=True, group="build", exit_on_error=False)
    async def show(self, *builds: Callable[[], Sequence[GridRow]]) -> None:
        """Make the rows in a thread; each further function makes a better version of the same rows."""
        self._made = False
        for index, build in enumerate(builds):
            rows = await asyncio.to_thread(build)
            self._made = True
            self._take(rows)
            if not index:
                self.scroll_to(0, 0, animate=False, force=True)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show why rows can't be made; if only a better version fails, keep the first one."""
        error = cast("Worker[None]", event.worker).error
        if event.state is WorkerState.ERROR and not self._made:
            self._take([line((painted(f"Cannot show this: {type(error).__name__}: {error}"), "error"))])

    def action_move(self, where: str) -> None:
        """Scroll without animation, also before the scrollbars are laid out."""
        page = max(1, self.scrollable_content_region.height - 1)
        steps = {"up": -1, "down": 1, "page_up": -page, "page_down": page, "home": -self.virtual_size.height}
        self.scroll_relative(y=steps.get(where, self.virtual_size.height), animate=False, force=True)

    def _stop(self, group: str) -> None:
        for worker in list(self.workers):
            if worker.node is self and worker.group == group:
                worker.cancel()

    def _take(self, rows: Sequence[GridRow]) -> None:
        self._wanted = rows
        self._fold()

    def watch_wrap(self) -> None:
        self.styles.overflow_x = "hidden" if self.wrap else "auto"
        self.scroll_to(0, animate=False, force=True)
        self._fold()

    def on_resize(self, _event: events.Resize) -> None:
        self._fold()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def _fold(self) -> None:
        width = self._width = self.scrollable_content_region.width
        if not width:
            return
        rows, wrap, word_wrap = self._wanted, self.wrap, self.word_wrap
        small = len(rows) <= SMALL and sum(len(cell.text) for row in rows for cell in row) <= SMALL_TEXT
        if small:
            self._stop("fold")
            self._lay(lay_out(rows, width, wrap=wrap, word_wrap=word_wrap))
        else:
            self._fold_later(rows, width)

    @work(exclusive=True, group="fold")
    async def _fold_later(self, rows: Sequence[GridRow], width: int) -> None:
        wrap, word_wrap = self.wrap, self.word_wrap
        layout = await asyncio.to_thread(lambda: lay_out(rows, width, wrap=wrap, word_wrap=word_wrap))
        if rows is self._wanted:
            self._lay(layout)

    def _lay(self, layout: GridLayout) -> None:
        changed = self._layout_now is None or len(layout.lines) != len(self._layout_now.lines)
        self._layout_now = layout
        self._strips.clear()
        width = self._width
        over = 0 if self.wrap else max(0, layout.longest - min(layout.columns))
        self.virtual_size = Size(width + over, len(layout.lines))
        self.refresh()
        if changed:
            self.post_message(self.LaidOut(self, len(layout.lines)))

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width, index = self._width, scroll_y + y
        layout = self._layout_now
        if layout is None or index >= len(layout.lines):
            return Strip.blank(width, self._style(""))
        if self.text_selection is not None:
            return self._paint(layout, index, scroll_x)
        key = (index, scroll_x, width)
        if (strip := self._strips.get(key)) is None:
            strip = self._strips[key] = self._paint(layout, index, scroll_x)
        return strip

    def _paint(self, layout: GridLayout, index: int, scroll_x: int) -> Strip:
        number, part = layout.lines[index]
        row = layout.rows[number]
        width = self._width
        strips: list[Strip] = []
        for column, cell in enumerate(row):
            last = column == len(row) - 1
            space = (width - sum(strip.cell_length for strip in strips)) if last else 0
            total = space or layout.gutters[column] + layout.columns[column]
            gutter = layout.gutters[column] if len(row) > 1 or cell.gutter or layout.gutters[0] else 0
            strips.append(self._gutter(cell, gutter, first=part == 0))
            place = layout.slice(number, column, part, cell.text)
            pieces = _cut(cell, *place) if place else []
            strip = Strip(self._segments(pieces, cell, number, place[0] if place else 0, last=last))
            ground = self._style(cell.tone) if cell.tone else self._style("")
            room = max(0, total - gutter)
            if part and place and (hang := hanging(cell, room)):
                strips.append(Strip([Segment(hang, self._blend("muted", cell.tone))]))
                room -= strips[-1].cell_length
            shown = strip.crop_extend(scroll_x, scroll_x + room, ground)
            strips.append(shown.apply_offsets((place[0] if place else 0) + scroll_x, number) if last else shown)
            if not last:
                strips.append(Strip.blank(GAP, self._style("")))
        return Strip.join(strips)

    def _gutter(self, cell: GridCell, width: int, *, first: bool) -> Strip:
        style = self._style("gutter")
        if cell.tone:
            style += Style(color=self._style(cell.tone).color, bgcolor=self._style(cell.tone).bgcolor)
        return Strip([Segment(cell.gutter if first else "", style)]).adjust_cell_length(width, style)

    def _segments(
        self, pieces: Sequence[tuple[str, str | Style]], cell: GridCell, row: int, start: int, *, last: bool
    ) -> list[Segment]:
        segments = [Segment(text, self._blend(role, cell.tone)) for text, role in pieces]
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None and last else None
        if span is None:
            return segments
        low, high = span[0] - start, (10**9 if span[1] == -1 else span[1]) - start
        mark = self.screen.get_component_rich_style("screen--selection")
        marked: list[Segment] = []
        position = 0
        for text, style, _ in segments:
            a, b = max(0, low - position), max(0, high - position)
            marked += [Segment(text[:a], style), Segment(text[a:b], (style or Style()) + mark)]
            marked.append(Segment(text[max(a, b) :], style))
            position += len(text)
        return [segment for segment in marked if segment.text]

    def _blend(self, role: str | Style, tone: str) -> Style:
        ground = self._style(tone) if tone else self._style("")
        if isinstance(role, Style):
            return ground + role
        if not role:
            return ground
        style = self._style(role)
        if not tone or role in OWN_GROUND:
            return style
        return style + Style(bgcolor=ground.bgcolor)

    def _style(self, role: str) -> Style:
        style = self._styles.get(role)
        if style is None:
            style = self.get_component_rich_style(f"sheet--{role}") if role else self.rich_style
            self._styles[role] = style
        return style

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(row[-1].text for row in self.rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    @on(events.Click)
    def _pick(self, event: events.Click) -> None:
        layout, index = self._layout_now, int(self.scroll_offset.y) + event.y
        if layout and index < len(layout.lines):
            self.post_message(self.Picked(self, layout.lines[index][0]))


def _cut(cell: GridCell, start: int, end: int) -> list[tuple[str, str | Style]]:
    """Return the pieces of ``cell`` between two places of its text."""
    if start == 0 and end >= sum(len(text) for text, _ in cell.pieces):
        return list(cell.pieces)
    found: list[tuple[str, str | Style]] = []
    position = 0
    for text, role in cell.pieces:
        if part := text[max(0, start - position) : max(0, end - position)]:
            found.append((part, role))
        position += len(text)
        if position >= end:
            break
    return found
