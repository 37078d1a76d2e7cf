"""Rows and columns: a grid with a cell cursor in the inspector, a record a row in a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.widget import Widget

from ba_tui.core.results import Table
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.rows import GridRow
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, missing
from ba_tui.faces.tui.transcript.lines import PaintedLine, Unit
from ba_tui.faces.tui.transcript.tables import TableLayout, columns_shown, is_figure, table

MOST_WARNINGS = 3
"""Lines of warnings above a table; the grid lists all."""


def _preview(display: Table, space: PreviewSpace) -> Rows:
    palette, columns = space.palette, display.columns
    if not columns:
        return []
    # The head, its ruler and a marker take a row each.
    warned = [_warning(each, space) for each in display.warnings[:MOST_WARNINGS]]
    shown = display.rows[: max(1, space.limit - 3 - len(warned))]

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
    lines = [*warned, *table(grid, space.width, palette)]
    return [*lines, missing(", ".join(words), space)] if words else lines


def _warning(words: str, space: PreviewSpace) -> PaintedLine:
    text = f"! {paintable(words, newlines=False)}"
    shown = text if cell_len(text) <= space.width else set_cell_size(text, max(1, space.width - 1)) + "…"
    return PaintedLine((Segment(shown, space.palette.warning),), unit=Unit(text))


def _figures(values: Iterable[object]) -> bool:
    given = [value for value in values if value is not None]
    return bool(given) and all(map(is_figure, given))


def _records(display: Table) -> Sequence[GridRow]:
    rows = enumerate(display.rows, 1)
    return argument_rows({str(number): dict(zip(display.columns, row, strict=False)) for number, row in rows})


def _widget(display: Table) -> Widget:
    from ba_tui.faces.tui.inspector.table_view import TablePane  # noqa: PLC0415 - DataTable only when there is a table

    return TablePane(display)


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
