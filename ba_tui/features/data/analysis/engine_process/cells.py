"""Values of DuckDB as JSON has them, and columns of a table or query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from ba_tui.core.ports.tables import MAX_CELL_CHARS, Cell, Column, Row
from ba_tui.features.data.analysis.engine_process.database import quoted

MOST_CHARS = 12_000_000
"""Text of all rows of one reply: JSON may take five times as many bytes, and a frame has 64 MB."""
SHORTEST = 100


def columns_of(cursor: duckdb.DuckDBPyConnection, table: str) -> tuple[Column, ...]:
    """The columns of ``table``, a name in quotes or a query in brackets."""
    found = cursor.execute(f"FROM {table} LIMIT 0").description or ()
    return tuple(Column(str(name), str(kind)) for name, kind, *_ in found)


def shown(expression: str, column: Column, longest: int = MAX_CELL_CHARS) -> str:
    """SQL for a value of ``column`` that JSON can hold without losing anything but the end of a long text."""
    if column.kind in {"integer", "float", "boolean"}:
        return expression
    return f"left(CAST({expression} AS VARCHAR), {longest + 1})"


def rows_of(found: Iterable[Sequence[Any]]) -> tuple[Row, ...]:
    """Rows for a reply. Where they hold more text than one may carry, long texts are cut shorter than usual."""
    rows = tuple(row_of(values) for values in found)
    texts = [len(value) for row in rows for value in row if isinstance(value, str)]
    if sum(texts) <= MOST_CHARS:
        return rows
    longest = max(SHORTEST, MOST_CHARS // len(texts))
    return tuple(row_of(row, longest) for row in rows)


def row_of(values: Sequence[Any], longest: int = MAX_CELL_CHARS) -> Row:
    return tuple(cell(value, longest) for value in values)


def cell(value: Any, longest: int = MAX_CELL_CHARS) -> Cell:
    """A value that ``shown`` gave."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def listed(columns: Iterable[Column], longest: int = MAX_CELL_CHARS) -> str:
    """The columns of a SELECT whose rows ``row_of`` takes."""
    return ", ".join(shown(quoted(column.name), column, longest) for column in columns)
