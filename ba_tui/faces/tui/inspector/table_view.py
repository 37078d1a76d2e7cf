"""A table as a grid with a cell cursor. Where its rows come from is not its affair."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual import work
from textual.widgets import DataTable

from ba_tui.core.results import Table
from ba_tui.core.text.wording import clipped
from ba_tui.faces.tui.inspector.rows import painted

AT_ONCE = 50
"""Rows added between two breaths of the loop."""
MOST = 1_000
CELL = 200


class TableView(DataTable[Text]):
    """All rows up to ``MOST``; how many more there are is said in the last one."""

    DEFAULT_CSS = """
    TableView { background: transparent; }
    """

    def __init__(self, table: Table, id: str | None = None) -> None:
        super().__init__(id=id, zebra_stripes=False, cursor_type="cell")
        self.table = table

    def on_mount(self) -> None:
        self.add_columns(*(Text(painted(name), "bold") for name in self.table.columns))
        self._fill()

    @work(exclusive=True)
    async def _fill(self) -> None:
        rows = self.table.rows
        for start in range(0, min(len(rows), MOST), AT_ONCE):
            self.add_rows([cell_text(value) for value in row] for row in rows[start : min(start + AT_ONCE, MOST)])
            await asyncio.sleep(0)
        if len(rows) > MOST:
            self.add_row(Text(f"… {len(rows) - MOST:,} more rows", "dim"))


def cell_text(value: object) -> Text:
    """One value in one line; numbers stand at the right, absent ones are an empty cell."""
    if value is None:
        return Text("")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Text(str(value), justify="right")
    shown = painted(str(value))
    return Text(clipped(shown, CELL))


def table_text(table: Table) -> str:
    """Tab-separated, with a head, for the clipboard and for spreadsheets."""
    rows = [table.columns, *table.rows]
    return "\n".join("\t".join(_flat(value) for value in row) for row in rows)


def _flat(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())
