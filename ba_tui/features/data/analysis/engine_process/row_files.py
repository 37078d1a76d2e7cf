"""Loaders for formats that DuckDB lacks: sheets of workbooks, tables of SQLite, Arrow files.

Rows are written to a text file while their types are recorded, which is fast and needs little memory.
"""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.text.wording import count, quoted
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import text, unreadable
from ba_tui.features.data.analysis.engine_process.text_files import LOADING, LoadedTable

HEADER_ROWS = 20
PATIENCE_SECONDS = 1.0
"""Seconds to wait for a database lock; a program that holds one longer is using the database."""
BATCH = 5_000
BATCHES = "arrow_batches"
LONGEST_INTEGER = 2**63
_TOGETHER = {
    frozenset({"BIGINT", "HUGEINT"}): "HUGEINT",
    frozenset({"BIGINT", "DOUBLE"}): "DOUBLE",
    frozenset({"HUGEINT", "DOUBLE"}): "DOUBLE",
    frozenset({"BIGINT", "HUGEINT", "DOUBLE"}): "DOUBLE",
    frozenset({"DATE", "TIMESTAMP"}): "TIMESTAMP",
}


@frozen
class RowSource:
    """``scratch`` returns a path for a temporary file; ``tick`` reports the number of rows and raises when the request
    was cancelled."""

    path: Path
    scratch: Callable[[str], Path]
    tick: Callable[[int], None]


def parts_of_workbook(path: Path) -> list[str]:
    """Return the names of the non-empty sheets."""
    with _Workbook(path) as book:
        return [name for name in book.sheet_names if book.get_sheet_by_name(name).total_height]


def parts_of_sqlite(path: Path) -> list[str]:
    """Return the names of tables and views."""
    base = _base(path)
    try:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return [str(name) for (name,) in base.execute(query)]
    except sqlite3.Error as error:
        raise _sqlite_failed(path, error) from error
    finally:
        base.close()


def load_sheet(cursor: duckdb.DuckDBPyConnection, source: RowSource, sheet: str) -> LoadedTable:
    """Fill LOADING from one sheet. The header is the first row that looks like one."""
    with _Workbook(source.path) as book:
        found = book.get_sheet_by_name(sheet)
        merged = found.merged_cell_ranges or ()
        rows: Iterator[list[Any]] = iter(found.iter_rows())
        head: list[list[Any]] = []
        for row in rows:
            head.append(row)
            if len(head) == HEADER_ROWS:
                break
        place = _header(head)
        if place < 0:
            raise unreadable(f"The sheet {sheet} of {source.path.name} is empty.")
        width = max(len(row) for row in head)
        names = _names([_title(value) for value in head[place]], width)
        notes = [f"{count(place, 'row')} above the header {'was' if place == 1 else 'were'} skipped."] if place else []
        if merged:
            notes.append(f"{count(len(merged), 'merged range')}: only the first cell of each holds its value.")

        def body() -> Iterator[Sequence[Any]]:
            for row in head[place + 1 :]:
                yield [_empty(value) for value in row]
            for row in rows:
                yield [_empty(value) for value in row]

        kept = (row for row in body() if any(value is not None for value in row))
        _fill(cursor, source, names, kept)
    return LoadedTable("excel", notes=tuple(notes))


def load_sqlite(cursor: duckdb.DuckDBPyConnection, source: RowSource, table: str) -> LoadedTable:
    """Fill LOADING from one table or view."""
    base = _base(source.path)
    try:
        found = base.execute(f"SELECT * FROM {quoted(table)}")
        names = _names([str(column[0]) for column in found.description], len(found.description))
        _fill(cursor, source, names, found)
    except sqlite3.Error as error:
        raise _sqlite_failed(source.path, error) from error
    finally:
        base.close()
    return LoadedTable("sqlite")


def load_arrow(cursor: duckdb.DuckDBPyConnection, path: Path) -> LoadedTable:
    """Fill LOADING from an Arrow file (Feather) or stream, batch by batch."""
    from arro3 import io  # noqa: PLC0415 - only for these files

    try:
        with path.open("rb") as file:
            whole = file.read(6) == b"ARROW1"
        reader: Any = io.read_ipc(path) if whole else io.read_ipc_stream(path)
        cursor.register(BATCHES, reader)
        try:
            cursor.execute(f"CREATE OR REPLACE TABLE {LOADING} AS FROM {BATCHES}").fetchall()
        finally:
            cursor.unregister(BATCHES)
    except duckdb.InterruptException:
        raise
    except Exception as error:
        raise unreadable(f"{path.name} can't be read as Arrow data: {error}") from error
    return LoadedTable("arrow")


