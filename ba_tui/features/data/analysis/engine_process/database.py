"""The database of the session. It is opened with locked settings and a list of readable files.

Requests share it. A request that loads files has exclusive access, because the list is fixed while the database is
open.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.ports.tables import MAX_CELL_CHARS, Cell, Column, Row
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line, quoted
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import LONGEST, failed, nearest_names
from ba_tui.processes.serving import HandlerFailed, RequestCancelled, WorkerRequest

# Errors as one line and a hint: DuckDB's messages reworded, with the nearest names.

_TABLE = regex(r"Table(?: Function)? with name \"?([^\"\s!]+)\"? does not exist")
_COLUMN = regex(r'(?:Referenced column|Referenced table|column named|Column) "([^"]+)"')
_FUNCTION = regex(r"Function with name (\S+) does not exist")
_FILE = regex(r' in file "[^"]*"')
_PREFIX = regex(r"^(?:(?:[A-Za-z]+ ){0,4}[A-Za-z]*Error: ){1,2}")


def unreadable(message: str, hint: str = "") -> HandlerFailed:
    """Return the error of a file that can't be read as data."""
    return HandlerFailed("data_unreadable", f"{one_line(message, LONGEST)}\n{hint}")


def refused(message: str, hint: str = "") -> HandlerFailed:
    """Return the error of a statement that is refused."""
    return HandlerFailed("query_refused", f"{one_line(message, LONGEST)}\n{hint}")


def unknown_table(name: str, known: Iterable[str]) -> HandlerFailed:
    """Return the error of an unknown table."""
    return HandlerFailed(
        "unknown_table", f"There is no table {one_line(name, 80)}.\n{nearest_names(name, known, 'Tables')}"
    )


def said(error: Exception) -> str:
    """Return DuckDB's first sentence, without error class and position."""
    first = str(error).strip().split("\n", 1)[0]
    return _FILE.sub("", _PREFIX.sub("", first))


def of_query(error: duckdb.Error, tables: Sequence[str], columns: Sequence[str]) -> HandlerFailed:
    """Return the error of a failed query, with the nearest of ``tables`` and ``columns``."""
    text = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        what = "disk space for intermediate data" if "max_temp_directory_size" in text else "memory"
        hint = "Aggregate or filter earlier, or raise analysis.memory_gb or analysis.disk_gb."
        return failed(f"The query needs more {what} than it may use.", hint, "resource_error")
    if disk_full(error):
        return failed("The disk is full.", "Free some space, then run it again.", "resource_error")
    if isinstance(error, duckdb.PermissionException):
        return refused("The query reads a file that is not registered, or the network.", "Mention the file first.")
    if found := _TABLE.search(text):
        hint = f"{nearest_names(found[1], tables, 'Tables')} A file is named in quotes: FROM 'data/sales.csv'."
        return failed(f"There is no table {found[1]}.", hint)
    if found := _COLUMN.search(text):
        return failed(f"There is no column {found[1]} here.", nearest_names(found[1], columns, "Columns"))
    if found := _FUNCTION.search(text):
        return failed(f"DuckDB has no function {found[1]}.", _guess(text))
    return failed(said(error), _position(text))


def disk_full(error: duckdb.Error) -> bool:
    """Return whether a file could not be written for lack of space."""
    return "No space left on device" in str(error)


def _guess(text: str) -> str:
    _, found, rest = text.partition("Did you mean ")
    return one_line(f"Did you mean {rest.splitlines()[0]}", 120) if found else ""


def _position(text: str) -> str:
    """Return the line of the query that DuckDB shows."""
    line = next((line for line in text.splitlines() if line.startswith("LINE ")), "")
    return one_line(line, 160) if line else ""


DATABASE = "engine.duckdb"
SPILL, WORK, EXPORTS, INBOX = "spill", "work", "exports", "inbox"
LOADING_MEMORY = 220_000_000
"""Bytes for loading files: enough to stream rows of usual width."""
TICK_SECONDS = 0.2
PARSING: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
}


@frozen
class Limits:
    """See ``engine.EngineLimits``."""

    memory: int
    threads: int
    disk: int
    rows: int


