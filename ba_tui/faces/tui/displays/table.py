"""Renderers of tables and of charts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Static

from ba_tui.core.results import Chart, Table
from ba_tui.core.text.cells import clip
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped, count
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.json_values import argument_rows
from ba_tui.faces.tui.inspector.rows import GridRow, line, painted
from ba_tui.faces.tui.transcript.lines import (
    PaintedLine,
    PreviewSpace,
    Rows,
    TableLayout,
    Unit,
    columns_shown,
    is_figure,
    missing,
    table,
)
from ba_tui.faces.tui.transcript.palette import ASCII as ASCII_GLYPHS
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.plotting.canvas import ASCII, DrawingArea, Role
from ba_tui.plotting.drawing import drawn, signs_for, text_of

MOST_WARNINGS = 3
"""Lines of warnings above a table; the grid lists all."""


def _warning(words: str, space: PreviewSpace) -> PaintedLine:
    text = f"! {paintable(words, newlines=False)}"
    return PaintedLine((Segment(clip(text, space.width), space.palette.warning),), unit=Unit(text))


def _figures(values: Iterable[object]) -> bool:
    given = [value for value in values if value is not None]
    return bool(given) and all(map(is_figure, given))


def _records(display: Table) -> Sequence[GridRow]:
    rows = enumerate(display.rows, 1)
    return argument_rows({str(number): dict(zip(display.columns, row, strict=False)) for number, row in rows})


class TableRenderer(Renderer[Table]):
    """Shows the first rows; the inspector shows a grid."""

    complete: ClassVar[bool] = True
    has_widget: ClassVar[bool] = True

    def preview(self, display: Table, space: PreviewSpace) -> Rows:
        palette, columns = space.palette, display.columns
        if not columns:
            return []
        # The head, its ruler and a marker take a row each.
        warnings = [_warning(each, space) for each in display.warnings[:MOST_WARNINGS]]
        shown = display.rows[: max(1, space.limit - 3 - len(warnings))]

        def cell(value: object, style: Style) -> list[Segment]:
            text = "" if value is None else str(value)[:200]
            return [Segment(paintable(text, newlines=False), style)]

        body = [[cell(value, palette.text) for value in row] for row in shown]
        head = [cell(name, palette.heading) for name in columns]
        aligns = ["right" if _figures(row[at] for row in shown) else "" for at in range(len(columns))]
        sources = ["\t".join(columns), "", *("\t".join(map(str, row)) for row in shown)]
        grid = TableLayout([head, *body], aligns, sources, folded=True)
        below, right = display.length - len(shown), len(columns) - columns_shown(grid, space.width)
        words = [f"{count(below, 'more row')} below"] if below else []
        words += [f"{count(right, 'more column')} on the right"] if right else []
        lines = [*warnings, *table(grid, space.width, palette)]
        return [*lines, missing(", ".join(words), space)] if words else lines

    def question(self, display: Table) -> Sequence[Build]:
        return [lambda: _records(display)]

    def text(self, display: Table) -> str:
        return table_text(display)

    def values(self, display: Table) -> Iterable[object]:
        return [list(row) for row in display.rows]

    def widget(self, display: Table) -> Widget:
        return TablePane(display)


FOLDED_ROWS = 10
WIDEST = 100


def _style(palette: Palette, role: Role) -> Style:
    series = (palette.running, palette.warning, palette.ok, palette.failed, palette.target, palette.dim, palette.focus)
    if role.isdigit():
        return series[(int(role) - 1) % len(series)]
    return palette.dim if role == "dim" else palette.heading if role == "title" else palette.text


class ChartRenderer(Renderer[Chart]):
    """Shows the drawing; questions show its text."""

    complete: ClassVar[bool] = True
    has_widget: ClassVar[bool] = True
    folded_rows: ClassVar[int] = FOLDED_ROWS

    def preview(self, display: Chart, space: PreviewSpace) -> Rows:
        signs = ASCII if space.palette.glyphs == ASCII_GLYPHS else signs_for(os.environ)
        room = DrawingArea(min(space.width, WIDEST), space.limit, signs, bare=not space.unfolded)
        lines = drawn(display, room)[: space.limit]
        return [
            PaintedLine(tuple(Segment(run.text, _style(space.palette, run.role)) for run in each if run.text))
            for each in lines
        ]

    def question(self, display: Chart) -> Sequence[Build]:
        return [lambda: [line((each, "")) for each in text_of(display).split("\n")]]

    def text(self, display: Chart) -> str:
        return text_of(display)

    def values(self, display: Chart) -> Iterable[object]:
        return [display.title]

    def widget(self, display: Chart) -> Widget:
        from ba_tui.faces.tui.chart_pane import ChartView  # noqa: PLC0415 - only when a chart is opened

        return ChartView(display, id="grid")


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
