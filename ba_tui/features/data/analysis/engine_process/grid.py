"""Rows of a table, sorted and filtered, in pages; cross tables, exports and column texts.

The numbers of matching rows are stored in a table, so every page costs the same.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Arrangement, Column, Page, RowFilter
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import correction, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import (
    Database,
    fetch_number,
    listed,
    quoted,
    row_of,
    rows_of,
    said,
    text,
)
from ba_tui.features.data.analysis.engine_process.datasets import CONVERTED
from ba_tui.features.data.analysis.engine_process.store import SCHEMA
from ba_tui.features.data.analysis.engine_process.text_files import LOADING
from ba_tui.features.data.analysis.errors import failed
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

MOST_KEPT = 8
NUMBER, PLACE = '"~number"', '"~place"'
FILE_NUMBER = "file_row_number"
MOST_DIGITS = 38
"""Digits of the longest exact number."""
_PLAIN_NUMBER = regex(r"[+-]?(\d+)(?:\.(\d+))?")
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@frozen
class GridTable:
    """A table with its rows and columns. ``view``: a view of files, whose rows have no numbers. ``file``: the Parquet
    file, when there is only one and it can number its rows."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    view: bool = False
    file: str = ""

    def column(self, name: str) -> Column:
        """Return the column with this name, ignoring case. Raises HandlerFailed."""
        found = next((each for each in self.columns if each.name.lower() == name.lower()), None)
        if found is None:
            hint = correction(name, [each.name for each in self.columns])
            raise failed(f"{self.name} has no column {one_line(name, 80)}.", hint)
        return found


def conditions(table: GridTable, arrangement: Arrangement) -> tuple[str, list[Any]]:
    """Return the SQL after WHERE, and its values; empty when all rows match. Raises HandlerFailed for unknown
    columns."""
    parts: list[str] = []
    values: list[Any] = []
    for each in arrangement.filters:
        part, condition = _condition(table.column(each.column), each)
        parts.append(part)
        values += condition
    if arrangement.search:
        texts = " OR ".join(f"contains(lower(CAST({quoted(each.name)} AS VARCHAR)), ?)" for each in table.columns)
        parts.append(f"({texts})")
        values += [arrangement.search.lower()] * len(table.columns)
    return " AND ".join(parts), values


def _condition(column: Column, condition: RowFilter) -> tuple[str, list[Any]]:
    name = quoted(column.name)
    if condition.operator in {"is null", "is not null"}:
        return f"{name} {condition.operator.upper()}", []
    if condition.operator == "contains":
        return f"contains(lower(CAST({name} AS VARCHAR)), ?)", [str(condition.value).lower()]
    assert condition.operator in COMPARISONS
    if condition.value is None:
        return f"{name} IS {'NOT ' if condition.operator == '!=' else ''}NULL", []
    value = condition.value if isinstance(condition.value, str) else json.dumps(condition.value)
    left = f"CAST({name} AS DOUBLE)" if column.kind == "float" else name
    return f"{left} {condition.operator} CAST(? AS {_compared_type(column, value)})", [value]


def _compared_type(column: Column, value: str) -> str:
    """Return the type in which ``value`` is compared with a column. Numbers keep all their digits: DOUBLE can't tell
    large integers apart, and the type of the column would round a fraction or overflow."""
    if column.kind == "text":
        return "VARCHAR"
    digits = _PLAIN_NUMBER.fullmatch(value.strip())
    whole, fraction = (len(digits[1]), len(digits[2] or "")) if digits else (0, 0)
    if column.kind == "integer" and digits and not fraction and whole <= MOST_DIGITS:
        return "HUGEINT"
    if column.kind == "decimal":
        return f"DECIMAL({whole + fraction}, {fraction})" if digits and whole + fraction <= MOST_DIGITS else column.type
    return "DOUBLE" if column.numeric else column.type


def _order(table: GridTable, arrangement: Arrangement) -> list[str]:
    """Return the parts of ORDER BY. Raises HandlerFailed for unknown columns."""
    return [
        f"{quoted(table.column(each.column).name)} {'DESC' if each.descending else 'ASC'}" for each in arrangement.order
    ]