def _base(path: Path) -> sqlite3.Connection:
    """Open a read-only connection that includes the journal's changes when possible."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        base = sqlite3.connect(uri, uri=True, timeout=PATIENCE_SECONDS)
        base.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        wal = path.with_name(f"{path.name}-wal")
        if "locked" in str(error) or (wal.exists() and wal.stat().st_size):
            raise _sqlite_failed(path, error) from error
        # A WAL database needs a file next to it, which can't be created in a read-only folder.
        base = sqlite3.connect(f"{uri}&immutable=1", uri=True, timeout=PATIENCE_SECONDS)
    except sqlite3.Error as error:
        raise _sqlite_failed(path, error) from error
    base.text_factory = _text
    return base


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _sqlite_failed(path: Path, error: sqlite3.Error) -> Exception:
    if "locked" in str(error):
        return unreadable(f"{path.name} is locked by another program.", "Try again when that program is done.")
    if "unable to open" in str(error):
        return unreadable(f"{path.name} is being written by another program.", "Close that program, or copy the file.")
    return unreadable(f"{path.name} can't be read as an SQLite database: {error}.")


class _Workbook:
    """A workbook as a context manager; errors have readable messages."""

    def __init__(self, path: Path) -> None:
        import python_calamine  # noqa: PLC0415 - only for workbooks

        calamine: Any = python_calamine
        try:
            # By path: with a stream the reader does not detect a password.
            self.book = calamine.load_workbook(path)
        except calamine.PasswordError as error:
            raise unreadable(f"{path.name} is protected by a password.", "Save a copy without one.") from error
        except (calamine.CalamineError, OSError, ValueError) as error:
            raise unreadable(f"{path.name} can't be read as a workbook: {error}.") from error

    def __enter__(self) -> Any:
        return self.book

    def __exit__(self, *args: object) -> None:
        self.book.close()


def _empty(value: Any) -> Any:
    return None if value == "" else value


def _header(head: Sequence[Sequence[Any]]) -> int:
    """Return the position of the first row with text in most columns; else of the first non-empty row; -1 for none."""
    width = max((sum(value != "" for value in row) for row in head), default=0)
    for place, row in enumerate(head):
        given = [value for value in row if value != ""]
        if given and len(given) * 10 >= width * 6 and all(isinstance(value, str) for value in given):
            return place
    return next((place for place, row in enumerate(head) if any(value != "" for value in row)), -1)


def _title(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _names(titles: Sequence[str], width: int) -> list[str]:
    """Return a distinct name for each column."""
    names: list[str] = []
    for place in range(width):
        name = (titles[place] if place < len(titles) else "").replace("\0", "").replace("\n", " ") or f"column{place}"
        taken = {each.lower() for each in names}
        fresh, number = name, 1
        while fresh.lower() in taken:
            fresh, number = f"{name}_{number}", number + 1
        names.append(fresh)
    return names


def _fill(
    cursor: duckdb.DuckDBPyConnection, source: RowSource, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write the rows to a text file, record their types, and load the file with DuckDB."""
    path, kinds = source.scratch("rows.csv"), [set[str]() for _ in names]
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        for number, row in enumerate(rows):
            if number % BATCH == 0:
                source.tick(number)
            cells = [_cell(row[place] if place < len(row) else None, kinds[place]) for place in range(len(names))]
            file.write(",".join(cells) + "\n")
    columns = ", ".join(f"{text(name)}: {text(_type(kind))}" for name, kind in zip(names, kinds, strict=True))
    # Quotes distinguish an empty text from a missing value.
    options = "header = false, delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false"
    sizes = "maximum_line_size = 64000000, buffer_size = 128000000, auto_detect = false, strict_mode = true"
    given = f"{text(str(path))}, {options}, {sizes}, columns = {{{columns}}}"
    cursor.execute(f"CREATE OR REPLACE TABLE {LOADING} AS FROM read_csv({given})")
    path.unlink()


def _type(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    return _TOGETHER.get(frozenset(kinds), "VARCHAR")


def _cell(value: Any, kinds: set[str]) -> str:
    """Return a value as text and record its type. A missing value is empty; text is quoted."""
    if value is None:
        return ""
    kind, shown = _shown(value)
    kinds.add(kind)
    return '"' + shown.replace('"', '""') + '"'


def _shown(value: Any) -> tuple[str, str]:
    match value:
        case bool():
            return "BOOLEAN", str(value).lower()
        case int():
            size = abs(value)
            return ("BIGINT" if size < LONGEST_INTEGER else "HUGEINT" if size < 2**127 else "VARCHAR"), str(value)
        case float():
            if math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
                return "BIGINT", str(int(value))
            return "DOUBLE", repr(value)
        case Decimal():
            return "DOUBLE", str(value)
        case dt.datetime():
            return "TIMESTAMP", value.isoformat(" ")
        case dt.date():
            return "DATE", value.isoformat()
        case dt.time():
            return "TIME", value.isoformat()
        case dt.timedelta():
            return "INTERVAL", f"{value.total_seconds()} seconds"
        case bytes():
            return "VARCHAR", value[:1000].hex()
        case _:
            return "VARCHAR", str(value)
