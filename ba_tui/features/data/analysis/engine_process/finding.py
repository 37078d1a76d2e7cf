"""Numbers looked up in the rows of a result: where values of some ranges stand, and how crowded it is around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Column, FoundRows
from ba_tui.features.data.analysis.engine_process.arranging import Table
from ba_tui.features.data.analysis.engine_process.cells import listed, row_of
from ba_tui.features.data.analysis.engine_process.database import quoted

AROUND = 0.25
"""How far around a value, as a share of it, rows are counted."""
MOST_COLUMNS = 40


def found_rows(
    cursor: duckdb.DuckDBPyConnection, table: Table, ranges: Sequence[tuple[float, float]], most: int
) -> tuple[FoundRows, ...]:
    """For each column with numbers and each range, up to ``most`` rows with such a value. One scan counts all."""
    columns = [column for column in table.columns if column.numeric][:MOST_COLUMNS]
    if not columns or table.view:
        return ()
    counted = [part for column in columns for low, high in ranges for part in _counts(column, low, high)]
    row = cursor.execute(f"SELECT {', '.join(counted)} FROM {quoted(table.name)}").fetchone() or ()
    found: list[FoundRows] = []
    places = ((column, at) for column in columns for at in range(len(ranges)))
    for (column, at), held, around in zip(places, row[::2], row[1::2], strict=True):
        if held:
            low, high = ranges[at]
            rows = _rows(cursor, table, column, f"BETWEEN {low!r} AND {high!r}", most) if held <= most else {}
            found.append(FoundRows(at, column.name, int(held), int(around), tuple(rows), tuple(rows.values())))
    return tuple(found)


def _counts(column: Column, low: float, high: float) -> tuple[str, str]:
    name = f"CAST({quoted(column.name)} AS DOUBLE)"
    span = max(abs(low), abs(high)) * AROUND
    near = f"BETWEEN {low - span!r} AND {high + span!r}"
    return f"count(*) FILTER ({name} BETWEEN {low!r} AND {high!r})", f"count(*) FILTER ({name} {near})"


def _rows(cursor: duckdb.DuckDBPyConnection, table: Table, column: Column, condition: str, most: int) -> dict[int, Any]:
    query = (
        f"SELECT rowid, {listed(table.columns)} FROM {quoted(table.name)} "
        f"WHERE CAST({quoted(column.name)} AS DOUBLE) {condition} ORDER BY rowid LIMIT {most}"
    )
    return {int(row[0]): row_of(row[1:]) for row in cursor.execute(query).fetchall()}