class Arrangements:
    """The most recent tables of row numbers. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()
        self._next = 0
        self._stale: list[str] = []
        """Tables to drop before the next one is made; a page may still read one."""

    def page(self, request: WorkerRequest, table: GridTable, arrangement: Arrangement, window: tuple[int, int]) -> Page:
        """Return the rows of ``window`` (offset and limit)."""
        offset, limit = window
        with self._database.shared(request) as cursor:
            if arrangement == Arrangement():
                rows, total = self._plain(cursor, table, offset, limit), table.rows
            else:
                kept, total = self._arranged(cursor, table, arrangement)
                rows = self._from_kept(cursor, table, kept, offset, limit)
        numbers = tuple(int(row[0]) for row in rows)
        return Page(table.columns, rows_of(row[1:] for row in rows), numbers, offset, total)

    def forget(self, name: str) -> None:
        """Drop the arrangements of ``name``, whose rows have changed."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == name]:
                self._stale.append(self._kept.pop(key)[0])

    def _plain(self, cursor: duckdb.DuckDBPyConnection, table: GridTable, offset: int, limit: int) -> list[Any]:
        columns, last = listed(table.columns), offset + limit - 1
        if table.file:
            source = f"read_parquet({text(table.file)}, {FILE_NUMBER} = true)"
            window = f"{FILE_NUMBER} BETWEEN {offset} AND {last}"
            return cursor.execute(
                f"SELECT {FILE_NUMBER}, {columns} FROM {source} WHERE {window} ORDER BY {FILE_NUMBER}"
            ).fetchall()
        if table.view:
            query = f"SELECT {columns} FROM {quoted(table.name)} LIMIT {limit} OFFSET {offset}"
            return [(offset + place, *row) for place, row in enumerate(cursor.execute(query).fetchall())]
        return cursor.execute(
            f"SELECT rowid, {columns} FROM {quoted(table.name)} WHERE rowid BETWEEN {offset} AND {last} ORDER BY rowid"
        ).fetchall()

    def _from_kept(
        self, cursor: duckdb.DuckDBPyConnection, table: GridTable, kept: str, offset: int, limit: int
    ) -> list[Any]:
        columns, window = listed(table.columns), f"rowid BETWEEN {offset} AND {offset + limit - 1}"
        if table.view:
            return cursor.execute(f"SELECT {NUMBER}, {columns} FROM {kept} WHERE {window} ORDER BY rowid").fetchall()
        return cursor.execute(
            f"SELECT {NUMBER}, {columns} FROM (SELECT {NUMBER}, rowid AS {PLACE} FROM {kept} WHERE {window}) AS w "
            f"JOIN {quoted(table.name)} AS t ON t.rowid = w.{NUMBER} ORDER BY {PLACE}"
        ).fetchall()

    def _arranged(
        self, cursor: duckdb.DuckDBPyConnection, table: GridTable, arrangement: Arrangement
    ) -> tuple[str, int]:
        key = (table.name, repr(arrangement))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            self._next += 1
            name = f"{SCHEMA}.arranged_{self._next}"
            stale, self._stale = self._stale, []
        for old in stale:
            cursor.execute(f"DROP TABLE IF EXISTS {old}")
        where, values = conditions(table, arrangement)
        sorting = "".join(f"{each}, " for each in _order(table, arrangement))
        # Rows of files have no stable numbers, so matching rows are copied completely.
        source, what = quoted(table.name), f"rowid AS {NUMBER}"
        if table.view:
            source, what = f"(SELECT row_number() OVER () - 1 AS {NUMBER}, * FROM {source})", "*"
        filtered = f" WHERE {where}" if where else ""
        row_number = NUMBER if table.view else "rowid"
        query = f"CREATE TABLE {name} AS SELECT {what} FROM {source}{filtered} ORDER BY {sorting}{row_number}"
        try:
            rows = fetch_number(cursor, query, values)
        except duckdb.ConversionException as error:
            raise failed(f"The filter does not fit its column: {said(error)}.") from error
        with self._lock:
            if key in self._kept:
                # Another request has made the same arrangement meanwhile.
                self._stale.append(name)
            else:
                self._kept[key] = (name, rows)
            while len(self._kept) > MOST_KEPT:
                self._stale.append(self._kept.popitem(last=False)[1][0])
            return self._kept[key]


