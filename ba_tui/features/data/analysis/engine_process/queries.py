"""Runs statements that read, and stores their rows as R1, R2, …: a table and its provenance, in one transaction."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import duckdb

from ba_tui.core.ports.tables import Column, Provenance, QueryResult, Statement, TrapFinding, UsedData
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import (
    Database,
    columns_of,
    fetch_number,
    of_query,
    quoted,
    refused,
    said,
    text,
    unreadable,
)
from ba_tui.features.data.analysis.engine_process.datasets import DatasetRegistry
from ba_tui.features.data.analysis.engine_process.store import DataStore, StoredResult
from ba_tui.features.data.analysis.engine_process.traps.queries import findings_of_query
from ba_tui.features.data.analysis.errors import failed
from ba_tui.processes.serving import HandlerFailed, WorkerRequest

# Statements are classified with DuckDB's parser: only those that read, and only tables, are run. The engine's settings
# refuse files, network and extensions as well; here a refusal gets a message.

LONGEST = 200_000


SELECTS = frozenset({"SELECT", "MULTI"})
"""Statement types that may select: DuckDB reports a PIVOT that must find its columns as MULTI, like other pairs of
statements."""
NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
FILE_FUNCTIONS = frozenset([
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto",
])  # fmt: skip
SOURCES = frozenset([
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary", "histogram",
    "histogram_values", "test_all_types", "duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_tables",
    "duckdb_types", "duckdb_views", "pragma_table_info", "pragma_version", "pragma_collations",
    "regexp_split_to_table", "flatten",
])  # fmt: skip
"""Functions allowed in FROM."""
ACTS = frozenset([
    "nextval", "setval", "currval", "query", "query_table", "checkpoint", "force_checkpoint", "getenv", "read_text",
    "read_blob", "glob", "sniff_csv", "which_secret", "load_extension", "install_extension", "enable_logging",
    "disable_logging", "write_log", "set_config", "add_parquet_key", "write_csv", "shell", "system",
])  # fmt: skip
CHANGES = frozenset(
    ["insert", "update", "delete", "merge", "create", "drop", "alter", "copy", "attach", "detach", "truncate"]
)
OTHERS: Mapping[str, str] = {
    "COPY": "COPY writes or reads files", "ATTACH": "ATTACH opens a database file",
    "DETACH": "DETACH closes a database", "LOAD": "extensions are not loaded or installed",
    "SET": "the engine's settings are fixed", "PRAGMA": "PRAGMA may change how the engine works",
    "CALL": "CALL runs a procedure", "EXPORT": "EXPORT writes files",
    "TRANSACTION": "the engine keeps its own transactions",
}  # fmt: skip
INSTEAD: Mapping[str, str] = {
    "COPY": "Write COPY (SELECT …) TO 'new.csv' with no option but FORMAT; in `ba data query`, use --output.",
    "EXPORT": "Write one result: COPY (SELECT …) TO 'new.parquet'.",
    "ATTACH": "Query the file by its path: FROM 'shop.sqlite'. Databases on servers go into the setting sources.",
    "LOAD": "None is needed: CSV, JSON, Parquet, Excel, SQLite and Arrow files are queried by their path.",
    "SET": "The user sets limits in the settings analysis.memory_gb, analysis.threads and analysis.max_rows.",
    "CREATE": "Run its SELECT: the rows are kept as the next result (R1, R2, …), a table for later queries.",
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "DROP", "ALTER", "MERGE_INTO"),
        "Data is never changed here: SELECT the rows as they should be, and write COPY (SELECT …) TO 'new.csv'.",
    ),
}
"""What to do instead of a refused statement, by its kind."""
_EXPLAIN = regex(r"(?is)\s*explain\s*(?:\((?P<options>[^)]*)\)|(?P<analyze>analyze)\b)?\s*(?P<inner>.*)")
_PIVOT = regex(r"(?is)\b(?:un)?pivot")


def parsed(connection: duckdb.DuckDBPyConnection, sql: str, known: Mapping[str, str]) -> tuple[Statement, ...]:
    """Parse ``sql``. ``known``: existing tables by lower-case name. Raises HandlerFailed: DuckDB can't parse it."""
    if len(sql) > LONGEST:
        raise failed(f"The SQL is longer than {LONGEST // 1000} KB.")
    if sql.lstrip().startswith("."):
        word = sql.split()[0]
        raise refused(f"{word} is a command of the DuckDB shell, not SQL.")
    try:
        found = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise failed(f"This is not valid SQL: {said(error).rstrip('.')}.", _line(error)) from error
    return tuple(
        _statement(connection, each.query.strip().rstrip(";").strip(), each.type.name, known) for each in found
    )


