"""A cell as text: in a grid, and for the clipboard."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from ba_tui.core.ports.tables import Cell, Column, Row
from ba_tui.core.text.untrusted import paintable

CopyFormat: TypeAlias = Literal["tsv", "csv", "markdown"]
WIDEST = 40
"""Characters of a cell in the grid."""
NULL = "NULL"


def cell_text(value: Cell, longest: int = 200) -> str:
    """A value in one line that can be painted."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else paintable(value[:longest], newlines=False)
    return plain(value) or NULL


def plain(value: Cell) -> str:
    """A value as files have it; NULL is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def cell_width(text: str) -> int:
    """Columns of the terminal that ``text`` takes in the grid, at most ``WIDEST``."""
    return min(WIDEST, len(text) if text.isascii() else cell_len(text))


def fitted(text: str, width: int, *, right: bool) -> str:
    """``text`` in exactly ``width`` columns of the terminal; what is cut off is marked."""
    if text.isascii() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - size) + text if right else text + " " * (width - size)


def at_right(column: Column) -> bool:
    """Whether cells of the column are numbers, which stand at the right."""
    return column.numeric


def letters(place: int) -> str:
    """What a spreadsheet calls the column at ``place`` (from 0): A, B, … Z, AA."""
    text, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def copied(columns: Sequence[Column], rows: Sequence[Row], format: CopyFormat) -> str:
    """Rows as text; with the names of the columns, unless it is one cell."""
    if len(columns) == 1 and len(rows) == 1 and format != "markdown":
        return plain(rows[0][0])
    names = [column.name for column in columns]
    if format == "markdown":
        return _markdown(columns, [names, *([plain(value) for value in row] for row in rows)])
    out = io.StringIO()
    if format == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([plain(value) for value in row] for row in rows)
        return out.getvalue().removesuffix("\n")
    # Spreadsheets take a line for a row and a tab for a cell, so that none may stand inside.
    lines = [names, *([plain(value) for value in row] for row in rows)]
    return "\n".join("\t".join(" ".join(text.split()) for text in line) for line in lines)


def _markdown(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> str:
    ruler = ["---:" if at_right(column) else "---" for column in columns]
    escaped = [[" ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (escaped[0], ruler, *escaped[1:]))