class _Reports:
    """Reports the progress of queries a few times a second. One thread serves all: starting a thread costs more than
    most queries."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[duckdb.DuckDBPyConnection, WorkerRequest, str]] = {}
        self._any = threading.Event()
        self._closing = threading.Event()
        self._telling = threading.Lock()
        self._thread = threading.Thread(target=self._tell, daemon=True, name="progress")
        self._thread.start()

    def add(self, cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, doing: str) -> None:
        self._running[id(cursor)] = (cursor, request, doing)
        self._any.set()

    def remove(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Stop reporting ``cursor``, so that nothing follows the reply of its request."""
        with self._telling:
            self._running.pop(id(cursor), None)

    def close(self) -> None:
        self._closing.set()
        self._any.set()
        self._thread.join()

    def _tell(self) -> None:
        while self._any.wait():
            seen = set(self._running)
            self._closing.wait(TICK_SECONDS)
            self._any.clear()
            # Checked after the line above, which may have undone what ``close`` has just set.
            if self._closing.is_set():
                return
            with self._telling:
                for key, (cursor, request, doing) in list(self._running.items()):
                    self._any.set()
                    if key in seen:
                        percent = cursor.query_progress()
                        request.progress({"doing": doing, "share": round(percent / 100, 3) if percent >= 0 else None})