def _statement(connection: duckdb.DuckDBPyConnection, text: str, kind: str, known: Mapping[str, str]) -> Statement:
    if kind == "EXPLAIN":
        match = _EXPLAIN.fullmatch(text)
        inner = parsed(connection, match["inner"], known) if match else ()
        if len(inner) != 1 or inner[0].kind != "read":
            return Statement(text, "other", inner[0].why if inner else "EXPLAIN of an unknown statement")
        return replace(inner[0], sql=text, kind="explain")
    if kind not in SELECTS:
        why = OTHERS.get(kind, f"{kind.replace('_', ' ')} changes data")
        return Statement(text, "other", why, instead=INSTEAD.get(kind, ""))
    tree = _tree(connection, text)
    if tree is None:
        return _by_tokens(text, known)
    seen = _Seen(tree)
    tables = tuple(dict.fromkeys(known[name.lower()] for name in seen.tables if name.lower() in known))
    missing = (name for name in seen.tables if name.lower() not in known and name not in seen.named and _is_path(name))
    files = tuple(dict.fromkeys((*missing, *seen.files)))
    return Statement(text, "other" if seen.why else "read", seen.why, tables, files)


def _tree(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    """Return DuckDB's parse tree; None for the few statements without one."""
    query = "SELECT json_serialize_sql(?, skip_default := true, skip_empty := true, skip_null := true)"
    # DESCRIBE, SHOW and SUMMARIZE have a tree only inside a query.
    for each in (text, f"FROM (\n{text}\n)"):
        try:
            row = connection.execute(query, [each]).fetchone()
        except duckdb.Error:
            continue
        tree = json.loads(row[0]) if row else {"error": True}
        if not tree["error"]:
            return tree["statements"]
    return None


class _Seen:
    """The names in a parsed statement: tables, files, and why it does more than read."""

    def __init__(self, tree: Any) -> None:
        self.tables: list[str] = []
        self.named: set[str] = set()
        self.files: list[str] = []
        self.why = ""
        for node in _walk(tree):
            self._note(node)

    def _note(self, node: dict[str, Any]) -> None:
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in NODES:
            self.why = self.why or f"{kind.split('_')[0]} changes data"
        if isinstance(entries := cast("Any", node.get("cte_map")), dict):
            self.named |= {str(entry["key"]) for entry in cast("Any", entries).get("map", ())}
        if kind == "BASE_TABLE":
            self.tables.append(".".join(_path(node)))
        elif kind == "TABLE_FUNCTION":
            self._source(node["function"])
        elif node.get("class") == "FUNCTION" and (name := str(node.get("function_name", "")).lower()) in ACTS:
            self.why = self.why or f"{name}() does more than compute"

    def _source(self, function: dict[str, Any]) -> None:
        name = str(function.get("function_name", "")).lower()
        if name in FILE_FUNCTIONS:
            arguments = [argument["expression"] for argument in function.get("arguments", ())]
            texts = [
                str(each["literal"]["text"]) for each in arguments if each.get("literal", {}).get("kind") == "STRING"
            ]
            self.files += texts[:1]
            self.why = self.why or f"{name}() reads a file on its own"
        elif name in ACTS:
            self.why = self.why or f"{name}() reads files or does more than read"
        elif name not in SOURCES:
            self.why = self.why or f"{name or 'this'}() is an unknown source of rows"


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield cast("dict[str, Any]", each)
            waiting.extend(reversed(list(cast("dict[str, Any]", each).values())))
        elif isinstance(each, list):
            waiting.extend(reversed(cast("list[Any]", each)))


def _path(node: dict[str, Any]) -> list[str]:
    path = node.get("qualified_name", {}).get("path")
    return [str(part) for part in path] if path else [str(node.get("table_name", ""))]


def _is_path(name: str) -> bool:
    return any(sign in name for sign in "./*\\~") and not name.lower().startswith("information_schema.")


def _by_tokens(text: str, known: Mapping[str, str]) -> Statement:
    """Classify a PIVOT by its tokens, because DuckDB gives no tree for it."""
    tokens = duckdb.tokenize(text)
    ends = [start for start, _ in tokens[1:]] + [len(text.encode())]
    data = text.encode()
    words = [data[start:end].decode(errors="replace").strip() for (start, _), end in zip(tokens, ends, strict=True)]
    lower = [word.strip('"').lower() for word in words]
    bad = next((word for word in lower if word in CHANGES | ACTS | FILE_FUNCTIONS), "")
    if bad or not _PIVOT.search(text):
        return Statement(text, "other", f"{bad.upper() or 'it'} does more than read")
    return Statement(text, "read", "", tuple(dict.fromkeys(known[word] for word in lower if word in known)))


def _line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.startswith("LINE ")), "")


