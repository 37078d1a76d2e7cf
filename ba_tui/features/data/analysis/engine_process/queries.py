"""Runs statements that read, and keeps their rows as R1, R2, …: a table and its provenance, written together."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

import duckdb

from ba_tui.core.ports.tables import Column, Finding, Provenance, QueryResult, Statement, UsedData
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.cells import columns_of
from ba_tui.features.data.analysis.engine_process.database import Database, quoted, text
from ba_tui.features.data.analysis.engine_process.datasets import Datasets
from ba_tui.features.data.analysis.engine_process.failures import failed, of_query, refused, said, unreadable
from ba_tui.features.data.analysis.engine_process.statements import parsed
from ba_tui.features.data.analysis.engine_process.store import Store, StoredResult
from ba_tui.features.data.analysis.engine_process.traps.queries import CheckedQuery, findings_of_query
from ba_tui.features.data.analysis.engine_process.traps.series import today_of
from ba_tui.processes.serving import HandlerFailed, WorkerRequest

READS = "Only statements that read can run."
ENGINE = f"DuckDB {duckdb.__version__}"


@frozen
class LandedFile:
    """A Parquet file of another engine; ``types`` are those of its columns that come as text."""

    file: Path
    types: Mapping[str, str]


@frozen
class Queries:
    """``database`` is shared with pages and loads."""

    database: Database
    store: Store
    datasets: Datasets

    def statements(self, sql: str) -> tuple[Statement, ...]:
        """Parse a text."""
        with self.database.parser() as cursor:
            return parsed(cursor, sql, self.store.names())

    def run(self, request: WorkerRequest, sql: str, head: int, files: Mapping[str, list[str]] | None) -> QueryResult:
        """Run one statement. ``files``: the tables of each file that it names; None before they were registered.

        Raises:
            HandlerFailed: it can't run; ``files_needed`` with the files to ask for.
        """
        statement = self._readable(self.statements(sql), files)
        named = {file: names[0] for file, names in (files or {}).items()}
        tables = tuple(dict.fromkeys((*statement.tables, *named.values())))
        notes = self.datasets.refreshed(request, tables)
        started, clock = time.time(), time.monotonic()
        with self.database.shared(request, "running the query") as cursor, self.store.handle() as number:
            try:
                columns, rows = self._filled(cursor, statement, quoted(f"R{number}"), named)
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                every = tuple(self.store.names().values())
                names = [column.name for table in tables or every for column in self.store.columns(table)]
                raise of_query(error, every, names) from error
            data, seconds = self._used(tables, named), round(time.monotonic() - clock, 6)
            results = tuple(name for name in tables if self.store.result(name))
            provenance = Provenance(statement.sql, data, results, started, seconds, rows, ENGINE)
            findings, note = self._checked(request, statement, named, seconds)
            notes += [note] if note else []
            stored = StoredResult(number, columns, rows, provenance, tuple(notes), findings)
            return self._kept(cursor, stored, head)

    def _checked(
        self, request: WorkerRequest, statement: Statement, named: Mapping[str, str], seconds: float
    ) -> tuple[tuple[Finding, ...], str]:
        """The traps that a query met, and what was left out."""
        if statement.kind == "explain":
            return (), ""
        tables = {**self.store.names(), **{file.lower(): table for file, table in named.items()}}
        checked = CheckedQuery(statement.sql, tables, self._columns, self._today, seconds, self._rows, self._known)
        # A cursor of its own: a check that fails must not end the transaction of the result.
        with self.database.shared(request) as cursor:
            return findings_of_query(cursor, request, checked)

    def _columns(self, table: str) -> list[str]:
        return [column.name for column in self.store.columns(table)]

    def _rows(self, table: str) -> int:
        stored, result = self.store.dataset(table), self.store.result(table)
        return stored.dataset.rows if stored else result.rows if result else 0

    def _known(self, table: str) -> Sequence[Finding]:
        stored = self.store.dataset(table)
        return stored.profile.findings if stored and stored.profile else ()

    def _today(self, table: str) -> date:
        """The day on which a table is as it is: that of its files."""
        stored = self.store.dataset(table)
        return today_of(stored.dataset) if stored else date.max

    def adopt(self, request: WorkerRequest, landed: LandedFile, provenance: Provenance, head: int) -> QueryResult:
        """Keep a Parquet file of the inbox as a result."""
        with self.database.shared(request, "keeping the result") as cursor, self.store.handle() as number:
            name, source = quoted(f"R{number}"), f"read_parquet({text(str(landed.file))})"
            cursor.execute("BEGIN")
            try:
                casts, notes = _casts(cursor, source, landed.types)
                row = cursor.execute(f"CREATE TABLE {name} AS SELECT {casts} FROM {source}").fetchone()
                columns = columns_of(cursor, name)
            except duckdb.Error as error:
                cursor.execute("ROLLBACK")
                raise unreadable(f"{landed.file.name} can't be kept as a result: {said(error)}") from error
            rows = int(row[0]) if row else 0
            return self._kept(cursor, StoredResult(number, columns, rows, provenance, notes), head)

    def _kept(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult, head: int) -> QueryResult:
        """Write down what the table of this transaction is."""
        self.store.write_result(cursor, stored)
        cursor.execute("COMMIT")
        self.store.kept(stored)
        return self.store.shown(cursor, stored, head)

    def _readable(self, statements: tuple[Statement, ...], files: Mapping[str, list[str]] | None) -> Statement:
        if len(statements) != 1:
            if not statements:
                raise failed("There is no SQL statement.")
            raise failed(f"These are {len(statements)} statements.", "Send one statement at a time.")
        (statement,) = statements
        if statement.files and files is None:
            raise HandlerFailed("files_needed", json.dumps(statement.files))
        if statement.kind == "other":
            names = [name for each in (files or {}).values() for name in each]
            hint = f"Query the table {' or '.join(names)} instead." if names else statement.instead or READS
            raise refused(f"This statement is not run: {statement.why}.", hint)
        for file, names in (files or {}).items():
            if len(names) > 1:
                raise failed(f"{file} holds several tables.", f"Query {' or '.join(names[:8])} by name.")
        return statement

    def _filled(
        self, cursor: duckdb.DuckDBPyConnection, statement: Statement, name: str, named: Mapping[str, str]
    ) -> tuple[tuple[Column, ...], int]:
        """Fill the table ``name`` in a transaction that is open afterwards."""
        most = self.database.limits.rows
        if statement.kind == "explain":
            return self._explained(cursor, statement, name)
        cursor.execute("BEGIN")
        try:
            for file, table in named.items():
                # What is in quotes is a table before it is a file.
                cursor.execute(f"CREATE VIEW {quoted(file)} AS FROM {quoted(table)}")
            query = f"CREATE TABLE {name} AS SELECT * FROM (\n{statement.sql}\n) LIMIT {most + 1}"
            row = cursor.execute(query).fetchone()
            if row is None:
                # A PIVOT is several statements, whose last one counts nothing.
                row = cursor.execute(f"SELECT count(*) FROM {name}").fetchone()
            rows = int(row[0]) if row else 0
            for file in named:
                cursor.execute(f"DROP VIEW {quoted(file)}")
            if rows > most:
                hint = "Aggregate, filter or add a LIMIT, or raise analysis.max_rows."
                raise failed(f"The query returns more than {most:,} rows.", hint, "resource_error")
            return columns_of(cursor, name), rows
        except BaseException:
            cursor.execute("ROLLBACK")
            raise

    def _explained(
        self, cursor: duckdb.DuckDBPyConnection, statement: Statement, name: str
    ) -> tuple[tuple[Column, ...], int]:
        # It can't stand inside of another statement, and must change nothing.
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        try:
            rows = cursor.execute(statement.sql).fetchall()
        finally:
            cursor.execute("ROLLBACK")
        cursor.execute("BEGIN")
        cursor.execute(f"CREATE TABLE {name} (step VARCHAR, plan VARCHAR)")
        for row in rows:
            cursor.execute(f"INSERT INTO {name} VALUES (?, ?)", [str(row[0]), str(row[-1])])
        return columns_of(cursor, name), len(rows)

    def _used(self, tables: Iterable[str], named: Mapping[str, str]) -> tuple[UsedData, ...]:
        """``named``: the tables of files that the query names."""
        found = [each.dataset for name in tables if (each := self.store.dataset(name))]
        called = {each.name: tuple(file for file, name in named.items() if name == each.name) for each in found}
        return tuple(UsedData(each.name, each.source, each.files, called[each.name]) for each in found)


def _casts(cursor: duckdb.DuckDBPyConnection, source: str, types: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The columns of a SELECT that gives text its type, and a note for each column that stays text."""
    if not types:
        return "*", ()
    made = {name: _cast(quoted(name), kind) for name, kind in types.items()}
    lost = ", ".join(
        f"count(*) FILTER ({quoted(name)} IS NOT NULL AND {cast.replace('CAST(', 'TRY_CAST(', 1)} IS NULL)"
        for name, cast in made.items()
    )
    counts = cursor.execute(f"SELECT {lost} FROM {source}").fetchone() or ()
    unfit = {name: int(count) for name, count in zip(made, counts, strict=True) if count}
    fitting = ", ".join(f"{cast} AS {quoted(name)}" for name, cast in made.items() if name not in unfit)
    notes = tuple(
        f"{name} stays text: {count(number, 'value')} do not fit {types[name]}." for name, number in unfit.items()
    )
    return f"* REPLACE ({fitting})" if fitting else "*", notes


def _cast(column: str, kind: str) -> str:
    # Lists come as JSON.
    return f"CAST(CAST({column} AS JSON) AS {kind})" if kind.endswith("[]") else f"CAST({column} AS {kind})"
