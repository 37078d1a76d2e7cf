"""Rows of a table in an order and through filters, page by page.

The numbers of the rows that match are kept in a table of their own, so that a page costs the same wherever it is.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Arrangement, Column, Page, RowFilter
from ba_tui.core.text.wording import nearest, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.cells import listed, rows_of
from ba_tui.features.data.analysis.engine_process.database import Database, quoted, text
from ba_tui.features.data.analysis.engine_process.datasets import CONVERTED
from ba_tui.features.data.analysis.engine_process.failures import failed, said
from ba_tui.features.data.analysis.engine_process.store import SCHEMA
from ba_tui.features.data.analysis.engine_process.text_files import LOADING
from ba_tui.processes.serving import WorkerRequest

MOST_KEPT = 8
NUMBER, PLACE = '"~number"', '"~place"'
FILE_NUMBER = "file_row_number"
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@frozen
class Table:
    """``name`` with its ``rows`` and columns. ``view``: of files, whose rows have no numbers of their own. ``file``:
    the Parquet file, where there is only one and it can number its rows."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    view: bool = False
    file: str = ""

    def column(self, name: str) -> Column:
        """The column of this name, in any case. Raises HandlerFailed."""
        found = next((each for each in self.columns if each.name.lower() == name.lower()), None)
        if found is None:
            close = nearest(name, [each.name for each in self.columns])
            hint = f"Did you mean {close}?" if close else ""
            raise failed(f"{self.name} has no column {one_line(name, 80)}.", hint)
        return found


def conditions(table: Table, arrangement: Arrangement) -> tuple[str, list[Any]]:
    """SQL after WHERE, and its values; empty when all rows match. Raises HandlerFailed for unknown columns."""
    parts: list[str] = []
    values: list[Any] = []
    for each in arrangement.filters:
        part, given = _condition(table.column(each.column), each)
        parts.append(part)
        values += given
    if arrangement.search:
        texts = " OR ".join(f"contains(lower(CAST({quoted(each.name)} AS VARCHAR)), ?)" for each in table.columns)
        parts.append(f"({texts})")
        values += [arrangement.search.lower()] * len(table.columns)
    return " AND ".join(parts), values


def _condition(column: Column, given: RowFilter) -> tuple[str, list[Any]]:
    name = quoted(column.name)
    if given.operator in {"is null", "is not null"}:
        return f"{name} {given.operator.upper()}", []
    if given.operator == "contains":
        return f"contains(lower(CAST({name} AS VARCHAR)), ?)", [str(given.value).lower()]
    assert given.operator in COMPARISONS
    if given.value is None:
        return f"{name} IS {'NOT ' if given.operator == '!=' else ''}NULL", []
    value = given.value if isinstance(given.value, str) else json.dumps(given.value)
    kind = "VARCHAR" if column.kind == "text" else "DOUBLE" if column.numeric else column.type
    left = f"CAST({name} AS DOUBLE)" if kind == "DOUBLE" and column.kind == "float" else name
    # A number with a fraction is compared as it is with whole ones, not rounded to them.
    right = f"CAST(? AS {kind if column.kind != 'decimal' else column.type})"
    return f"{left} {given.operator} {right}", [value]


class Arrangements:
    """The tables of row numbers, the newest few. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()
        self._next = 0
        self._stale: list[str] = []
        """Tables to drop before the next one is made: a page may still read one."""

    def page(self, request: WorkerRequest, table: Table, arrangement: Arrangement, window: tuple[int, int]) -> Page:
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
        """Make the arrangements of ``name`` anew: its rows have changed."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == name]:
                self._stale.append(self._kept.pop(key)[0])

    def _plain(self, cursor: duckdb.DuckDBPyConnection, table: Table, offset: int, limit: int) -> list[Any]:
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
        self, cursor: duckdb.DuckDBPyConnection, table: Table, kept: str, offset: int, limit: int
    ) -> list[Any]:
        columns, window = listed(table.columns), f"rowid BETWEEN {offset} AND {offset + limit - 1}"
        if table.view:
            return cursor.execute(f"SELECT {NUMBER}, {columns} FROM {kept} WHERE {window} ORDER BY rowid").fetchall()
        return cursor.execute(
            f"SELECT {NUMBER}, {columns} FROM (SELECT {NUMBER}, rowid AS {PLACE} FROM {kept} WHERE {window}) AS w "
            f"JOIN {quoted(table.name)} AS t ON t.rowid = w.{NUMBER} ORDER BY {PLACE}"
        ).fetchall()

    def _arranged(self, cursor: duckdb.DuckDBPyConnection, table: Table, arrangement: Arrangement) -> tuple[str, int]:
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
        order = [(table.column(each.column), each.descending) for each in arrangement.order]
        sorting = "".join(f"{quoted(column.name)} {'DESC' if down else 'ASC'}, " for column, down in order)
        # Rows of files have no numbers that a later query could use, so they are kept whole.
        source, what = quoted(table.name), f"rowid AS {NUMBER}"
        if table.view:
            source, what = f"(SELECT row_number() OVER () - 1 AS {NUMBER}, * FROM {source})", "*"
        filtered = f" WHERE {where}" if where else ""
        row_number = NUMBER if table.view else "rowid"
        query = f"CREATE TABLE {name} AS SELECT {what} FROM {source}{filtered} ORDER BY {sorting}{row_number}"
        try:
            row = cursor.execute(query, values).fetchone()
        except duckdb.ConversionException as error:
            raise failed(f"The filter does not fit its column: {said(error)}.") from error
        with self._lock:
            if key in self._kept:
                # Another request has made the same meanwhile.
                self._stale.append(name)
            else:
                self._kept[key] = (name, int(row[0]) if row else 0)
            while len(self._kept) > MOST_KEPT:
                self._stale.append(self._kept.popitem(last=False)[1][0])
            return self._kept[key]


def drop_left(cursor: duckdb.DuckDBPyConnection) -> None:
    """Drop the tables that an earlier process left: arrangements, and tables that were being filled."""
    for table in (LOADING, CONVERTED):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
    query = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{SCHEMA}' AND table_name LIKE 'arranged_%'"
    for (name,) in cursor.execute(query).fetchall():
        cursor.execute(f"DROP TABLE {SCHEMA}.{quoted(name)}")
