"""Cross tables: the query for one, with totals that are computed from the rows and flagged."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.arranging import Table
from ba_tui.features.data.analysis.engine_process.database import Database, quoted, text
from ba_tui.features.data.analysis.engine_process.failures import failed
from ba_tui.processes.serving import WorkerRequest

MOST_COLUMNS = 200
"""Values of a column that become columns."""
LONGEST_VALUE = 200
AGGREGATES = {
    "sum": "sum({})",
    "avg": "avg({})",
    "median": "median({})",
    "min": "min({})",
    "max": "max({})",
    "count": "count({})",
    "count_distinct": "count(DISTINCT {})",
}
NUMERIC = frozenset({"sum", "avg", "median"})
EMPTY = "(empty)"


@frozen
class CrossTable:
    """``rows`` and ``columns`` are columns of the table; ``values`` is empty to count rows."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: str
    aggregate: str


def pivot_query(request: WorkerRequest, database: Database, table: Table, asked: CrossTable) -> str:
    """Return the SELECT: a row for each group of ``rows`` and one of totals, a column for each group of ``columns``.

    Raises:
        HandlerFailed: a column is missing or of the wrong type, or there would be too many columns.
    """
    rows, columns = ([table.column(name).name for name in names] for names in (asked.rows, asked.columns))
    value = _aggregated(table, asked)
    groups: list[tuple[str, ...]] = []
    if columns:
        with database.shared(request, f"reading {table.name}") as cursor:
            groups = _groups(cursor, table, columns)
    taken = {name.lower() for name in rows}
    parts = [quoted(name) for name in rows]
    for group in groups:
        label = _free(" / ".join(each or EMPTY for each in group), taken)
        parts.append(f"{value} FILTER (WHERE {_matches(columns, group)}) AS {quoted(label)}")
    label = _free("total" if groups else f"{asked.aggregate} of {asked.values}" if asked.values else "rows", taken)
    parts.append(f"{value} AS {quoted(label)}")
    if not rows:
        return f"SELECT {', '.join(parts)} FROM {quoted(table.name)}"
    named = ", ".join(map(quoted, rows))
    flag = quoted(_free("is_total", taken))
    parts.append(f"grouping({named}) > 0 AS {flag}")
    return (
        f"SELECT {', '.join(parts)} FROM {quoted(table.name)} GROUP BY GROUPING SETS (({named}), ()) "
        f"ORDER BY {flag}, {named}"
    )


def _aggregated(table: Table, asked: CrossTable) -> str:
    if asked.aggregate not in AGGREGATES:
        known = ", ".join(AGGREGATES)
        close = nearest(asked.aggregate, AGGREGATES)
        raise failed(
            f"There is no aggregate {asked.aggregate}.", f"Did you mean {close}?" if close else f"Known are {known}."
        )
    if not asked.values:
        if asked.aggregate != "count":
            raise failed(f"{asked.aggregate} needs values: the column to aggregate.", "Or count rows: aggregate count.")
        return "count(*)"
    column = table.column(asked.values)
    if asked.aggregate in NUMERIC and not column.numeric:
        hint = "Use count or count_distinct, or convert it in a query first."
        raise failed(f"{asked.aggregate} needs numbers, and {column.name} is {column.type}.", hint)
    return AGGREGATES[asked.aggregate].format(quoted(column.name))


def _groups(cursor: duckdb.DuckDBPyConnection, table: Table, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The values of ``columns`` as text, in the order of the values; empty text for NULL."""
    names = ", ".join(map(quoted, columns))
    cells = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in columns)
    query = f"SELECT {cells} FROM (SELECT DISTINCT {names} FROM {quoted(table.name)}) ORDER BY {names}"
    found = cursor.execute(f"{query} LIMIT {MOST_COLUMNS + 1}").fetchall()
    if len(found) > MOST_COLUMNS:
        hint = "Put it into rows, or group its values in a query first."
        raise failed(f"{' and '.join(columns)} would make more than {MOST_COLUMNS} columns.", hint)
    # Empty text and NULL are one group.
    groups = list(dict.fromkeys(tuple("" if value is None else str(value) for value in row) for row in found))
    if any(len(value) > LONGEST_VALUE for group in groups for value in group):
        raise failed(
            f"{' and '.join(columns)} has values of more than {LONGEST_VALUE} characters.", "Put it into rows."
        )
    return groups


def _matches(columns: Sequence[str], group: Sequence[str]) -> str:
    return " AND ".join(
        f"CAST({quoted(name)} AS VARCHAR) = {text(value)}"
        if value
        else f"coalesce(CAST({quoted(name)} AS VARCHAR), '') = ''"
        for name, value in zip(columns, group, strict=True)
    )


def _free(label: str, taken: set[str]) -> str:
    """``label``, or with a number behind it where a column is called so; it is taken then."""
    name, number = label, 2
    while name.lower() in taken:
        name, number = f"{label} {number}", number + 1
    taken.add(name.lower())
    return name
