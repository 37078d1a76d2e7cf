"""PostgreSQL: read-only sessions, rows as text from a server-side cursor, its estimates, and cancellation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ibis
import psycopg
from psycopg.types.string import TextLoader

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.errors import failed, first_line, nearest_names, unreachable
from ba_tui.features.data.analysis.source_process.engine import (
    PLAIN,
    IbisEngine,
    LandedRows,
    NumericWidth,
    SourceQuery,
    TextRow,
    distinct_names,
    done,
    land_text,
)
from ba_tui.processes.serving import HandlerFailed

CONNECT_SECONDS = 10
BATCH = 5_000
CHECKS_CLIENT = 140_000
"""The first version whose server can check the connection to the client."""
CURSOR = "ba_rows"
TYPES: Mapping[str, str] = {
    "bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "oid": "BIGINT", "float4": "FLOAT",
    "float8": "DOUBLE", "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE", "uuid": "UUID", "json": "JSON", "jsonb": "JSON", "interval": "INTERVAL",
}  # fmt: skip
"""DuckDB types by PostgreSQL type. Values of other types are text."""
_MISSING = regex(r'column "?([\w.]+)"? does|"([^"]+)"')
_TABLES = """
SELECT n.nspname, c.relname, n.nspname = ANY (current_schemas(false)) FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
AND has_table_privilege(c.oid, 'SELECT') AND NOT c.relispartition ORDER BY 1, 2 LIMIT 5000
"""


def connected(url: str) -> PostgresEngine:
    """Connect read-only. Raises psycopg.Error."""
    backend: Any = ibis.connect(url, connect_timeout=CONNECT_SECONDS, application_name="ba")
    backend.con.execute("SET default_transaction_read_only = on")
    if backend.con.info.server_version >= CHECKS_CLIENT:
        # The server then ends the query when the helper was killed.
        backend.con.execute("SET client_connection_check_interval = '2s'")
    return PostgresEngine(backend)


class PostgresEngine(IbisEngine):
    label = "PostgreSQL"

    def tables(self) -> Sequence[str]:
        with self.backend.con.cursor() as cursor:
            rows: list[tuple[str, str, bool]] = cursor.execute(_TABLES).fetchall()
        return [name if found else f"{schema}.{name}" for schema, name, found in rows]

    def query(self, query: SourceQuery) -> LandedRows:
        con = self.backend.con
        with con.transaction():
            con.execute(f"SET LOCAL statement_timeout = {int(query.seconds * 1000)}")
            con.execute("SET LOCAL cursor_tuple_fraction = 1")
            with self._cursor(query.sql) as cursor:
                elements = _read_as_text(cursor)
                cursor.execute(query.limited)
                return _landed(query, cursor, elements)

    def _cursor(self, sql: str) -> Any:
        if PLAIN.match(sql):
            return self.backend.con.cursor()
        cursor = self.backend.con.cursor(name=CURSOR)
        cursor.itersize = BATCH
        return cursor

    def execute(self, query: SourceQuery) -> LandedRows:
        con = self.backend.con
        with con.transaction():
            con.execute("SET TRANSACTION READ WRITE")
            con.execute(f"SET LOCAL statement_timeout = {int(query.seconds * 1000)}")
            cursor = con.execute(query.sql)
        return done(query, str(cursor.statusmessage), cursor.rowcount)

    def cost(self, sql: str) -> tuple[float, float] | None:
        if PLAIN.match(sql):
            return None
        row: Any = self.backend.con.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()
        plan = row[0][0]["Plan"]
        return float(plan["Total Cost"]), float(plan["Plan Rows"])

    def interrupt(self) -> None:
        self.backend.con.cancel_safe(timeout=CONNECT_SECONDS)

    def in_words(self, error: Exception, sql: str) -> HandlerFailed:
        if not isinstance(error, psycopg.Error):
            return failed(first_line(error))
        text = error.diag.message_primary or first_line(error)
        found = _MISSING.search(text)
        name = (found[1] or found[2]) if found else ""
        match error.sqlstate:
            case "42P01" if name:
                return failed(f"There is no table {name}.", nearest_names(name, self.tables(), "Tables"))
            case "42703" if name:
                return failed(f"There is no column {name} here.", self.near_column(name, sql))
            case "57014" if "timeout" in text:
                return failed("The query took too long and was stopped.", "Filter or aggregate earlier.", "timeout")
            case "25006":
                return failed(f"{text[:1].upper()}{text[1:]}.", kind="permission_denied")
            case None:
                return unreachable(f"The connection was lost: {first_line(error)}", "Run it again.")
            case _:
                return failed(f"{text[:1].upper()}{text[1:]}")


def _read_as_text(cursor: Any) -> dict[int, str]:
    """Receive values as the server's text; return the element types of arrays by their OID."""
    elements: dict[int, str] = {}
    for info in psycopg.adapters.types:
        if info.name != "bytea":
            cursor.adapters.register_loader(info.oid, TextLoader)
        if info.array_oid:
            elements[info.array_oid] = info.name
    return elements


def _landed(query: SourceQuery, cursor: Any, elements: Mapping[int, str]) -> LandedRows:
    described: Sequence[Any] = cursor.description or ()
    names = distinct_names(column.name for column in described)
    types = dict(zip(names, (_type(column, elements) for column in described), strict=True))
    widths = {place: NumericWidth() for place, name in enumerate(names) if types[name] == "NUMERIC"}
    depths = {place: set[int]() for place, column in enumerate(described) if column.type_code in elements}

    def rows() -> Iterator[TextRow]:
        for row in cursor:
            made = list(row)
            for place, width in widths.items():
                if made[place] is not None:
                    width.see(made[place])
            for place, depth in depths.items():
                if made[place] is not None:
                    depth.add(_depth(made[place]))
                    made[place] = json.dumps(made[place], default=str)
            yield [_bytes(value) if isinstance(value, bytes) else value for value in made]

    count = land_text(query.file, names, rows(), query.most)
    types |= {names[place]: width.type for place, width in widths.items()}
    for place, depth in depths.items():
        # PostgreSQL arrays may have any number of dimensions.
        types[names[place]] = f"{types[names[place]]}{'[]' * max(depth, default=1)}" if len(depth) < 2 else "JSON"
    return LandedRows(count, {name: kind for name, kind in types.items() if kind != "VARCHAR"})


def _type(column: Any, elements: Mapping[int, str]) -> str:
    """Return the DuckDB type of a column or array element; NUMERIC when its width depends on the values."""
    if column.type_code in elements:
        inner = elements[column.type_code]
        return "DOUBLE" if inner == "numeric" else TYPES.get(inner, "VARCHAR")
    info = psycopg.adapters.types.get(column.type_code)
    name = info.name if info else ""
    if name == "numeric":
        precision, scale = column.precision, column.scale
        fits = precision is not None and scale is not None and 0 <= scale <= precision <= 38
        return f"DECIMAL({precision},{scale})" if fits else "NUMERIC"
    return "BLOB" if name == "bytea" else TYPES.get(name, "VARCHAR")


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, list) and value else int(isinstance(value, list))


def _bytes(value: bytes) -> str:
    """Convert to the text form of a DuckDB BLOB."""
    return "".join(f"\\x{byte:02X}" for byte in value)
