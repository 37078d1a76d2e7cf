"""SQLite and DuckDB files, opened so that nothing can be changed. No script: schema.py and query.py use it.

Also CSV files as tables of a database in memory, for SQL over files.
"""

from __future__ import annotations

import csv
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from workspace import Args, Refused, encoding_of, shown

READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
ASKING = {"table_info", "table_xinfo", "foreign_key_list", "index_list", "index_info"}


class Database(Protocol):
    engine: str
    notes: list[str]

    def tables(self) -> list[tuple[str, str]]: ...
    def details(self, table: str) -> Args: ...
    def value(self, sql: str) -> Any: ...
    def rows(self, sql: str, most: int) -> tuple[list[str], list[tuple[Any, ...]], bool]: ...


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Sqlite:
    """A connection that may only read, for so many seconds."""

    connection: sqlite3.Connection
    seconds: float = 20
    engine: str = "sqlite"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        until = time.monotonic() + self.seconds
        self.connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        self.connection.set_authorizer(allowed)

    def value(self, sql: str) -> Any:
        return self.rows(sql, 1)[1][0][0]

    def rows(self, sql: str, most: int) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        try:
            cursor = self.connection.execute(sql)
            found = cursor.fetchmany(most + 1)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise Refused(self.explained(str(error))) from None
        if cursor.description is None:
            raise Refused("that statement gives no rows")
        return [column[0] for column in cursor.description], found[:most], len(found) > most

    def explained(self, problem: str) -> str:
        if problem == "interrupted":
            return f"not done after {self.seconds:g} seconds: narrow the query, or raise seconds"
        if "not authorized" in problem or "prohibited" in problem:
            return f"only reading is allowed here ({problem})"
        if problem.startswith("no such table"):
            return f"{problem}; there are {', '.join(name for name, _ in self.tables())}"
        return problem

    def tables(self) -> list[tuple[str, str]]:
        listed = "SELECT name, type FROM sqlite_master WHERE type IN ('table','view') AND name NOT LIKE 'sqlite\\_%' "
        return self.rows(listed + "ESCAPE '\\' ORDER BY name", 10_000)[1]  # type: ignore[return-value]

    def details(self, table: str) -> Args:
        name = quoted(table)
        columns = self.rows(f"PRAGMA table_xinfo({name})", 10_000)[1]
        keys = self.rows(f"PRAGMA foreign_key_list({name})", 1000)[1]
        indexes = self.rows(f"PRAGMA index_list({name})", 1000)[1]
        primary = [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]]
        return {
            "columns": [{"name": row[1], "type": row[2], **({"required": True} if row[3] else {})} for row in columns],
            "primary_key": primary,
            "references": [f"{row[3]} -> {row[2]}.{row[4] or '(its key)'}" for row in keys],
            "indexes": [f"{row[1]}{' (unique)' if row[2] else ''}" for row in indexes],
        }


def allowed(action: int, what: str | None, given: str | None, *_: object) -> int:
    if action in READING and not (action == sqlite3.SQLITE_FUNCTION and given in {"load_extension", "fts3_tokenizer"}):
        return sqlite3.SQLITE_OK
    asks = action == sqlite3.SQLITE_PRAGMA and what in ASKING
    return sqlite3.SQLITE_OK if asks else sqlite3.SQLITE_DENY


@dataclass
class Duck:
    """The same of a DuckDB file; its own settings shut the file system and the network."""

    connection: Any
    seconds: float = 20
    engine: str = "duckdb"
    notes: list[str] = field(default_factory=list)

    def value(self, sql: str) -> Any:
        return self.rows(sql, 1)[1][0][0]

    def rows(self, sql: str, most: int) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        import duckdb  # noqa: PLC0415 - only who opens such a file needs it

        limit = threading.Timer(self.seconds, self.connection.interrupt)
        limit.start()
        try:
            cursor = self.connection.execute(sql)
            found = cursor.fetchmany(most + 1)
        except duckdb.InterruptException:
            raise Refused(f"not done after {self.seconds:g} seconds: narrow the query, or raise seconds") from None
        except duckdb.Error as error:
            raise Refused(str(error).strip()) from None
        finally:
            limit.cancel()
        return [column[0] for column in cursor.description], found[:most], len(found) > most

    def tables(self) -> list[tuple[str, str]]:
        listed = (
            "SELECT table_name, CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END "
            "FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name"
        )
        return self.rows(listed, 10_000)[1]  # type: ignore[return-value]

    def details(self, table: str) -> Args:
        columns = self.rows(f"PRAGMA table_info({quoted(table)})", 10_000)[1]
        text = table.replace("'", "''")
        listed = "SELECT constraint_text FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'"
        keys = self.rows(f"{listed} AND table_name = '{text}'", 1000)[1]
        return {
            "columns": [{"name": row[1], "type": row[2], **({"required": True} if row[3] else {})} for row in columns],
            "primary_key": [row[1] for row in columns if row[5]],
            "references": [row[0].removeprefix("FOREIGN KEY ") for row in keys],
            "indexes": [],
        }


