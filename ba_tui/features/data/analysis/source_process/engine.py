"""A connected source. ``IbisEngine`` works with any backend of ibis; subclasses know more about their engine."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote

import ibis

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import failed, first_line, nearest_names
from ba_tui.processes.serving import HandlerFailed, WorkerRequest

# Rows of another engine are written to a Parquet file: as text with target types, or as Arrow.

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
"""Imported by name, as it has no types."""
CHUNK = 10_000
WIDEST = 38
TextRow: TypeAlias = Sequence[str | None]


@frozen
class LandedRows:
    """The number of ``rows`` written, and the DuckDB ``types``, by column, to cast text columns to."""

    rows: int
    types: Mapping[str, str]


class NumericWidth:
    """The width of a DECIMAL for all numbers seen. NaN and infinity fit none."""

    def __init__(self) -> None:
        self._whole, self._scale, self._odd = 1, 0, False

    def see(self, text: str) -> None:
        whole, _, fraction = text.lstrip("-").partition(".")
        self._odd = self._odd or not whole.isdecimal()
        self._whole, self._scale = max(self._whole, len(whole)), max(self._scale, len(fraction))

    @property
    def type(self) -> str:
        """The DuckDB type; VARCHAR when no DECIMAL fits."""
        width = self._whole + self._scale
        return f"DECIMAL({width},{self._scale})" if width <= WIDEST and not self._odd else "VARCHAR"


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return ``names`` with numbers appended to repeated ones."""
    found: list[str] = []
    for name in names:
        wanted = name or "column"
        numbers = itertools.count(1)
        chosen = wanted
        while chosen.lower() in {each.lower() for each in found}:
            chosen = f"{wanted}_{next(numbers)}"
        found.append(chosen)
    return found


def land_text(file: Path, names: Sequence[str], rows: Iterable[TextRow], most: int) -> int:
    """Write ``rows`` of text to ``file`` and return their number. Raises HandlerFailed beyond ``most`` rows."""
    if not names:
        raise failed("The statement returns no columns.")
    schema = pa.schema([(name, pa.string()) for name in names])
    return _written(file, schema, (_batch(schema, chunk) for chunk in _chunks(rows)), most)


def land_arrow(file: Path, reader: Any, most: int) -> int:
    """Write the record batches of ``reader`` to ``file``. Otherwise as ``land_text``."""
    schema: Any = reader.schema.remove_metadata()
    schema = pa.schema(
        [schema.field(number).with_name(name) for number, name in enumerate(distinct_names(schema.names))]
    )
    return _written(file, schema, (pa.RecordBatch.from_arrays(each.columns, schema=schema) for each in reader), most)


def _chunks(rows: Iterable[TextRow]) -> Iterator[list[TextRow]]:
    left = iter(rows)
    while chunk := list(itertools.islice(left, CHUNK)):
        yield chunk


def _batch(schema: Any, rows: Sequence[TextRow]) -> Any:
    columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _written(file: Path, schema: Any, batches: Iterable[Any], most: int) -> int:
    rows = 0
    with pq.ParquetWriter(str(file), schema, compression="zstd") as writer:
        for batch in batches:
            rows += batch.num_rows
            if rows > most:
                hint = "Aggregate, filter or add a LIMIT, or raise analysis.max_rows."
                raise failed(f"The query returns more than {most:,} rows.", hint, "resource_error")
            writer.write_batch(batch)
    return rows


