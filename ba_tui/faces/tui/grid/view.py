"""The cells of a grid: pages that are fetched when they become visible, a cursor and a selection.

A line-API view: the cost of a key does not depend on the number of rows. The pane handles other keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
from ba_tui.core.text.cells import fit
from ba_tui.faces.tui.grid.feed import NULL, CellSelection, RowFeed, cell_text, cell_width
from ba_tui.faces.tui.inspector.rows import LineView

GAP = 2
NARROWEST = 4
"""Least width, in cells, at which the last column of the grid is shown in part."""
MOST_WIDTH = 300


class ColumnPlace(NamedTuple):
    """A visible column: its number in the table, its position ``x`` and ``width``; ``whole`` if it is not cut off."""

    column: int
    x: int
    width: int
    frozen: bool
    whole: bool


class ColumnPlan:
    """``measure`` returns the width that a column's visible cells need. Only the user can make a column narrower."""

    def __init__(self, count: int, measure: Callable[[int], int]) -> None:
        self._count = count
        self._measure = measure
        self._widths: dict[int, int] = {}
        self._chosen: dict[int, int] = {}
        """Widths that the user set."""
        self._hidden: set[int] = set()
        self._frozen = 0
        self._left = 0
        self.visible: Sequence[int] = range(count)
        """In order."""

    @property
    def hidden(self) -> int:
        return len(self._hidden)

    @property
    def frozen(self) -> int:
        """The number of columns that stay visible."""
        return sum(index < self._frozen for index in self.visible) if self._frozen else 0

    def hide(self, index: int) -> int:
        """Take a column out of sight, unless it is the last one; return the one that is there now."""
        if len(self.visible) > 1:
            after = self.step(index, 1)
            self._hidden.add(index)
            self._show()
            return after if after != index else self.visible[-1]
        return index

    def show_all(self) -> None:
        self._hidden.clear()
        self._show()

    def freeze(self, index: int) -> None:
        """Keep the columns up to ``index`` in sight; the same again lets them go."""
        self._frozen = 0 if self._frozen == index + 1 else index + 1
        self._left = 0

    def widen(self, index: int, by: int) -> None:
        """Make a column wider or, with less than 0, narrower."""
        self._chosen[index] = max(NARROWEST, min(MOST_WIDTH, self.width(index) + by))

    def step(self, index: int, by: int) -> int:
        """Return the visible column that many places from ``index``, or the last on that side."""
        place = self.visible.index(index) if index in self.visible else 0
        return self.visible[max(0, min(len(self.visible) - 1, place + by))]

    def between(self, one: int, other: int) -> Sequence[int]:
        """Return the visible columns from one to the other, both included."""
        low, high = sorted((one, other))
        return [index for index in self.visible[self._at(low) :] if index <= high]

    def places(self, width: int, start: int) -> Sequence[ColumnPlace]:
        """Return the columns between ``start`` and ``width``."""
        places: list[ColumnPlace] = []
        for index, frozen in self._shown():
            limit = width - width // 3 if frozen else width
            room = limit - start
            needed = self.width(index)
            if room < min(needed, NARROWEST):
                if frozen:
                    continue
                break
            places.append(ColumnPlace(index, start, min(needed, room), frozen, needed <= room))
            start += places[-1].width + GAP
        return places

    def reveal(self, index: int, width: int, start: int) -> None:
        """Scroll sideways so that a column is seen whole."""
        if index < self._frozen:
            return
        if index < self._left:
            self._left = index
            return
        places = self.places(width, start)
        if any(place.column == index and place.whole for place in places):
            return
        frozen = [place for place in places if place.frozen]
        room = width - (frozen[-1].x + frozen[-1].width + GAP if frozen else start)
        first, at = index, self._at(index)
        used = self.width(index)
        while at > 0 and self.visible[at - 1] >= self._frozen:
            used += self.width(self.visible[at - 1]) + GAP
            if used > room:
                break
            at -= 1
            first = self.visible[at]
        self._left = max(self._left, first)

    def width(self, index: int) -> int:
        """Return the width of a column: the user's choice, else the width of its widest visible cell."""
        if index in self._chosen:
            return self._chosen[index]
        width = self._widths[index] = max(self._widths.get(index, 1), self._measure(index))
        return width

    def _at(self, index: int) -> int:
        """Return the place of the first visible column from ``index`` on."""
        if not self._hidden:
            return index
        return next((place for place, each in enumerate(self.visible) if each >= index), len(self.visible) - 1)

    def _shown(self) -> Sequence[tuple[int, bool]]:
        frozen = [(index, True) for index in self.visible[: self.frozen]]
        start = self._at(max(self._left, self._frozen))
        return [*frozen, *((index, False) for index in self.visible[start : start + 400] if index >= self._frozen)]

    def _show(self) -> None:
        self.visible = [index for index in range(self._count) if index not in self._hidden]


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
        """The cursor, the selection or the visible part has changed."""

    @dataclass
    class Failed(Message):
        """Rows can't be had; ``words`` say why in a line."""

        words: str

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
        """Fetch pages until the visible rows are loaded; rows that were only scrolled past are not fetched."""
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
        """The number of rows that fit."""
        return max(1, self.scrollable_content_region.height - 1)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _lay_out(self, *, scrolled: bool = False) -> None:
        """Compute the layout again; after scrolling, painted rows are reused."""
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
            right = self.feed.columns[place.column].numeric
            segments.append(Segment(fit(self._heading(place.column), place.width, right=right), style))
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
            text = fit(text, place.width, right=self.feed.columns[place.column].numeric)
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
        """Return the columns of a row that are selected, first and last."""
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
        """Move by a screen."""
        self.go(self.cursor[0] + by * (self._height - 1))

    def action_ends(self, rows: int, columns: int) -> None:
        """Move to the first or last row or column."""
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
        """Select while the cursor moves from here on, or select everything."""
        if not self.feed.ready:
            return
        self.selecting, self.start = not all_rows, self.cursor
        if all_rows:
            self.start, self.cursor = (0, self.plan.visible[0]), (max(0, self.feed.total - 1), self.plan.visible[-1])
        self.refresh()
        self.post_message(self.Changed())

    @property
    def selected(self) -> CellSelection:
        """Return the selected cells, else the one at the cursor."""
        start = self.start or self.cursor
        low, high = sorted((start[0], self.cursor[0]))
        return CellSelection(low, high - low + 1, tuple(self.plan.between(start[1], self.cursor[1])))

    def deselect(self) -> bool:
        """Return False when nothing was selected."""
        if self.start is None and not self.selecting:
            return False
        self.start, self.selecting = None, False
        self.refresh()
        self.post_message(self.Changed())
        return True

    def reshaped(self, column: int) -> None:
        """Lay out changed columns and move the cursor to ``column``."""
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