@contextmanager
def opened(path: Path, seconds: float = 20) -> Iterator[Database]:
    with path.open("rb") as file:
        start = file.read(16)
    if start[8:12] == b"DUCK":
        yield from duck(path, seconds)
    elif start.startswith(b"SQLite format 3") or not start:
        yield from sqlite(path, seconds)
    else:
        raise Refused(f"{shown(path)} is neither a SQLite nor a DuckDB file; give CSV files to query.py as tables")


def sqlite(path: Path, seconds: float) -> Iterator[Sqlite]:
    """Read-only; a file with a write-ahead log in a folder that cannot be written is read as it stands."""
    notes: list[str] = []
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        notes.append("opened as it stands: what is still in a write-ahead log or being written is not seen")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise Refused(f"{shown(path)}: {error}") from None
    try:
        yield Sqlite(connection, seconds, notes=notes)
    finally:
        connection.close()


def duck(path: Path, seconds: float) -> Iterator[Duck]:
    try:
        import duckdb  # noqa: PLC0415 - only who opens such a file needs it
    except ModuleNotFoundError:
        raise Refused("this is a DuckDB file, and the package duckdb is not installed: pip install duckdb") from None
    shut = {"enable_external_access": "false", "autoinstall_known_extensions": "false", "lock_configuration": "true"}
    try:
        connection = duckdb.connect(str(path), read_only=True, config=shut)
    except duckdb.Error as error:
        raise Refused(f"{shown(path)}: {str(error).splitlines()[0]}") from None
    with connection:
        yield Duck(connection, seconds)


@contextmanager
def from_files(files: dict[str, Path], seconds: float) -> Iterator[Sqlite]:
    """Each CSV file as a table in memory. A column is numbers when every value in it is; an empty cell is NULL."""
    connection = sqlite3.connect(":memory:")
    notes = [load(connection, name, path) for name, path in files.items()]
    try:
        yield Sqlite(connection, seconds, notes=notes)
    finally:
        connection.close()


def load(connection: sqlite3.Connection, name: str, path: Path) -> str:
    with path.open("rb") as raw:
        encoding = encoding_of(raw.read(1 << 20))
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        start = file.read(1 << 16)
        file.seek(0)
        first = start.split("\n", 1)[0]
        sign = max(",;\t|", key=first.count)
        rows = csv.reader(file, delimiter=sign)
        names = [cell.strip() or f"column {place}" for place, cell in enumerate(next(rows, []), 1)]
        if not names or len({word.lower() for word in names}) < len(names):
            raise Refused(f"{shown(path)}: the first line must hold a different name for each column")
        try:
            held = [row for row in rows if row]
        except csv.Error as error:
            raise Refused(f"{shown(path)}: {error}") from None
    fitting = [[cell.strip() or None for cell in row] for row in held if len(row) == len(names)]
    kinds = [kind_of([row[place] for row in fitting]) for place in range(len(names))]
    columns = ", ".join(f"{quoted(word)} {kind}" for word, kind in zip(names, kinds, strict=True))
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    marks = ", ".join("?" * len(names))
    connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", fitting)  # noqa: S608 - quoted
    said = f"{name}: {len(fitting)} rows of {shown(path)}"
    left = len(held) - len(fitting)
    return f"{said}; {left} rows with another number of cells LEFT OUT" if left else said


def kind_of(values: list[str | None]) -> str:
    """Text that begins with a zero stays text: it is a code."""
    filled = [value for value in values if value is not None]
    if not filled or any(value[0] == "0" and value[1:2].isdigit() for value in filled):
        return "TEXT"
    for kind, read in (("INTEGER", int), ("REAL", float)):
        try:
            if all(abs(read(value)) < 2**63 and "_" not in value for value in filled):
                return kind
        except ValueError:
            continue
    return "TEXT"
