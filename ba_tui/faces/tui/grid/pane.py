"""A grid with what stands around it: a line about the table, the cell in full, statistics, an input line, the keys.

The engine does the work; this says what is wanted, and shows what came of it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.datasets import Datasets, NeedsConfirmation
from ba_tui.core.ports.tables import Arrangement
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.grid.arranging import arrangement_words, filter_text, filtered_by, sorted_by, statistics
from ba_tui.faces.tui.grid.asking import AskLine, Purpose
from ba_tui.faces.tui.grid.cell_screen import CellScreen
from ba_tui.faces.tui.grid.cells import CopyFormat, cell_text, letters, plain
from ba_tui.faces.tui.grid.selection import CellSelection
from ba_tui.faces.tui.grid.traps import WarningLine
from ba_tui.faces.tui.grid.view import GridView

KEYS = (
    "Esc close · s sort · f filter · / search · : row · i statistics · p chart\n"
    "v select · y c m copy, CSV, Markdown · @ mention · e export · z freeze\n"
    "Enter whole cell · < > width · - = hide, show · x all rows as they were"
)
WIDER = 4
"""Characters by which a key changes the width of a column."""
BESIDE = "↑ ↓ ← → move · Enter full screen · Esc close"
CELL = 2_000
"""Characters of the cell that stands in full below the grid."""


class MentionWanted(Message):
    """``text`` names cells, and should stand in the prompt."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class GridPane(Vertical):
    """``letters``: single letters are keys."""

    DEFAULT_CSS = """
    GridPane {
        height: 1fr;
        & GridView { height: 1fr; min-height: 2; }
        & .about { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
        & .cell { height: 2; color: $text-muted; }
        & .statistics { height: auto; max-height: 6; display: none; border-top: solid $foreground 25%; }
        & .said { height: auto; max-height: 2; color: $text-warning; display: none; }
        & .keys { height: auto; max-height: 3; color: $text-muted; }
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
        super().__init__()
        self.view = GridView(datasets, table, id="grid")
        self._datasets = datasets
        self._keys = KEYS if letters else BESIDE
        self._doing = ""
        self._target = ""
        self._about = ""
        self._counted: tuple[int, Arrangement] | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="about", markup=False)
        yield WarningLine(self._datasets, self.view.feed)
        yield self.view
        yield Static(classes="cell", markup=False)
        yield Static(classes="statistics", markup=False)
        yield Static(classes="said", markup=False)
        yield AskLine()
        yield Static(self._keys, classes="keys", markup=False)

    # What is shown

    def action_traps(self) -> None:
        """List the warnings with their proofs."""
        if not self.query_one(WarningLine).open():
            self.say("Nothing was found wrong with this table.")

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

    def say(self, words: str) -> None:
        """Show a line above the keys; without words there is none."""
        said = self.query_one(".said", Static)
        said.display = bool(words)
        said.update(paintable(words, newlines=False))

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
        """What statistics depend on."""
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
        """Ascending, descending, then as the table is."""
        if self.view.feed.ready:
            name = self.view.feed.columns[self.view.cursor[1]].name
            self._arrange(sorted_by(self.view.feed.arrangement, name, more=more), "sorting")

    def action_reset(self) -> None:
        """All rows as the table has them."""
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
                self._ask.ask(
                    purpose, f"Filter {one_line(cell_text(name), 20)}:", filter_text(feed.arrangement, name), hint
                )
            case "search":
                self._ask.ask(purpose, "Search:", feed.arrangement.search, "text in any column · empty: all rows")
            case "row":
                self._ask.ask(purpose, "Go to row:", hint=f"1 to {feed.total:,}")
            case "export" | "confirm":
                hint = "an ending says the format: .csv .tsv .json .jsonl .parquet .xlsx"
                self._ask.ask("export", "Export to:", f"{feed.table}.csv", hint)

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
            from ba_tui.faces.tui.charts.screen import ChartScreen  # noqa: PLC0415 - loaded for the first chart

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
        """The selected cells, else the one under the cursor."""
        self._do(self._copy(self.view.selected, format))

    async def _copy(self, selected: CellSelection, format: CopyFormat) -> None:
        text, note = await selected.text(self.view.feed, format)
        self.post_message(CopyToClipboard(paintable(text), note))

    def action_mention(self) -> None:
        """Name the selected cells in the prompt."""
        self._do(self._mention(self.view.selected))

    async def _mention(self, selected: CellSelection) -> None:
        self.post_message(MentionWanted(await selected.mention(self.view.feed)))

    async def _export(self, path: str, *, confirmed: bool) -> None:
        self.say(f"Writing {path} … Esc cancels")
        try:
            done = await self._datasets.exports.table(
                self.view.feed.table, path, self.view.feed.arrangement, confirmed=confirmed
            )
        except NeedsConfirmation as error:
            self.say(str(error))
            self._target = path
            self._ask.ask("confirm", "Write it anyway? y/n:", hint="n")
            return
        self.say(f"Wrote {count(self.view.feed.total, 'row')} to {done.path} ({byte_size(done.size)}).")

    def _do(self, work: Awaitable[None]) -> None:
        """Work that may take a while; its errors become a line."""
        self.say("")
        self.run_worker(partial(self._done, work), group="work", exclusive=True, exit_on_error=False)

    async def _done(self, work: Awaitable[None]) -> None:
        try:
            if self.view.feed.ready:
                await work
        except BaError as error:
            self.say(error.with_hint)

    # The input line, and Esc

    @property
    def _ask(self) -> AskLine:
        return self.query_one(AskLine)

    @on(AskLine.Left)
    def _left(self, event: AskLine.Left) -> None:
        event.stop()
        self._ask.close()
        self.view.focus()

    @on(AskLine.Answered)
    def _answered(self, event: AskLine.Answered) -> None:
        event.stop()
        self._ask.close()
        self.view.focus()
        try:
            self._answer(event)
        except UsageError as error:
            self.say(error.with_hint)

    def _answer(self, event: AskLine.Answered) -> None:
        view, text = self.view, event.text.strip()
        match event.purpose:
            case "filter":
                column = view.feed.columns[view.cursor[1]]
                self._arrange(filtered_by(view.feed.arrangement, column, text), "filtering")
            case "search":
                self._arrange(replace(view.feed.arrangement, search=text), "searching")
            case "row":
                number = text.replace(",", "")
                if not number.isdecimal():
                    raise UsageError(f"{text or 'Nothing'} is no number of a row.")
                view.go(int(number) - 1)
            case "export":
                self._do(self._export(text, confirmed=False))
            case "confirm":
                if text.casefold() in {"y", "yes"}:
                    self._do(self._export(self._target, confirmed=True))
                else:
                    self.say("Nothing was written.")

    def action_back(self) -> None:
        """Stop what is under way, else let go of the selection; else Esc is for whoever shows the grid."""
        working = [each for each in self.workers if each.node is self and each.group == "work" and each.is_running]
        if self.view.cancel():
            self.say("Cancelled. The rows are as before.")
        elif working:
            working[0].cancel()
            self.say("Cancelled.")
        elif not self.view.deselect():
            raise SkipAction
