"""One connected source. ``IbisEngine`` does for any backend of ibis; others know more of their engine."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.nearest import nearest_names
from ba_tui.features.data.analysis.source_process.failures import failed, first_line
from ba_tui.features.data.analysis.source_process.landing import CHUNK, Landed, land_arrow, land_text
from ba_tui.processes.serving import HandlerFailed, WorkerRequest

PLAIN = regex(r"(?i)\s*(?:explain|show|describe|desc|pragma)\b")
"""Statements that can't stand inside of another one."""
SAMPLE = 3
STOP_SECONDS = 0.05
"""Seconds between two tries to stop a statement."""
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
    """``sql`` is one statement; its rows go to ``file``, at most ``most`` of them, within ``seconds``."""

    sql: str
    file: Path
    most: int
    seconds: float

    @property
    def limited(self) -> str:
        """The statement with its limit of rows."""
        return self.sql if PLAIN.match(self.sql) else f"SELECT * FROM (\n{self.sql}\n) AS ba_rows LIMIT {self.most + 1}"


class IbisEngine:
    """``backend`` is a connected backend of ibis."""

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
        except Exception:  # noqa: BLE001 - some backends can't tell
            return name

    def tables(self) -> Sequence[str]:
        """The names of the tables that a query can read."""
        self._known = sorted(map(str, self.backend.list_tables()))
        return self._known

    def columns(self, table: str) -> Mapping[str, str]:
        """The types of the columns of ``table``, by name, in words of ibis."""
        return {str(name): str(kind).removeprefix("!") for name, kind in self.table(table).schema().items()}

    def table(self, name: str) -> Any:
        """``name``, perhaps with its schema, as a table of ibis. Raises HandlerFailed when there is none."""
        *above, last = name.split(".")
        try:
            return self.backend.table(last, database=tuple(above) if len(above) > 1 else above[0] if above else None)
        except Exception as error:
            raise failed(f"There is no table {name}.", self._near_table(name), "not_found") from error

    def statistics(self, name: str, share: str) -> list[dict[str, Any]]:
        """What may be shared of each column of a table: counts, and with ``sample`` some values."""
        table, columns = self.table(name), self.columns(name)
        try:
            figures = _figures(table, columns, bounds=True)
        except Exception:  # noqa: BLE001 - values of several types in one column have no least one
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

    def read(self, query: SourceQuery) -> Landed:
        """Run a statement that reads, or answer SHOW TABLES and DESCRIBE, which not every engine has."""
        if _SHOW_TABLES.fullmatch(query.sql):
            return Landed(land_text(query.file, ("table_name",), [(name,) for name in self.tables()], query.most), {})
        if found := _DESCRIBE.fullmatch(query.sql):
            columns = self.columns(found[1]).items()
            return Landed(land_text(query.file, ("column_name", "column_type"), columns, query.most), {})
        return self.query(query)

    def query(self, query: SourceQuery) -> Landed:
        """Run a statement that reads, and land its rows."""
        reader = self.backend.sql(query.limited).to_pyarrow_batches(chunk_size=CHUNK)
        return Landed(land_arrow(query.file, reader, query.most), {})

    def execute(self, query: SourceQuery) -> Landed:
        """Run a statement that changes data, and land what the engine says of it."""
        found = self.backend.raw_sql(query.sql)
        if close := getattr(found, "close", None):
            close()
        return done(query, "done", None)

    def cost(self, sql: str) -> tuple[float, float] | None:
        """The engine's estimate for a query: cost and rows; None where it makes none."""
        del sql
        return None

    def interrupt(self) -> None:
        """Stop what runs, from another thread."""

    @contextmanager
    def limited(self, request: WorkerRequest, seconds: float) -> Generator[None]:
        """Within it, a cancel or the end of the time interrupts the statement on the server.

        Its end waits for an interrupt that is on its way: one that comes late would stop the next statement.
        """
        late, over = threading.Event(), threading.Event()
        stopping: list[threading.Thread] = []

        def stop() -> None:
            # Again and again: the statement may not have begun when the first one comes.
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
                with suppress(RuntimeError):  # not started yet: then it sees that all is over
                    thread.join()

    def in_words(self, error: Exception, sql: str) -> HandlerFailed:
        """A failure of a statement as one line, with the nearest names."""
        text = first_line(error)
        if found := _COLUMN.search(text):
            return failed(f"There is no column {found[1]} here.", self.near_column(found[1], sql))
        if found := _TABLE.search(text):
            name = found[1] or found[2]
            return failed(f"There is no table {name}.", self._near_table(name))
        return failed(text)

    def near_column(self, name: str, sql: str) -> str:
        """A hint with the nearest columns of the tables that ``sql`` names."""
        known = [column for table in self._named(sql) for column in self._columns(table)]
        return nearest_names(name.rpartition(".")[2], known, "Columns") if known else ""

    def _near_table(self, name: str) -> str:
        with suppress(Exception):
            return nearest_names(name, self.tables(), "Tables")
        return ""

    def _named(self, sql: str) -> list[str]:
        """The tables of the source whose names appear in ``sql``."""
        words = {word.lower() for word in regex(r"[\w.]+").findall(sql)}
        with suppress(Exception):
            return [table for table in self.tables() if table.lower() in words]
        return []

    def _columns(self, table: str) -> Sequence[str]:
        with suppress(Exception):
            return list(self.columns(table))
        return ()


def _figures(table: Any, columns: Mapping[str, str], *, bounds: bool) -> Mapping[str, Any]:
    """Counts of each column in one query, by the place of the column; ``bounds``: least and greatest values too."""
    plan: dict[str, Any] = {"rows": table.count()}
    for place, (column, kind) in enumerate(columns.items()):
        plan[f"given{place}"] = table[column].count()
        if not kind.startswith(NESTED):
            plan[f"distinct{place}"] = table[column].nunique()
        if bounds and kind.startswith(ORDERED):
            plan[f"low{place}"], plan[f"high{place}"] = table[column].min(), table[column].max()
    return cast("dict[str, Any]", table.aggregate(**plan).to_pyarrow().to_pylist()[0])


def done(query: SourceQuery, status: str, rows: int | None) -> Landed:
    """Land one row that says what a statement did."""
    text = None if rows is None or rows < 0 else str(rows)
    land_text(query.file, ("status", "rows_changed"), [(status, text)], query.most)
    return Landed(1, {"rows_changed": "BIGINT"})


def too_slow(seconds: float) -> HandlerFailed:
    """A statement that took too long."""
    hint = "Filter or aggregate earlier, or raise analysis.query_seconds."
    return failed(f"The query took longer than {seconds:g} s and was stopped.", hint, "timeout")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