def drop_left(cursor: duckdb.DuckDBPyConnection) -> None:
    """Drop tables of an earlier process: arrangements, and incomplete loads."""
    for table in (LOADING, CONVERTED):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
    query = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{SCHEMA}' AND table_name LIKE 'arranged_%'"
    for (name,) in cursor.execute(query).fetchall():
        cursor.execute(f"DROP TABLE {SCHEMA}.{quoted(name)}")


# Cross tables: totals are computed from the rows and flagged.

MOST_COLUMNS = 200
"""Most values of a column that become columns."""
LONGEST_VALUE = 200
AGGREGATES = {
    "sum": "sum({})", "avg": "avg({})", "median": "median({})", "min": "min({})", "max": "max({})",
    "count": "count({})", "count_distinct": "count(DISTINCT {})",
}  # fmt: skip
NUMERIC = frozenset({"sum", "avg", "median"})
EMPTY = "(empty)"


@frozen
class CrossTable:
    """``rows`` and ``columns`` are columns of the table; ``values`` is empty to count rows."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: str
    aggregate: str


def pivot_query(request: WorkerRequest, database: Database, table: GridTable, asked: CrossTable) -> str:
    """Return the SELECT of a cross table: a row for each group of ``rows`` and one of totals, a column for each group
    of ``columns``. Raises HandlerFailed: a column is missing or of the wrong type, or there would be too many columns.
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


