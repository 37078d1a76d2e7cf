"""Texts in the columns of a table: a sample of each column, and all of one. Short texts and numbers are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Column
from ba_tui.features.data.analysis.engine_process.arranging import Table
from ba_tui.features.data.analysis.engine_process.database import quoted

SAMPLED = 1_000
"""Rows at each end of a table."""
MOST_COLUMNS = 200
SHORTEST, LONGEST = 8, 4_000
"""Characters of a text."""
MOST_TEXTS, MOST_CHARS = 5_000, 2_000_000
"""Texts and characters of one reply."""


def sampled(cursor: duckdb.DuckDBPyConnection, table: Table) -> list[tuple[str, str, list[str]]]:
    """The table's name, a column and its texts, for each column that has some."""
    columns = [column for column in table.columns if _holds_text(column)][:MOST_COLUMNS]
    if not columns:
        return []
    listed = ", ".join(_text(column) for column in columns)
    rows: list[tuple[Any, ...]] = cursor.execute(
        f"SELECT {listed} FROM {quoted(table.name)} LIMIT {SAMPLED}"
    ).fetchall()
    if table.rows > SAMPLED:
        start = max(SAMPLED, table.rows - SAMPLED)
        rows += cursor.execute(f"SELECT {listed} FROM {quoted(table.name)} LIMIT {SAMPLED} OFFSET {start}").fetchall()
    found = [(table.name, column.name, list(_bounded(row[at] for row in rows))) for at, column in enumerate(columns)]
    return [each for each in found if each[2]]


def texts(cursor: duckdb.DuckDBPyConnection, table: Table, column: Column) -> Sequence[str]:
    """The texts of a column, each once."""
    query = (
        f"SELECT DISTINCT {_text(column)} AS text FROM {quoted(table.name)} "
        f"WHERE length({_text(column)}) >= {SHORTEST} LIMIT {MOST_TEXTS}"
    )
    return list(_bounded(row[0] for row in cursor.execute(query).fetchall()))


def _holds_text(column: Column) -> bool:
    """Whether its values are texts, or lists, structures and documents that may hold some."""
    return column.kind not in {"integer", "float", "boolean"} and not column.type.startswith(
        ("DATE", "TIME", "DECIMAL")
    )


def _text(column: Column) -> str:
    return f"left(CAST({quoted(column.name)} AS VARCHAR), {LONGEST})"


def _bounded(values: Iterator[object]) -> Iterator[str]:
    seen, left = set[str](), MOST_CHARS
    for value in values:
        if isinstance(value, str) and len(value) >= SHORTEST and value not in seen:
            seen.add(value)
            left -= len(value)
            if left < 0:
                return
            yield value
