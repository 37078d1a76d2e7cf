"""Statistics of columns. For large tables, distinct values are estimated and quartiles come from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Cell, Column, ColumnProfile, Role, TopValue
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import personal_kind
from ba_tui.features.data.analysis.engine_process.database import cell, columns_of, quoted, shown

EXACT_ROWS, EXACT_COLUMNS = 200_000, 200
"""Limits for exact counts of distinct values, which build a hash table for each column."""
SAMPLE_ROWS = 20_000
HEAD_ROWS = 1_000
TOP = 5
ROWS = '"\x01rows"'
"""Name of a count. Its control character keeps it apart from the names that people write."""
COUNTED = 20_000
"""Most distinct values of a column whose frequent values are counted."""
TOGETHER = 100
"""Columns of one query: each keeps some memory until the end."""
CHARS = 100
ORDERED = frozenset({"integer", "decimal", "float", "date", "timestamp"})


@frozen
class _Figures:
    """Figures of one column from the first pass."""

    nulls: int
    distinct: int
    minimum: Cell
    maximum: Cell
    mean: Cell


def profiles_of(
    cursor: duckdb.DuckDBPyConnection, table: str, rows: int, tick: Callable[[float], None]
) -> tuple[ColumnProfile, ...]:
    """Return the statistics of each column of ``table``, a quoted name or a bracketed query. ``tick`` is called with
    the completed share, and raises when the request was cancelled."""
    columns = columns_of(cursor, table)
    head, exact = _head(cursor, table, columns), not approximate(rows, len(columns))
    found: list[ColumnProfile] = []
    for start in range(0, len(columns), TOGETHER):
        part = columns[start : start + TOGETHER]
        figures = _figures(cursor, table, part, rows, exact=exact)
        tick((len(found) + len(part) / 2) / len(columns))
        quartiles = _quartiles(cursor, table, part, rows)
        for column in part:
            of = figures[column.name]
            sample = head[column.name]
            found.append(
                ColumnProfile(
                    column, of.nulls, of.distinct, of.minimum, of.maximum, of.mean, quartiles.get(column.name, ()),
                    _top(cursor, table, column, rows, of.distinct), tuple(sample[:3]),
                    _role(column, of, rows, exact=exact), personal_kind(column, sample),
                )
            )  # fmt: skip
        tick(len(found) / len(columns))
    return tuple(found)


def approximate(rows: int, columns: int) -> bool:
    """Return whether a table is so large that some statistics are estimates."""
    return rows > EXACT_ROWS or columns > EXACT_COLUMNS


def _head(cursor: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column]) -> dict[str, list[Cell]]:
    """Return some distinct values of each column, in order of occurrence."""
    expressions = ", ".join(shown(quoted(column.name), column, CHARS) for column in columns)
    rows = cursor.execute(f"SELECT {expressions} FROM {table} LIMIT {HEAD_ROWS}").fetchall()
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return {
        column.name: list(dict.fromkeys(cell(value, CHARS) for value in each if value is not None))
        for column, each in zip(columns, values, strict=True)
    }


def _figures(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column], rows: int, *, exact: bool
) -> dict[str, _Figures]:
    expressions: list[str] = []
    for column in columns:
        name = quoted(column.name)
        simple = column.kind != "other"
        expressions += [
            f"count({name})",
            f"count(DISTINCT {name})" if exact else f"approx_count_distinct({name})",
            shown(f"min({name})", column, CHARS) if simple else "NULL",
            shown(f"max({name})", column, CHARS) if simple else "NULL",
            f"avg(CAST({name} AS DOUBLE))" if column.numeric else "NULL",
        ]
    values: Sequence[Any] = cursor.execute(f"SELECT {', '.join(expressions)} FROM {table}").fetchone() or []
    figures: dict[str, _Figures] = {}
    for place, column in enumerate(columns):
        given, distinct, low, high, mean = (values[5 * place + each] for each in range(5))
        # The estimate may exceed the number of rows.
        possible = min(int(distinct), int(given))
        figures[column.name] = _Figures(rows - int(given), possible, cell(low, CHARS), cell(high, CHARS), cell(mean))
    return figures


def _quartiles(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column], rows: int
) -> dict[str, tuple[Cell, ...]]:
    ordered = [column for column in columns if column.kind in ORDERED]
    if not ordered or not rows:
        return {}
    source = table
    if rows > EXACT_ROWS:
        names = ", ".join(quoted(column.name) for column in ordered)
        source = f"(SELECT {names} FROM {table} USING SAMPLE reservoir({SAMPLE_ROWS} ROWS) REPEATABLE (1))"
    expressions = ", ".join(_three(column) for column in ordered)
    values: Sequence[Any] = cursor.execute(f"SELECT {expressions} FROM {source}").fetchone() or []
    return {
        column.name: tuple(cell(each) for each in three)
        for column, three in zip(ordered, values, strict=True)
        if three is not None
    }


def _three(column: Column) -> str:
    """Return SQL for the quartiles: as numbers, else as text, because Python can't represent every date."""
    expression = f"quantile_disc({quoted(column.name)}, [0.25, 0.5, 0.75])"
    return expression if column.kind in {"integer", "float"} else f"CAST({expression} AS VARCHAR[])"


def _top(
    cursor: duckdb.DuckDBPyConnection, table: str, column: Column, rows: int, distinct: int
) -> tuple[TopValue, ...]:
    if not 0 < distinct <= COUNTED or distinct * 2 > rows or column.kind == "other":
        return ()
    name = quoted(column.name)
    found = cursor.execute(
        f"SELECT {shown(name, column, CHARS)}, {ROWS} FROM (SELECT {name}, count(*) AS {ROWS} FROM {table} "
        f"WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY {ROWS} DESC, 1 LIMIT {TOP})"
    ).fetchall()
    return tuple(TopValue(cell(value, CHARS), int(count)) for value, count in found)


def _role(column: Column, of: _Figures, rows: int, *, exact: bool) -> Role:
    if column.kind in {"date", "timestamp"}:
        return "date"
    if rows > 1 and not of.nulls and column.kind in {"integer", "text"}:
        # The estimate of distinct values is a few percent off.
        unique = of.distinct == rows if exact else of.distinct > 0.97 * rows
        return "key" if unique else ""
    return ""