class Database:
    """The open database. Thread-safe."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.limits = limits
        self._gate = threading.Condition()
        self._users = 0
        self._alone = False
        self._paths: frozenset[str] = frozenset()
        for name in (SPILL, WORK, EXPORTS, INBOX):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        self._connection = self._opened(frozenset())
        # Only the process that holds the database may remove files of an earlier one.
        for path in (*(folder / WORK).iterdir(), *(folder / EXPORTS).iterdir()):
            path.unlink(missing_ok=True)
        self._reports = _Reports()

    def close(self) -> None:
        """Close the file and end the progress thread. No request may be using the database."""
        self._reports.close()
        self._connection.close()

    @contextmanager
    def shared(self, request: WorkerRequest, doing: str = "") -> Generator[duckdb.DuckDBPyConnection]:
        """Yield a cursor for one request, which cancelling interrupts. With ``doing``, progress is reported."""
        with self._gate:
            while self._alone:
                self._wait(request)
            self._users += 1
        try:
            with self._cursor(request, doing) as cursor:
                yield cursor
        finally:
            with self._gate:
                self._users -= 1
                self._gate.notify_all()

    @contextmanager
    def loading(
        self, request: WorkerRequest, paths: Iterable[str], doing: str = ""
    ) -> Generator[duckdb.DuckDBPyConnection]:
        """As ``shared``, with exclusive access. Afterwards the database may read ``paths``."""
        with self._gate:
            while self._alone or self._users:
                self._wait(request)
            self._alone = True
        try:
            self.permit(frozenset(paths))
            with self._cursor(request, doing) as cursor:
                self._remember(cursor, min(LOADING_MEMORY, self.limits.memory))
                yield cursor
        finally:
            with suppress(duckdb.Error):
                self._remember(self._connection, self.limits.memory)
            with self._gate:
                self._alone = False
                self._gate.notify_all()

    def parser(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor of an empty database for parsing, which does not wait for loads and is single-threaded."""
        return _empty().cursor()

    @contextmanager
    def opening(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Yield a cursor before the first request."""
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def widen(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Raise the memory limit of a load to that of queries."""
        self._remember(cursor, self.limits.memory)

    def report_no_more(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Stop automatic progress reports; the request reports its own."""
        self._reports.remove(cursor)

    def _wait(self, request: WorkerRequest) -> None:
        if request.cancelled.is_set():
            raise RequestCancelled
        self._gate.wait(TICK_SECONDS)

    @contextmanager
    def _cursor(self, request: WorkerRequest, doing: str) -> Generator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        request.on_cancel(partial(_interrupt, cursor))
        if doing:
            cursor.execute("SET enable_progress_bar = true")
            cursor.execute("SET enable_progress_bar_print = false")
            self._reports.add(cursor, request, doing)
        try:
            if request.cancelled.is_set():
                raise RequestCancelled
            yield cursor
        except duckdb.InterruptException as error:
            raise RequestCancelled from error
        finally:
            self._reports.remove(cursor)
            cursor.close()

    def permit(self, paths: frozenset[str]) -> None:
        """Allow the database to read ``paths``. No request may be using it."""
        if paths != self._paths:
            self._connection.close()
            self._connection = self._opened(paths)
            self._paths = paths

    def _remember(self, connection: duckdb.DuckDBPyConnection, memory: int) -> None:
        connection.execute(f"SET memory_limit = '{memory // 1000}KB'")

    def _opened(self, paths: frozenset[str]) -> duckdb.DuckDBPyConnection:
        spill = self.folder / SPILL
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "python_enable_replacements": False,
            "memory_limit": f"{self.limits.memory // 1000}KB",
            "threads": self.limits.threads,
            "temp_directory": str(spill),
            "max_temp_directory_size": f"{self.limits.disk // 1000}KB",
        }
        connection = duckdb.connect(str(self.folder / DATABASE), config=config)
        # Uncompressed is faster to write and read; the file is removed with the session.
        connection.execute("PRAGMA force_compression = 'uncompressed'")
        connection.execute("SET TimeZone = 'UTC'")
        own = ", ".join(text(str(self.folder / name)) for name in (WORK, EXPORTS, INBOX))
        connection.execute(f"SET allowed_directories = [{own}]")
        if paths:
            names = ", ".join(text(path) for path in sorted(paths))
            connection.execute(f"SET allowed_paths = [{names}]")
        connection.execute(
            "SET allowed_configs = ['memory_limit', 'enable_progress_bar', 'enable_progress_bar_print', 'schema']"
        )
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection


@cache
def _empty() -> duckdb.DuckDBPyConnection:
    """Return the empty database of this process, opened on first use as that takes 20 ms."""
    return duckdb.connect(":memory:", config=PARSING)


def _interrupt(cursor: duckdb.DuckDBPyConnection) -> None:
    # It may be closed already: a request uses several cursors in turn.
    with suppress(duckdb.Error):
        cursor.interrupt()


def text(value: str) -> str:
    """Return text as an SQL literal. Raises HandlerFailed for NUL, which DuckDB does not accept in a statement."""
    if "\0" in value:
        raise failed("A name or value holds a NUL character.")
    return "'" + value.replace("'", "''") + "'"


# Values of DuckDB as JSON, and columns of a table or query.

MOST_CHARS = 12_000_000
"""Characters of all rows in one reply: JSON may take five times as many bytes, and a message has 64 MB."""
SHORTEST = 100


def columns_of(cursor: duckdb.DuckDBPyConnection, table: str) -> tuple[Column, ...]:
    """Return the columns of ``table``, a quoted name or a bracketed query."""
    found = cursor.execute(f"FROM {table} LIMIT 0").description or ()
    return tuple(Column(str(name), str(kind)) for name, kind, *_ in found)


def fetch_number(cursor: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> int:
    """Return the number that ``query`` computes; 0 when it returns no row."""
    row = cursor.execute(query, list(values)).fetchone()
    return int(row[0]) if row else 0


def shown(expression: str, column: Column, longest: int = MAX_CELL_CHARS) -> str:
    """Return SQL for a value of ``column`` that JSON can represent; only long texts are cut."""
    if column.kind in {"integer", "float", "boolean"}:
        return expression
    return f"left(CAST({expression} AS VARCHAR), {longest + 1})"


def rows_of(found: Iterable[Sequence[Any]]) -> tuple[Row, ...]:
    """Return rows for a reply. When their text exceeds a reply, long texts are cut shorter."""
    rows = tuple(row_of(values) for values in found)
    texts = [len(value) for row in rows for value in row if isinstance(value, str)]
    if sum(texts) <= MOST_CHARS:
        return rows
    longest = max(SHORTEST, MOST_CHARS // len(texts))
    return tuple(row_of(row, longest) for row in rows)


def row_of(values: Sequence[Any], longest: int = MAX_CELL_CHARS) -> Row:
    return tuple(cell(value, longest) for value in values)


def cell(value: Any, longest: int = MAX_CELL_CHARS) -> Cell:
    """Return a value of ``shown`` as a cell."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def listed(columns: Iterable[Column], longest: int = MAX_CELL_CHARS) -> str:
    """Return the columns of a SELECT for ``row_of``."""
    return ", ".join(shown(quoted(column.name), column, longest) for column in columns)