def _aggregated(table: GridTable, asked: CrossTable) -> str:
    if asked.aggregate not in AGGREGATES:
        known = ", ".join(AGGREGATES)
        raise failed(
            f"There is no aggregate {asked.aggregate}.", correction(asked.aggregate, AGGREGATES, f"Known are {known}.")
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


def _groups(cursor: duckdb.DuckDBPyConnection, table: GridTable, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the values of ``columns`` as text, in the order of the values; empty text for NULL."""
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
    """Return ``label``, numbered if a column has that name, and mark it as used."""
    names = itertools.chain([label], (f"{label} {each}" for each in itertools.count(2)))
    name = next(each for each in names if each.lower() not in taken)
    taken.add(name.lower())
    return name


# Exports to temporary files in the session's folder: CSV, JSON, Parquet, XLSX.

OPTIONS = {
    "csv": "FORMAT csv, HEADER true",
    "tsv": "FORMAT csv, HEADER true, DELIMITER '\t'",
    "json": "FORMAT json, ARRAY true",
    "jsonl": "FORMAT json",
    "parquet": "FORMAT parquet, COMPRESSION zstd",
}
SHEET_ROWS, SHEET_COLUMNS = 1_048_575, 16_384
BATCH = 2_000
WIDE = frozenset({"HUGEINT", "UHUGEINT"})
SAFE_INTEGER = 2**53


def export_rows(
    database: Database, request: WorkerRequest, table: GridTable, arrangement: Arrangement, target: Path
) -> None:
    """Write the rows of ``arrangement`` to ``target``, in the format of its ending. Raises HandlerFailed."""
    with database.shared(request, f"exporting {table.name}") as cursor:
        where, values = conditions(table, arrangement)
        order = ", ".join(_order(table, arrangement))
        tail = f"{f' WHERE {where}' if where else ''}{f' ORDER BY {order}' if order else ''}"
        try:
            if target.suffix == ".xlsx":
                _workbook(cursor, request, table, (tail, values), target)
            else:
                columns = _exact(cursor, table) if target.suffix == ".parquet" else "*"
                query = f"COPY (SELECT {columns} FROM {quoted(table.name)}{tail}) TO {text(str(target))}"
                cursor.execute(f"{query} ({OPTIONS[target.suffix[1:]]})", values)
        except BaseException:
            target.unlink(missing_ok=True)
            raise


def _exact(cursor: duckdb.DuckDBPyConnection, table: GridTable) -> str:
    """Return the columns for Parquet, which lacks 128-bit integers and would round them; every sum has this type."""
    parts: list[str] = []
    for column in table.columns:
        name = quoted(column.name)
        if column.type in WIDE:
            row = cursor.execute(f"SELECT max(abs({name}::DOUBLE)) < 1e37 FROM {quoted(table.name)}").fetchone()
            fits = row is None or row[0] in {None, True}
            parts.append(f"CAST({name} AS {'DECIMAL(38, 0)' if fits else 'VARCHAR'}) AS {name}")
        else:
            parts.append(name)
    return ", ".join(parts)


def _workbook(
    cursor: duckdb.DuckDBPyConnection,
    request: WorkerRequest,
    table: GridTable,
    rest: tuple[str, list[Any]],
    target: Path,
) -> None:
    from xlsxwriter import Workbook  # noqa: PLC0415 - only for workbooks

    tail, values = rest
    rows = fetch_number(cursor, f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table.name)}{tail})", values)
    if rows > SHEET_ROWS or len(table.columns) > SHEET_COLUMNS:
        raise failed(f"{table.name} is larger than a worksheet can be ({SHEET_ROWS:,} rows).", "Export CSV or Parquet.")
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "tmpdir": target.parent}
    with Workbook(target, options) as made:
        book: Any = made
        sheet = book.add_worksheet(table.name[:31])
        for place, column in enumerate(table.columns):
            sheet.write_string(0, place, column.name)
        found = cursor.execute(f"SELECT {listed(table.columns)} FROM {quoted(table.name)}{tail}", values)
        number = 1
        while rows := found.fetchmany(BATCH):
            if request.cancelled.is_set():
                raise RequestCancelled
            for each in rows:
                _write(sheet, number, table, row_of(each, 32_000))
                number += 1


def _write(sheet: Any, number: int, table: GridTable, row: tuple[Any, ...]) -> None:
    for place, (value, column) in enumerate(zip(row, table.columns, strict=True)):
        if value is None:
            continue
        if column.kind == "decimal" and len(value) <= 16:
            sheet.write_number(number, place, float(value))
        elif isinstance(value, bool):
            sheet.write_boolean(number, place, value)
        elif isinstance(value, int | float) and abs(value) < SAFE_INTEGER:
            sheet.write_number(number, place, value)
        else:
            sheet.write_string(number, place, str(value))


# Texts of columns for the search for secrets: a sample of each column, or all of one. Short texts and numbers are
# skipped.

SAMPLED = 1_000
"""Rows sampled at each end of a table."""
SHORTEST, LONGEST = 8, 4_000
"""Shortest and longest text, in characters."""
MOST_TEXTS, MOST_CHARS = 5_000, 2_000_000
"""Most texts and characters of one reply."""


def sampled(cursor: duckdb.DuckDBPyConnection, table: GridTable) -> list[tuple[str, str, list[str]]]:
    """Return table, column and texts for each column that has texts."""
    columns = [column for column in table.columns if _holds_text(column)][:MOST_COLUMNS]
    if not columns:
        return []
    query = f"SELECT {', '.join(map(_text, columns))} FROM {quoted(table.name)} LIMIT {SAMPLED}"
    rows: list[tuple[Any, ...]] = cursor.execute(query).fetchall()
    if table.rows > SAMPLED:
        rows += cursor.execute(f"{query} OFFSET {max(SAMPLED, table.rows - SAMPLED)}").fetchall()
    found = [(table.name, column.name, list(_bounded(row[at] for row in rows))) for at, column in enumerate(columns)]
    return [each for each in found if each[2]]


def texts(cursor: duckdb.DuckDBPyConnection, table: GridTable, column: Column) -> Sequence[str]:
    """Return the distinct texts of a column."""
    query = (
        f"SELECT DISTINCT {_text(column)} AS text FROM {quoted(table.name)} "
        f"WHERE length({_text(column)}) >= {SHORTEST} LIMIT {MOST_TEXTS}"
    )
    return list(_bounded(row[0] for row in cursor.execute(query).fetchall()))


def _holds_text(column: Column) -> bool:
    """Return whether values are texts, or lists, structures and documents that may contain text."""
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
