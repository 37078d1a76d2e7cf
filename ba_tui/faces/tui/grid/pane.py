"""The grid pane and its screen: facts about the table, the whole cell, statistics, an input line, keys.

The engine does the work; the pane sends requests and shows results.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, Cell, Column, ColumnProfile, RowFilter, RowOrder
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.grid.data_pane import DataPane, Purpose
from ba_tui.faces.tui.grid.feed import NULL, CellSelection, CopyFormat, cell_text, letters, plain
from ba_tui.faces.tui.grid.traps import WarningLine
from ba_tui.faces.tui.grid.view import GridView
from ba_tui.faces.tui.inspector.rows import RowView, line, painted


class CellScreen(ModalScreen[None]):
    """``title`` names the cell. JSON is shown indented."""

    DEFAULT_CSS = """
    CellScreen {
        background: $surface;
        padding: 0 1;
        & .title { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
        & RowView { height: 1fr; }
        & .keys { height: 1; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Close", show=False),
        Binding("y,ctrl+y", "copy", "Copy", show=False),
    ]

    def __init__(self, title: str, value: Cell) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        size = f" · {count(len(self._value), 'character')}" if isinstance(self._value, str) else ""
        yield Static(cell_text(f"{self._title}{size}"), classes="title", markup=False)
        yield RowView()
        yield Static("Esc close · ↑ ↓ scroll · y copy", classes="keys", markup=False)

    def on_mount(self) -> None:
        view = self.query_one(RowView)
        view.put([line((painted(each), "")) for each in _lines(self._value)])
        view.focus()

    def action_copy(self) -> None:
        """Copy the value as it is."""
        self.post_message(CopyToClipboard(paintable(plain(self._value)), ""))

    def action_close(self) -> None:
        self.dismiss()


def _lines(value: Cell) -> list[str]:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.dumps(json.loads(value), indent=2, ensure_ascii=False).splitlines()
        except (ValueError, RecursionError):
            return value.splitlines()
    return [NULL] if value is None else plain(value).splitlines() or [""]


_NULL = regex(r"(?i)(?:is\s+)?null")
_NOT_NULL = regex(r"(?i)(?:is\s+)?not\s+null|!\s*null")
_COMPARED = regex(r"(?s)(!=|<>|<=|>=|=|<|>)\s*(.+)")
_AND = regex(r"(?i)\s+and\s+(?=[=<>!])")
LONGEST = 60
TOP = 8


def sorted_by(arrangement: Arrangement, column: str, *, more: bool) -> Arrangement:
    """Sort by ``column``: first ascending, then descending, then not; ``more`` keeps the other columns."""
    before = next((each for each in arrangement.order if each.column == column), None)
    others = tuple(each for each in arrangement.order if each.column != column) if more else ()
    if before is None:
        return replace(arrangement, order=(*others, RowOrder(column)))
    if before.descending:
        return replace(arrangement, order=others)
    after = RowOrder(column, descending=True)
    order = tuple(after if each.column == column else each for each in arrangement.order) if more else (after,)
    return replace(arrangement, order=order)


def filtered_by(arrangement: Arrangement, column: Column, text: str) -> Arrangement:
    """Replace the filters on ``column`` by what ``text`` says; without text they are gone."""
    others = tuple(each for each in arrangement.filters if each.column != column.name)
    return replace(arrangement, filters=(*others, *_filters(column, text.strip())))


def _filters(column: Column, text: str) -> Sequence[RowFilter]:
    if not text:
        return ()
    return [_filter(column, part.strip()) for part in _AND.split(text)]


def _filter(column: Column, text: str) -> RowFilter:
    if _NOT_NULL.fullmatch(text):
        return RowFilter(column.name, "is not null")
    if _NULL.fullmatch(text):
        return RowFilter(column.name, "is null")
    if found := _COMPARED.fullmatch(text):
        return _compared(column, found[1], found[2].strip())
    if text[0] in "=<>!" and text.strip("=<>! ") == "":
        raise UsageError(f"{text} has no value behind it.")
    return RowFilter(column.name, "contains" if column.kind in {"text", "other"} else "=", text)


def _compared(column: Column, sign: str, value: str) -> RowFilter:
    match sign:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return RowFilter(column.name, sign, value)
        case _:
            return RowFilter(column.name, "!=", value)


def filter_text(arrangement: Arrangement, column: str) -> str:
    """Return the filters on ``column`` as they would be typed."""
    return " and ".join(_condition(each) for each in arrangement.filters if each.column == column)


def _condition(each: RowFilter) -> str:
    if each.operator in {"is null", "is not null"}:
        return each.operator.removeprefix("is ")
    return str(each.value) if each.operator == "contains" else f"{each.operator} {each.value}"


def arrangement_words(arrangement: Arrangement) -> str:
    """Return ``region contains north · sorted by amount ↓``; empty for the table as it is."""
    parts = [_said(each) for each in arrangement.filters]
    if arrangement.search:
        parts.append(f"found {one_line(repr(arrangement.search), LONGEST)}")
    if arrangement.order:
        names = ", ".join(
            f"{one_line(each.column, 40)} {'↓' if each.descending else '↑'}" for each in arrangement.order
        )
        parts.append(f"sorted by {names}")
    return " · ".join(parts)


def _said(each: RowFilter) -> str:
    value = "" if each.operator in {"is null", "is not null"} else f" {one_line(str(each.value), LONGEST)}"
    return f"{one_line(each.column, 40)} {each.operator}{value}"


def statistics(profile: ColumnProfile, rows: int) -> str:
    """Return the statistics of a column, of ``rows`` rows, in three lines."""
    share = f" ({profile.nulls / rows:.1%})" if profile.nulls and rows else ""
    head = [f"{profile.column.name} {profile.column.type}", count(rows, "row"), f"{profile.nulls:,} NULL{share}"]
    head.append(f"{profile.distinct:,} distinct")
    spread = [("min", profile.minimum)]
    if len(profile.quartiles) == 3:
        spread += list(zip(("25 %", "median", "75 %"), profile.quartiles, strict=True))
    spread += [("max", profile.maximum), ("mean", profile.mean)]
    figures = [f"{name} {_short(value)}" for name, value in spread if value is not None]
    top = [f"{_short(each.value)} ×{each.count:,}" for each in profile.top[:TOP]]
    lines = [" · ".join(head), " · ".join(figures), f"most frequent: {', '.join(top)}" if top else ""]
    return "\n".join(cell_text(line, 1_000) for line in lines if line)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(str(value), 40)


KEYS = (
    "Esc close · s sort · f filter · / search · : row · i statistics · p chart\n"
    "v select · y c m copy, CSV, Markdown · @ mention · e export · z freeze\n"
    "Enter whole cell · < > width · - = hide, show · x all rows as they were"
)
WIDER = 4
"""Characters by which a key changes the width of a column."""
BESIDE = "↑ ↓ ← → move · Enter full screen · Esc close"
CELL = 2_000
"""Maximum characters of the cell that is shown below the grid."""


@dataclass
class MentionWanted(Message):
    """Request to insert ``text``, a mention of cells, into the prompt."""

    text: str


class GridPane(DataPane):
    """``letters``: single letters are keys."""

    DEFAULT_CSS = """
    GridPane {
        & GridView { height: 1fr; min-height: 2; }
        & .about { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
        & .cell { height: 2; color: $text-muted; }
        & .statistics { height: auto; max-height: 6; display: none; border-top: solid $foreground 25%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort(False)", "Sort by this column", show=False),
        Binding("S", "sort(True)", "Sort by this column as well", show=False),
        Binding("f", "ask('filter')", "Filter this column", show=False),
        Binding("slash,ctrl+f", "ask('search')", "Search all columns", show=False),
        Binding("x", "reset", "All rows, not sorted", show=False),
        Binding("i", "statistics", "Statistics of this column", show=False),
        Binding("p", "chart", "Draw a chart", show=False),
        Binding("z", "columns('freeze')", "Freeze up to this column", show=False),
        Binding("minus", "columns('hide')", "Hide this column", show=False),
        Binding("greater_than_sign", "columns('widen')", "Widen this column", show=False),
        Binding("less_than_sign", "columns('narrow')", "Narrow this column", show=False),
        Binding("enter", "cell", "The whole cell", show=False),
        Binding("equals_sign", "columns('all')", "Show all columns", show=False),
        Binding("v", "select", "Select from here", show=False),
        Binding("ctrl+a,a", "select(True)", "Select all", show=False),
        Binding("y,ctrl+y", "copy('tsv')", "Copy with tabs", show=False),
        Binding("c", "copy('csv')", "Copy as CSV", show=False),
        Binding("m", "copy('markdown')", "Copy as Markdown", show=False),
        Binding("at", "mention", "Mention in the prompt", show=False),
        Binding("e", "ask('export')", "Export", show=False),
        Binding("w", "traps", "List the warnings", show=False),
        Binding("colon", "ask('row')", "Go to a row", show=False),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(self, datasets: Datasets, table: str, *, letters: bool = True) -> None:
        super().__init__(KEYS if letters else BESIDE)
        self.view = GridView(datasets, table, id="grid")
        self._datasets = datasets
        self._doing = ""
        self._about = ""
        self._counted: tuple[int, Arrangement] | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="about", markup=False)
        yield WarningLine(self._datasets, self.view.feed)
        yield self.view
        yield Static(classes="cell", markup=False)
        yield Static(classes="statistics", markup=False)
        yield from self.compose_controls()

    # Display

    def action_traps(self) -> None:
        """List the warnings with their proofs."""
        if not self.query_one(WarningLine).open():
            self.say("No problems were found in this table.")

    @on(GridView.Changed)
    def _changed(self) -> None:
        self._show_about()
        self._show_cell()
        if self.query_one(".statistics").display and self._counted != self._column:
            self._count()

    @on(GridView.Failed)
    def _failed(self, event: GridView.Failed) -> None:
        event.stop()
        self.say(event.words)

    def _show_about(self) -> None:
        feed = self.view.feed
        parts = [feed.table]
        if feed.ready:
            parts += [count(feed.total, "row"), count(len(feed.columns), "column")]
        if words := arrangement_words(feed.arrangement):
            parts.append(words)
        if hidden := self.view.plan.hidden:
            parts.append(f"{count(hidden, 'column')} hidden")
        if self.view.busy:
            parts.append(f"{self._doing or 'reading'} … Esc cancels")
        if (words := cell_text(" · ".join(parts), 1_000)) != self._about:
            self._about = words
            self.query_one(".about", Static).update(words, layout=False)

    def _show_cell(self) -> None:
        view, place = self.view, self.query_one(".cell", Static)
        found = view.feed.row(view.cursor[0])
        if not view.feed.ready or found is None:
            place.update("", layout=False)
            return
        column, value = view.feed.columns[view.cursor[1]], found[1][view.cursor[1]]
        name = f"{letters(view.cursor[1])}{found[0] + 1}  {cell_text(column.name)} {column.type}: "
        text = "NULL" if value is None else paintable(plain(value)[:CELL], newlines=False)
        selected = view.selected.words if view.start is not None else ""
        place.update(Content(f"{name}{text}{f'  · selected: {selected}' if selected else ''}"), layout=False)

    @property
    def _column(self) -> tuple[int, Arrangement]:
        """The column and the arrangement, on which the statistics depend."""
        return self.view.cursor[1], self.view.feed.arrangement

    def _count(self) -> None:
        self._counted = self._column
        self.run_worker(self._statistics, group="statistics", exclusive=True, exit_on_error=False)

    async def _statistics(self) -> None:
        view = self.view
        if not view.feed.ready:
            return
        feed, column, place = view.feed, view.feed.columns[view.cursor[1]], self.query_one(".statistics", Static)
        try:
            profile = await self._datasets.column(feed.table, column.name, feed.arrangement)
        except BaError as error:
            self.say(error.with_hint)
            return
        place.update(statistics(profile, feed.total))

    # Rows

    def _arrange(self, wanted: Arrangement, doing: str) -> None:
        self.say("")
        self._doing = doing
        self.view.show(wanted)

    def action_sort(self, more: bool) -> None:
        """Sort ascending, then descending, then not."""
        if self.view.feed.ready:
            name = self.view.feed.columns[self.view.cursor[1]].name
            self._arrange(sorted_by(self.view.feed.arrangement, name, more=more), "sorting")

    def action_reset(self) -> None:
        """Show all rows in the order of the table."""
        self._arrange(Arrangement(), "reading")

    def action_ask(self, purpose: Purpose) -> None:
        """Ask which rows to keep by the column under the cursor or by any, for a row to go to, or for a file."""
        feed = self.view.feed
        if not feed.ready:
            return
        name = feed.columns[self.view.cursor[1]].name
        match purpose:
            case "filter":
                hint = "> 100 · = north · north · not null · empty: all rows"
                self.ask_line.ask(
                    purpose, f"Filter {one_line(cell_text(name), 20)}:", filter_text(feed.arrangement, name), hint
                )
            case "search":
                self.ask_line.ask(purpose, "Search:", feed.arrangement.search, "text in any column · empty: all rows")
            case "row":
                self.ask_line.ask(purpose, "Go to row:", hint=f"1 to {feed.total:,}")
            case "export" | "confirm":
                hint = "an ending says the format: .csv .tsv .json .jsonl .parquet .xlsx"
                self.ask_line.ask("export", "Export to:", f"{feed.table}.csv", hint)

    def action_statistics(self) -> None:
        """Show the statistics of the column under the cursor, or show them no more."""
        place = self.query_one(".statistics", Static)
        place.display = not place.display
        if place.display:
            place.update("Counting …")
            self._count()

    def action_chart(self) -> None:
        """Draw a chart of the rows that are left."""
        if self.view.feed.ready:
            from ba_tui.faces.tui.chart_pane import ChartScreen  # noqa: PLC0415 - loaded for the first chart

            feed = self.view.feed
            self.app.push_screen(ChartScreen(self._datasets, feed.table, feed.arrangement))  # pyright: ignore[reportUnknownMemberType] - App is generic

    def action_columns(self, change: Literal["freeze", "hide", "all", "widen", "narrow"]) -> None:
        """Freeze the columns up to the cursor or let them go; hide the one under it, change its width; or show all."""
        view, column = self.view, self.view.cursor[1]
        match change:
            case "freeze":
                view.plan.freeze(column)
            case "hide":
                column = view.plan.hide(column)
            case "all":
                view.plan.show_all()
            case "widen":
                view.plan.widen(column, WIDER)
            case "narrow":
                view.plan.widen(column, -WIDER)
        view.reshaped(column)

    # Cells

    def action_cell(self) -> None:
        """Show all of the cell under the cursor, where the grid has the screen for itself."""
        view = self.view
        found = view.feed.row(view.cursor[0])
        if self._keys is BESIDE:
            raise SkipAction
        if found:
            column, place = view.feed.columns[view.cursor[1]], f"{letters(view.cursor[1])}{found[0] + 1}"
            screen = CellScreen(f"{place}  {column.name} {column.type}", found[1][view.cursor[1]])
            self.app.push_screen(screen)  # pyright: ignore[reportUnknownMemberType] - App is generic

    def action_select(self, everything: bool = False) -> None:
        """Select while the cursor moves; the same again ends it. ``everything``: all rows and visible columns."""
        if everything or not self.view.deselect():
            self.view.select(all_rows=everything)

    def action_copy(self, format: CopyFormat) -> None:
        """Copy the selected cells, else the one at the cursor."""
        if self.view.feed.ready:
            self.perform(partial(self._copy, self.view.selected, format))

    async def _copy(self, selected: CellSelection, format: CopyFormat) -> None:
        text, note = await selected.text(self.view.feed, format)
        self.post_message(CopyToClipboard(paintable(text), note))

    def action_mention(self) -> None:
        """Name the selected cells in the prompt."""
        if self.view.feed.ready:
            self.perform(partial(self._mention, self.view.selected))

    async def _mention(self, selected: CellSelection) -> None:
        self.post_message(MentionWanted(await selected.mention(self.view.feed)))

    async def save(self, path: str, *, confirmed: bool) -> None:
        feed = self.view.feed
        self.say(f"Writing {path} … Esc cancels")
        done = await self._datasets.exports.table(feed.table, path, feed.arrangement, confirmed=confirmed)
        self.say(f"Wrote {count(feed.total, 'row')} to {done.path} ({byte_size(done.size)}).")

    def answer(self, purpose: Purpose, text: str) -> None:
        view = self.view
        match purpose:
            case "filter":
                column = view.feed.columns[view.cursor[1]]
                self._arrange(filtered_by(view.feed.arrangement, column, text), "filtering")
            case "search":
                self._arrange(replace(view.feed.arrangement, search=text), "searching")
            case "row":
                number = text.replace(",", "")
                if not number.isdecimal():
                    raise UsageError(f"{text or 'Nothing'} is not a row number.")
                view.go(int(number) - 1)
            case "export" | "confirm":
                super().answer(purpose, text)

    def action_back(self) -> None:
        """Stop the running work, else clear the selection, else leave Esc to the screen."""
        if self.view.cancel():
            self.say("Cancelled. The rows are as before.")
        elif self.cancel():
            self.say("Cancelled.")
        elif not self.view.deselect():
            raise SkipAction


class GridScreen(ModalScreen[None]):
    """The table ``name`` of the session, with the cursor ``at`` a row, from 0, and a column."""

    DEFAULT_CSS = """
    GridScreen { background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f4", "close", "Close", show=False)]

    def __init__(self, datasets: Datasets, name: str, at: tuple[int, str] | None = None) -> None:
        super().__init__()
        self._at = at
        self._datasets = datasets
        self._table = name

    def compose(self) -> ComposeResult:
        yield GridPane(self._datasets, self._table)

    def on_mount(self) -> None:
        self.query_one(GridPane).view.focus()

    @on(GridView.Changed)
    def _go(self) -> None:
        """Move the cursor to the wanted cell once the rows are loaded."""
        view = self.query_one(GridPane).view
        if self._at is not None and view.feed.ready and not view.busy:
            (row, name), self._at = self._at, None
            names = [column.name for column in view.feed.columns]
            view.go(row, names.index(name) if name in names else None)

    def action_close(self) -> None:
        self.dismiss()