PLAIN = regex(r"(?i)\s*(?:explain|show|describe|desc|pragma)\b")
"""Statements that can't be nested in another one."""
SAMPLE = 3
STOP_SECONDS = 0.05
"""Seconds between attempts to interrupt a statement."""
NESTED = ("array", "map", "struct", "json", "binary")
ORDERED = ("int", "uint", "float", "decimal", "date", "timestamp")
_SHOW_TABLES = regex(r"(?i)show\s+tables")
_DESCRIBE = regex(r"(?i)desc(?:ribe)?\s+(?:table\s+)?([\w.]+)")
_TABLE = regex(
    r"(?i)(?:relation|no such table:|table or view not found:|unknown table) [\"'`]?([\w.]+)"
    r"|table [\"'`]([\w.]+)[\"'`] does"
)
_COLUMN = regex(
    r"(?i)(?:no such column:|unknown column|attribute ObjectName\(\[Identifier\(|column(?: named)?) ?[\"'`]?([\w.]+)"
)


@frozen
class SourceQuery:
    """One statement ``sql``, whose rows go to ``file``: at most ``most``, within ``seconds``."""

    sql: str
    file: Path
    most: int
    seconds: float

    @property
    def limited(self) -> str:
        """The statement with a row limit."""
        return self.sql if PLAIN.match(self.sql) else f"SELECT * FROM (\n{self.sql}\n) AS ba_rows LIMIT {self.most + 1}"


