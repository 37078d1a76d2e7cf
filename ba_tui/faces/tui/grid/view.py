"""The cells of a grid: a window of pages that are fetched as they come in sight, a cursor and a selection.

A line-API view: what a key costs does not depend on the number of rows. Keys that do more than move are the pane's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events, on, work
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.worker import Worker

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, Column
from ba_tui.faces.tui.grid.cells import NULL, at_right, cell_text, cell_width, fitted
from ba_tui.faces.tui.grid.columns import GAP, ColumnPlace, ColumnPlan
from ba_tui.faces.tui.grid.feed import RowFeed
from ba_tui.faces.tui.grid.selection import CellSelection
from ba_tui.faces.tui.widgets.line_view import LineView

STRIPS = 500


class GridView(LineView, can_focus=True):
    """``cursor`` and ``start`` are a row of the arrangement and a column of the table, both from 0."""

    DEFAULT_CSS = """
    GridView {
        & > .grid--head { text-style: bold underline; }
        & > .grid--number { color: $text-muted; }
        & > .grid--null { color: $text-muted; text-style: italic; }
        & > .grid--row { background: $foreground 6%; }
        & > .grid--marked { background: $primary 30%; text-style: underline; }
        & > .grid--cursor { text-style: reverse; }
        &:ansi {
            & > .grid--row, & > .grid--marked { background: transparent; }
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"grid--{role}" for role in ("head", "number", "null", "row", "marked", "cursor")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "step(1, 0)", "Down", show=False),
        Binding("up,k", "step(-1, 0)", "Up", show=False),
        Binding("right,l", "step(0, 1)", "Right", show=False),
        Binding("left,h", "step(0, -1)", "Left", show=False),
        Binding("shift+down", "step(1, 0, True)", "Select down", show=False),
        Binding("shift+up", "step(-1, 0, True)", "Select up", show=False),
        Binding("shift+right", "step(0, 1, True)", "Select right", show=False),
        Binding("shift+left", "step(0, -1, True)", "Select left", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("home", "ends(0, -1)", "First column", show=False),
        Binding("end", "ends(0, 1)", "Last column", show=False),
        Binding("ctrl+home,g", "ends(-1, 0)", "First row", show=False),
        Binding("ctrl+end,G", "ends(1, 0)", "Last row", show=False),
    ]

    class Changed(Message):
        """The cursor, the selection, or what is shown is another."""

    class Failed(Message):
        """Rows can't be had; ``words`` say why in a line."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, datasets: Datasets, name: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.feed = RowFeed(datasets, name)
        self.plan = ColumnPlan(0, lambda _: 0)
        self.cursor = (0, 0)
        self.start: tuple[int, int] | None = None
        self.selecting = False
        """Whether moving selects, without Shift."""
        self._arranging: Worker[None] | None = None
        self._reading = False
        self._note = "Loading …"
        self._gutter = 3
        self._planned: Sequence[Column] = ()
        """The columns that the plan and the places are of."""
        self._places: Sequence[ColumnPlace] = ()
        self._styles: dict[str, Style] = {}
        self._strips: LRUCache[tuple[int, ...], Strip] = LRUCache(STRIPS)

    @on(events.Mount)
    def _open(self) -> None:
        self.show(self.feed.arrangement)

    # Rows

    @property
    def busy(self) -> bool:
        """Whether rows are being arranged."""
        return self._arranging is not None and not self._arranging.is_finished

    def show(self, wanted: Arrangement) -> None:
        """Show other rows, or the same in another order, once the engine has found them."""
        self._arranging = self._arrange(wanted)

    def cancel(self) -> bool:
        """Stop arranging; the rows stay as they were. False when nothing was under way."""
        if not self.busy or self._arranging is None:
            return False
        self._arranging.cancel()
        return True

    @work(exclusive=True, group="arrange", exit_on_error=False)
    async def _arrange(self, wanted: Arrangement) -> None:
        self.call_later(self.post_message, self.Changed())
        try:
            await self.feed.arrange(wanted)
        except BaError as error:
            self.post_message(self.Failed(error.with_hint))
            return
        finally:
            self._note = "No rows."
            self.call_later(self.post_message, self.Changed())
        self.cursor, self.start, self.selecting = (0, self.cursor[1]), None, False
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._lay_out()

    def _read_on(self) -> None:
        if not self._reading and self.feed.lacks(*self._seen()):
            self._reading = True
            self._read()

    @work(group="pages", exit_on_error=False)
    async def _read(self) -> None:
        """Fetch pages until what is in sight is here; what was only passed by is not fetched."""
        try:
            while self.feed.lacks(*self._seen()):
                await self.feed.fetch(*self._seen())
                self._lay_out(scrolled=True)
                self.post_message(self.Changed())
        except BaError as error:
            self.post_message(self.Failed(error.with_hint))
        finally:
            self._reading = False

    def _seen(self) -> tuple[int, int]:
        top = int(self.scroll_offset.y)
        return top, top + self._height

    # Layout

    @property
    def _height(self) -> int:
        """Rows that there is room for."""
        return max(1, self.scrollable_content_region.height - 1)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _lay_out(self, *, scrolled: bool = False) -> None:
        """Work out again where everything stands; rows that were only ``scrolled`` are painted as before."""
        if not self.feed.ready:
            return
        if self._planned != self.feed.columns:
            # Another table, or one whose file has other columns now: places and rows change together.
            self._planned, self._places = self.feed.columns, ()
            self.plan = ColumnPlan(len(self._planned), self._measured)
            self.cursor, self.start = (self.cursor[0], min(self.cursor[1], max(0, len(self._planned) - 1))), None
            scrolled = False
        if not self._width:
            return
        before = self._gutter, self._places
        numbers = [row[0] for at in range(*self._seen()) if (row := self.feed.row(at))]
        self._gutter = max(self._gutter, len(f"{max(numbers, default=0) + 1}"))
        self._places = self.plan.places(self._width, self._gutter + 1)
        if not scrolled or before != (self._gutter, self._places):
            self._strips.clear()
        size = Size(self._width, self.feed.total + 1)
        if size != self.virtual_size:
            self.virtual_size = size
        self.refresh()

    def _repaint(self, first: int, last: int, *, every: bool) -> None:
        """Paint the rows ``first`` and ``last`` again; with ``every``, also those between them."""
        top, bottom = self._seen()
        for at in range(max(first, top), min(last + 1, bottom)) if every else {first, last}:
            if top <= at < bottom:
                self.refresh(Region(0, at - top + 1, self._width, 1))

    def _measured(self, index: int) -> int:
        if not self.feed.ready:
            return 1
        seen = (row[1][index] for at in range(*self._seen()) if (row := self.feed.row(at)))
        texts = (cell_text(value) for value in seen)
        return max((cell_width(text) for text in (*texts, self._heading(index))), default=1)

    def _heading(self, index: int) -> str:
        name = cell_text(self.feed.columns[index].name, 60)
        order = [each for each in self.feed.arrangement.order if each.column == self.feed.columns[index].name]
        return f"{name} {'↓' if order[0].descending else '↑'}" if order else name

    @on(events.Resize)
    def _fit(self) -> None:
        self._lay_out()
        self._reveal()
        self._read_on()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._lay_out(scrolled=True)
            self._read_on()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    # Painting

    def render_line(self, y: int) -> Strip:
        width, ground = self._width, self._style("")
        if not self.feed.ready:
            return Strip([Segment(self._note if y == 1 else "", ground)]).adjust_cell_length(width, ground)
        if y == 0:
            return self._head(width)
        at = int(self.scroll_offset.y) + y - 1
        if at >= self.feed.total:
            words = self._note if at == 0 else ""
            return Strip([Segment(words, ground)]).adjust_cell_length(width, ground)
        here, marked = at == self.cursor[0], self._marked(at)
        key = (at, self.cursor[1] if here else -1, *marked)
        if (strip := self._strips.get(key)) is None:
            strip = self._row(at, marked, here=here)
            if self.feed.row(at):
                self._strips[key] = strip
        return strip

    def _head(self, width: int) -> Strip:
        style = self._style("head")
        segments = [Segment(" " * (self._gutter + 1), style)]
        for place in self._places:
            right = at_right(self.feed.columns[place.column])
            segments.append(Segment(fitted(self._heading(place.column), place.width, right=right), style))
            segments.append(Segment(self._gap(place), style))
        return Strip(segments).adjust_cell_length(width, style)

    def _row(self, at: int, marked: tuple[int, int], *, here: bool) -> Strip:
        found = self.feed.row(at)
        ground = self._style("row" if here else "")
        number = f"{found[0] + 1:>{self._gutter}} " if found else f"{'…':>{self._gutter}} "
        segments = [Segment(number, ground + self._style("number"))]
        plain: list[str] = []
        for place in self._places:
            value = found[1][place.column] if found else ""
            text = NULL if value is None else cell_text(value)
            text = fitted(text, place.width, right=at_right(self.feed.columns[place.column]))
            marked_here = marked[0] <= place.column <= marked[1]
            under = here and place.column == self.cursor[1]
            if value is None or marked_here or under:
                style = ground + self._style("null") if value is None else ground
                style += self._style("marked") if marked_here else Style()
                style += self._style("cursor") if under else Style()
                segments += [Segment("".join(plain), ground), Segment(text, style)]
                plain = [self._gap(place)]
            else:
                # Cells that look alike are painted as one.
                plain += [text, self._gap(place)]
        segments.append(Segment("".join(plain), ground))
        return Strip(segments).adjust_cell_length(self._width, ground)

    def _gap(self, place: ColumnPlace) -> str:
        last_frozen = place.frozen and not any(each.frozen and each.x > place.x for each in self._places)
        return "│".ljust(GAP) if last_frozen else " " * GAP

    def _marked(self, at: int) -> tuple[int, int]:
        """The columns of a row that are selected, first and last."""
        if self.start is None or not min(self.start[0], self.cursor[0]) <= at <= max(self.start[0], self.cursor[0]):
            return (-1, -1)
        return min(self.start[1], self.cursor[1]), max(self.start[1], self.cursor[1])

    def _style(self, role: str) -> Style:
        if not role and role not in self._styles:
            self._styles[role] = self.rich_style
        if role not in self._styles:
            self._styles[role] = self.get_component_rich_style(f"grid--{role}", partial=role not in {"row", "marked"})
        return self._styles[role]

    # Moving

    def action_step(self, rows: int, columns: int, select: bool = False) -> None:
        """Move the cursor; ``select`` keeps where it began selected."""
        self.go(self.cursor[0] + rows, self.plan.step(self.cursor[1], columns) if columns else None, select=select)

    def action_page(self, by: int) -> None:
        """A screen up or down."""
        self.go(self.cursor[0] + by * (self._height - 1))

    def action_ends(self, rows: int, columns: int) -> None:
        """To the first or last row, or column."""
        row = self.cursor[0] if not rows else 0 if rows < 0 else self.feed.total - 1
        visible = self.plan.visible
        self.go(row, (visible[0] if columns < 0 else visible[-1]) if columns and visible else None)

    def go(self, row: int, column: int | None = None, *, select: bool = False) -> None:
        """Put the cursor on a cell of the arrangement."""
        if not self.feed.ready:
            return
        select = select or self.selecting
        before, selected = self.cursor, self.start
        self.start = (self.start or self.cursor) if select else None
        row = max(0, min(self.feed.total - 1, row))
        self.cursor = (row, self.cursor[1] if column is None else column)
        self._reveal()
        touched = {before[0], row}
        if selected or self.start:
            touched |= {each[0] for each in (selected, self.start) if each}
        self._repaint(min(touched), max(touched), every=bool(selected or self.start))
        self._read_on()
        self.post_message(self.Changed())

    def select(self, *, all_rows: bool = False) -> None:
        """Select while moving from here on; or everything at once."""
        if not self.feed.ready:
            return
        self.selecting, self.start = not all_rows, self.cursor
        if all_rows:
            self.start, self.cursor = (0, self.plan.visible[0]), (max(0, self.feed.total - 1), self.plan.visible[-1])
        self.refresh()
        self.post_message(self.Changed())

    @property
    def selected(self) -> CellSelection:
        """The selected cells; the one under the cursor when none are."""
        start = self.start or self.cursor
        low, high = sorted((start[0], self.cursor[0]))
        return CellSelection(low, high - low + 1, tuple(self.plan.between(start[1], self.cursor[1])))

    def deselect(self) -> bool:
        """False when nothing was selected."""
        if self.start is None and not self.selecting:
            return False
        self.start, self.selecting = None, False
        self.refresh()
        self.post_message(self.Changed())
        return True

    def reshaped(self, column: int) -> None:
        """Columns were hidden, shown or frozen; the cursor goes to ``column``."""
        self.cursor = (self.cursor[0], column)
        self._lay_out()
        self._reveal()
        self.post_message(self.Changed())

    def _reveal(self) -> None:
        """Scroll so that the cursor is in sight."""
        if not self.feed.ready or not self._width:
            return
        top, row = int(self.scroll_offset.y), self.cursor[0]
        wanted = row if row < top else max(top, row - self._height + 1)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, force=True, immediate=True)
        if not any(each.column == self.cursor[1] and each.whole for each in self._places):
            self.plan.reveal(self.cursor[1], self._width, self._gutter + 1)
            self._lay_out()

    @on(events.Click)
    def _clicked(self, event: events.Click) -> None:
        at = int(self.scroll_offset.y) + event.y - 1
        place = next((each for each in self._places if each.x <= event.x < each.x + each.width + GAP), None)
        if event.y and at < self.feed.total and place:
            self.go(at, place.column, select=event.shift)
