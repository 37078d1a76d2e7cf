"""A table as a grid with a cell cursor."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual import work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import DataTable, Static

from ba_tui.core.results import Table
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped
from ba_tui.faces.tui.inspector.rows import painted
from ba_tui.faces.tui.transcript.tables import is_figure

AT_ONCE = 50
"""Rows added between two breaths of the loop."""
MOST = 1_000
CELL = 40
"""Characters of a cell; the whole text of the cell at the cursor is shown below the grid."""


class TablePane(Vertical):
    """The grid, and below it the whole text of a cell that is cut."""

    DEFAULT_CSS = """
    TablePane { height: 1fr; }
    TablePane TableView { height: 1fr; }
    TablePane Static { height: auto; max-height: 8; color: $text-muted; display: none; }
    """

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table

    def compose(self) -> ComposeResult:
        yield TableView(self._table, id="grid")
        yield Static(markup=False, id="cell")

    def on_data_table_cell_highlighted(self, event: DataTable.CellHighlighted) -> None:
        event.stop()
        row, column = event.coordinate
        value = self._table.rows[row][column] if row < min(len(self._table.rows), MOST) else None
        text = "" if value is None else paintable(str(value))
        cell = self.query_one("#cell", Static)
        cell.display = len(text) > CELL or "\n" in text
        cell.update(f"{painted(self._table.columns[column])}: {text}" if cell.display else "")


class TableView(DataTable[Text]):
    """All rows up to ``MOST``; the last row says how many more there are."""

    DEFAULT_CSS = """
    TableView { background: transparent; }
    """

    def __init__(self, table: Table, id: str | None = None) -> None:
        super().__init__(id=id, zebra_stripes=False, cursor_type="cell")
        self.table = table

    def on_mount(self) -> None:
        self.add_columns(*(Text(painted(name), "bold") for name in self.table.columns))
        self._fill()

    def action_select_cursor(self) -> None:
        """Leave Enter to the screen."""
        raise SkipAction

    @work(exclusive=True)
    async def _fill(self) -> None:
        rows = self.table.rows
        for start in range(0, min(len(rows), MOST), AT_ONCE):
            self.add_rows([cell_text(value) for value in row] for row in rows[start : min(start + AT_ONCE, MOST)])
            await asyncio.sleep(0)
        if more := self.table.length - min(len(rows), MOST):
            self.add_row(Text(f"… {more:,} more rows", "dim"))


def cell_text(value: object) -> Text:
    """Return one value in one line: numbers are right-aligned, None is empty."""
    if value is None:
        return Text("")
    if is_figure(value):
        return Text(painted(str(value)), justify="right")
    shown = painted(str(value))
    return Text(clipped(shown, CELL))


def table_text(table: Table) -> str:
    """Return the table with its head as tab-separated text, for the clipboard."""
    rows = [table.columns, *table.rows]
    return "\n".join("\t".join(_flat(value) for value in row) for row in rows)


def _flat(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())