class IbisEngine:
    """A source through ``backend``, a connected backend of ibis."""

    label = ""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._known: Sequence[str] = ()

    @property
    def version(self) -> str:
        """Name and version of the engine."""
        name = self.label or str(self.backend.name).capitalize()
        try:
            return f"{name} {str(self.backend.version).split()[0]}"
        except Exception:  # noqa: BLE001 - some backends have no version
            return name

    def tables(self) -> Sequence[str]:
        """Return the names of the tables that a query can read."""
        self._known = sorted(map(str, self.backend.list_tables()))
        return self._known

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the column types of ``table`` by name, in the notation of ibis."""
        return {str(name): str(kind).removeprefix("!") for name, kind in self.table(table).schema().items()}

    def table(self, name: str) -> Any:
        """Return the ibis table ``name``, which may include a schema. Raises HandlerFailed when it does not exist."""
        *above, last = name.split(".")
        try:
            return self.backend.table(last, database=tuple(above) if len(above) > 1 else above[0] if above else None)
        except Exception as error:
            raise failed(f"There is no table {name}.", self._near_table(name), "not_found") from error

    def statistics(self, name: str, share: str) -> list[dict[str, Any]]:
        """Return the shareable statistics of each column: counts and, for the share ``sample``, some values."""
        table, columns = self.table(name), self.columns(name)
        try:
            figures = _figures(table, columns, bounds=True)
        except Exception:  # noqa: BLE001 - columns with values of several types have no minimum
            figures = _figures(table, columns, bounds=False)
        rows: list[dict[str, Any]] = []
        if share == "sample":
            with suppress(Exception):
                rows = table.limit(SAMPLE).to_pyarrow().to_pylist()
        return [
            {
                "rows": figures["rows"], "nulls": figures["rows"] - figures[f"given{place}"],
                "distinct": figures.get(f"distinct{place}") or 0, "minimum": _plain(figures.get(f"low{place}")),
                "maximum": _plain(figures.get(f"high{place}")),
                "sample": [_plain(row[column]) for row in rows if row[column] is not None],
            }
            for place, column in enumerate(columns)
        ]  # fmt: skip

    def read(self, query: SourceQuery) -> LandedRows:
        """Run a statement that reads, or answer SHOW TABLES and DESCRIBE, which some engines lack."""
        if _SHOW_TABLES.fullmatch(query.sql):
            return LandedRows(
                land_text(query.file, ("table_name",), [(name,) for name in self.tables()], query.most), {}
            )
        if found := _DESCRIBE.fullmatch(query.sql):
            columns = self.columns(found[1]).items()
            return LandedRows(land_text(query.file, ("column_name", "column_type"), columns, query.most), {})
        return self.query(query)

    def query(self, query: SourceQuery) -> LandedRows:
        """Run a statement that reads, and write its rows."""
        reader = self.backend.sql(query.limited).to_pyarrow_batches(chunk_size=CHUNK)
        return LandedRows(land_arrow(query.file, reader, query.most), {})

    def execute(self, query: SourceQuery) -> LandedRows:
        """Run a statement that changes data, and write the engine's answer."""
        found = self.backend.raw_sql(query.sql)
        if close := getattr(found, "close", None):
            close()
        return done(query, "done", None)

    def cost(self, sql: str) -> tuple[float, float] | None:
        """Return the engine's estimate of cost and rows; None when it makes none."""
        del sql
        return None

    def interrupt(self) -> None:
        """Interrupt the running statement, from another thread."""

    @contextmanager
    def limited(self, request: WorkerRequest, seconds: float) -> Generator[None]:
        """While active, a cancel or timeout interrupts the statement on the server. The exit waits for an interrupt in
        progress, which would otherwise stop the next statement."""
        late, over = threading.Event(), threading.Event()
        stopping: list[threading.Thread] = []

        def stop() -> None:
            # Repeated, because the statement may not have started at the first attempt.
            while not over.wait(STOP_SECONDS):
                with suppress(Exception):
                    self.interrupt()

        def stop_late() -> None:
            late.set()
            stop()

        def cancelled() -> None:
            thread = threading.Thread(target=stop, daemon=True)
            stopping.append(thread)
            thread.start()

        timer = threading.Timer(seconds, stop_late)
        timer.daemon = True
        timer.start()
        request.on_cancel(cancelled)
        try:
            yield
        except HandlerFailed:
            raise
        except Exception as error:
            if late.is_set() and not request.cancelled.is_set():
                raise too_slow(seconds) from error
            raise
        finally:
            over.set()
            timer.cancel()
            for thread in (timer, *stopping):
                with suppress(RuntimeError):  # not started yet: it will see that the statement is over
                    thread.join()

    def in_words(self, error: Exception, sql: str) -> HandlerFailed:
        """Return the error of a statement as one line, with the nearest names."""
        text = first_line(error)
        if found := _COLUMN.search(text):
            return failed(f"There is no column {found[1]} here.", self.near_column(found[1], sql))
        if found := _TABLE.search(text):
            name = found[1] or found[2]
            return failed(f"There is no table {name}.", self._near_table(name))
        return failed(text)

    def near_column(self, name: str, sql: str) -> str:
        """Return a hint with the nearest columns of the tables in ``sql``."""
        known = [column for table in self._named(sql) for column in self._columns(table)]
        return nearest_names(name.rpartition(".")[2], known, "Columns") if known else ""

    def _near_table(self, name: str) -> str:
        with suppress(Exception):
            return nearest_names(name, self.tables(), "Tables")
        return ""

    def _named(self, sql: str) -> list[str]:
        """Return the tables of the source whose names occur in ``sql``."""
        words = {word.lower() for word in regex(r"[\w.]+").findall(sql)}
        with suppress(Exception):
            return [table for table in self.tables() if table.lower() in words]
        return []

    def _columns(self, table: str) -> Sequence[str]:
        with suppress(Exception):
            return list(self.columns(table))
        return ()


def _figures(table: Any, columns: Mapping[str, str], *, bounds: bool) -> Mapping[str, Any]:
    """Return the counts of each column, by position, in one query; ``bounds``: with minimum and maximum."""
    plan: dict[str, Any] = {"rows": table.count()}
    for place, (column, kind) in enumerate(columns.items()):
        plan[f"given{place}"] = table[column].count()
        if not kind.startswith(NESTED):
            plan[f"distinct{place}"] = table[column].nunique()
        if bounds and kind.startswith(ORDERED):
            plan[f"low{place}"], plan[f"high{place}"] = table[column].min(), table[column].max()
    return cast("dict[str, Any]", table.aggregate(**plan).to_pyarrow().to_pylist()[0])