READS = "Only statements that read can run."
ENGINE = f"DuckDB {duckdb.__version__}"


@frozen
class Queries:
    """Runs queries on ``database``, which pages and loads use too."""

    database: Database
    store: DataStore
    datasets: DatasetRegistry

    def statements(self, sql: str) -> tuple[Statement, ...]:
        """Parse SQL."""
        with self.database.parser() as cursor:
            return parsed(cursor, sql, self.store.names())

    def run(self, request: WorkerRequest, sql: str, head: int, files: Mapping[str, list[str]] | None) -> QueryResult:
        """Run one statement. ``files`` maps named files to their tables; None before they were registered. Raises
        HandlerFailed: it can't run; kind ``files_needed`` lists the files to register."""
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
    ) -> tuple[tuple[TrapFinding, ...], str]:
        """Return the traps of a query, and a note about checks that were skipped."""
        if statement.kind == "explain":
            return (), ""
        tables = {**self.store.names(), **{file.lower(): table for file, table in named.items()}}
        # A separate cursor: a failing check must not end the result's transaction.
        with self.database.shared(request) as cursor:
            return findings_of_query(cursor, request, statement.sql, tables, self.store, seconds)

    def adopt(
        self, request: WorkerRequest, file: Path, types: Mapping[str, str], provenance: Provenance, head: int
    ) -> QueryResult:
        """Store a Parquet file of another engine, in the inbox, as a result. ``types``: the target types of its text
        columns."""
        with self.database.shared(request, "keeping the result") as cursor, self.store.handle() as number:
            name, source = quoted(f"R{number}"), f"read_parquet({text(str(file))})"
            cursor.execute("BEGIN")
            try:
                casts, notes = _casts(cursor, source, types)
                rows = fetch_number(cursor, f"CREATE TABLE {name} AS SELECT {casts} FROM {source}")
                columns = columns_of(cursor, name)
            except duckdb.Error as error:
                cursor.execute("ROLLBACK")
                raise unreadable(f"{file.name} can't be kept as a result: {said(error)}") from error
            return self._kept(cursor, StoredResult(number, columns, rows, provenance, notes), head)

    def _kept(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult, head: int) -> QueryResult:
        """Store the metadata of the transaction's table."""
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
        """Fill the table ``name`` in a transaction that stays open."""
        most = self.database.limits.rows
        if statement.kind == "explain":
            return self._explained(cursor, statement, name)
        cursor.execute("BEGIN")
        try:
            for file, table in named.items():
                # A quoted name means a table before it means a file.
                cursor.execute(f"CREATE VIEW {quoted(file)} AS FROM {quoted(table)}")
            query = f"CREATE TABLE {name} AS SELECT * FROM (\n{statement.sql}\n) LIMIT {most + 1}"
            # A PIVOT is several statements, and the last one reports no row count.
            rows = fetch_number(cursor, query) or fetch_number(cursor, f"SELECT count(*) FROM {name}")
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
        # It can't be nested in another statement, and must change nothing.
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
        """Return the provenance; ``named`` maps the query's files to tables."""
        found = [each.dataset for name in tables if (each := self.store.dataset(name))]
        called = {each.name: tuple(file for file, name in named.items() if name == each.name) for each in found}
        return tuple(UsedData(each.name, each.source, each.files, called[each.name]) for each in found)


def _casts(cursor: duckdb.DuckDBPyConnection, source: str, types: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the columns of a SELECT that casts text, and a note for each column that stays text."""
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
    # Lists arrive as JSON.
    return f"CAST(CAST({column} AS JSON) AS {kind})" if kind.endswith("[]") else f"CAST({column} AS {kind})"
