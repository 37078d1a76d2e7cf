"""Rows of a query as lines of text: aligned columns, or a Markdown table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from ba_tui.core.ports.tables import Column
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.cli.locales import FigureFormat

LONGEST = 60
"""Characters of a cell in aligned columns."""
GAP = "  "


def plainly(value: Any, column: Column) -> None:
    """Every figure as it is."""
    del value, column


def table_lines(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], figures: FigureFormat = plainly
) -> Iterator[str]:
    """Columns as wide as their cells; numbers stand at the right."""
    cells = [[one_line(column.name, LONGEST) for column in columns]]
    cells += [[one_line(text, LONGEST) for text in _texts(columns, row, figures)] for row in rows]
    widths = [max(cell_len(row[place]) for row in cells) for place in range(len(columns))]
    rule = ["─" * width for width in widths]
    for row in (cells[0], rule, *cells[1:]):
        padded = [_padded(text, widths[place], right=columns[place].numeric) for place, text in enumerate(row)]
        yield GAP.join(padded).rstrip()


def markdown_lines(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], figures: FigureFormat = plainly
) -> Iterator[str]:
    """A table that Markdown knows; whole cells."""
    yield _marked(column.name for column in columns)
    yield f"| {' | '.join('---:' if column.numeric else '---' for column in columns)} |"
    for row in rows:
        yield _marked(_texts(columns, row, figures))


def _texts(columns: Sequence[Column], row: tuple[Any, ...], figures: FigureFormat) -> Iterator[str]:
    for column, value in zip(columns, row, strict=True):
        yield figures(value, column) or _text(value)


def _marked(texts: Any) -> str:
    escaped = (" ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(escaped)} |"


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