def done(query: SourceQuery, status: str, rows: int | None) -> LandedRows:
    """Write one row that reports what a statement did."""
    text = None if rows is None or rows < 0 else str(rows)
    land_text(query.file, ("status", "rows_changed"), [(status, text)], query.most)
    return LandedRows(1, {"rows_changed": "BIGINT"})


def too_slow(seconds: float) -> HandlerFailed:
    """Return the error of a statement that exceeded its time."""
    hint = "Filter or aggregate earlier, or raise analysis.query_seconds."
    return failed(f"The query took longer than {seconds:g} s and was stopped.", hint, "timeout")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


ATTACHING = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


class SqliteEngine(IbisEngine):
    """An SQLite file, opened read-only. Its values have individual types."""

    label = "SQLite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = _opened(path, "ro")
        super().__init__(ibis.sqlite.from_connection(self._open))

    def query(self, query: SourceQuery) -> LandedRows:
        cursor: Any = self._open.execute(query.limited)
        names = distinct_names(column[0] for column in cursor.description)
        kinds: list[set[Any]] = [set() for _ in names]

        def rows() -> Iterator[TextRow]:
            for row in cursor:
                for seen, value in zip(kinds, row, strict=True):
                    if value is not None:
                        seen.add(type(value))
                yield [_text(value) for value in row]

        count = land_text(query.file, names, rows(), query.most)
        types = {name: kind for name, seen in zip(names, kinds, strict=True) if (kind := _type(seen))}
        return LandedRows(count, types)

    def execute(self, query: SourceQuery) -> LandedRows:
        writing = _opened(self._path, "rw")
        try:
            cursor = writing.execute(query.sql)
            return done(query, "done", cursor.rowcount)
        finally:
            writing.close()

    def tables(self) -> Sequence[str]:
        found = self._open.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        )
        return [str(name) for (name,) in found]

    def interrupt(self) -> None:
        self._open.interrupt()


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    file = f"file:{quote(str(path))}?mode={mode}"
    made = sqlite3.connect(file, uri=True, isolation_level=None, check_same_thread=False)
    made.set_authorizer(_allowed)
    made.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return made


def _allowed(action: int, *about: str | None) -> int:
    del about
    return sqlite3.SQLITE_DENY if action in ATTACHING else sqlite3.SQLITE_OK


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return "".join(f"\\x{byte:02X}" for byte in value)
    return value if value is None or isinstance(value, str) else repr(value)


def _type(kinds: set[Any]) -> str:
    """Return the DuckDB type for values of ``kinds``; empty for text."""
    if kinds == {bytes}:
        return "BLOB"
    if kinds and kinds <= {int, float}:
        return "DOUBLE" if float in kinds else "BIGINT"
    return ""


class SparkEngine(IbisEngine):
    """An engine with Spark Connect: Spark, Databricks and compatible ones."""

    label = "Spark"

    def __init__(self, url: str) -> None:
        # Imported by name: few environments have this client.
        self._session: Any = import_module("pyspark.sql").SparkSession.builder.remote(url).create()
        super().__init__(ibis.pyspark.connect(self._session))

    def query(self, query: SourceQuery) -> LandedRows:
        # Arrow directly: through pandas, ibis loses maps, and large integers in columns with NULL.
        table: Any = self.backend.raw_sql(query.limited).toArrow()
        return LandedRows(land_arrow(query.file, table.to_reader(max_chunksize=CHUNK), query.most), {})

    def execute(self, query: SourceQuery) -> LandedRows:
        self._session.sql(query.sql)
        return done(query, "done", None)

    def interrupt(self) -> None:
        self._session.interruptAll()


def connected(url: str) -> IbisEngine:
    """Connect to any source but PostgreSQL. Raises the driver's exceptions."""
    scheme, _, place = url.partition(":")
    if scheme == "sqlite":
        return SqliteEngine(Path(unquote(place.removeprefix("//"))))
    return SparkEngine(url) if scheme == "sc" else IbisEngine(ibis.connect(url))
