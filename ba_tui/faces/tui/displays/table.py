"""Rows and columns: a grid with a cell cursor in the inspector, a record a row in a question."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.widget import Widget

from ba_tui.core.results import Table
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.displays.renderer import PreviewSpace, Renderer
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.rows import GridRow
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.tables import TableLayout, table


def _preview(display: Table, space: PreviewSpace) -> list[PaintedLine]:
    palette, columns, rows = space.palette, display.columns, display.rows

    def cell(value: object, style: Style) -> list[Segment]:
        return [Segment(paintable(str(value)[:200], newlines=False), style)]

    body = [[cell(value, palette.text) for value in row] for row in rows[: space.limit]]
    head = [cell(name, palette.heading) for name in columns]
    numeric = [bool(rows) and isinstance(rows[0][at], int | float) for at in range(len(columns))]
    aligns = ["right" if is_number else "" for is_number in numeric]
    sources = ["\t".join(columns), "", *("\t".join(map(str, row)) for row in rows[: space.limit])]
    return table(TableLayout([head, *body], aligns, sources), space.width, palette)


def _records(display: Table) -> Sequence[GridRow]:
    rows = enumerate(display.rows, 1)
    return argument_rows({str(number): dict(zip(display.columns, row, strict=False)) for number, row in rows})


def _widget(display: Table) -> Widget:
    from ba_tui.faces.tui.inspector.table_view import TableView  # noqa: PLC0415 - DataTable only when there is a table

    return TableView(display, id="grid")


def _text(display: Table) -> str:
    from ba_tui.faces.tui.inspector.table_view import table_text  # noqa: PLC0415 - see above

    return table_text(display)


TABLE: Renderer[Table] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: _records(display)],
    question=lambda display: [lambda: _records(display)],
    text=_text,
    values=lambda display: [list(row) for row in display.rows],
    widget=_widget,
    complete=True,
)
