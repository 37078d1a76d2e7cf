"""The database of the session: opens it with its settings locked, and says which files it may read.

Requests share it; one that loads files has it alone, because the list of readable files is fixed while it is open.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import duckdb

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.failures import failed
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

DATABASE = "engine.duckdb"
SPILL, WORK, EXPORTS, INBOX = "spill", "work", "exports", "inbox"
LOADING_MEMORY = 220_000_000
"""Bytes for reading files: enough to stream rows of usual width, and little of what a machine has."""
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
    """Tells requests a few times a second how far their queries are. One thread for all: to start one for each query
    would cost more than most queries."""

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
        """Nothing is reported for ``cursor`` after this: the reply of its request is the last word."""
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
            # After the line above, which may undo what ``close`` has just set.
            if self._closing.is_set():
                return
            with self._telling:
                for key, (cursor, request, doing) in list(self._running.items()):
                    self._any.set()
                    if key in seen:
                        percent = cursor.query_progress()
                        request.progress({"doing": doing, "share": round(percent / 100, 3) if percent >= 0 else None})


class Database:
    """One open database at a time. Thread-safe."""

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
        # Only who holds the database may remove what an earlier process left.
        for path in (*(folder / WORK).iterdir(), *(folder / EXPORTS).iterdir()):
            path.unlink(missing_ok=True)
        self._reports = _Reports()

    def close(self) -> None:
        """Close the file and end the thread for progress. No request may be using the database."""
        self._reports.close()
        self._connection.close()

    @contextmanager
    def shared(self, request: WorkerRequest, doing: str = "") -> Generator[duckdb.DuckDBPyConnection]:
        """Yield a cursor of the request's own, which a cancel interrupts. With ``doing``, progress is reported."""
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
        """As ``shared``, but no other request uses the database meanwhile. From now on it may read ``paths``."""
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
        """Return a cursor of an empty database, for parsing: it waits for no load and needs no other thread."""
        return _empty().cursor()

    @contextmanager
    def opening(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A cursor for before the first request."""
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def widen(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Let a load that ran out of memory use what queries may."""
        self._remember(cursor, self.limits.memory)

    def report_no_more(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Leave it to the request to say how far it is from here on."""
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
        """Let the database read ``paths``. No request may be using it."""
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
        # Faster to write and to read than small: the file goes with the session.
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
    """Return the empty database of this process. To open one takes a fiftieth of a second, so the first query does."""
    return duckdb.connect(":memory:", config=PARSING)


def _interrupt(cursor: duckdb.DuckDBPyConnection) -> None:
    # It may be closed by now: a request uses several, one after the other.
    with suppress(duckdb.Error):
        cursor.interrupt()


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL has it. Raises HandlerFailed for NUL, which DuckDB can't take in a statement."""
    if "\0" in value:
        raise failed("A name or value holds a NUL character.")
    return "'" + value.replace("'", "''") + "'"
