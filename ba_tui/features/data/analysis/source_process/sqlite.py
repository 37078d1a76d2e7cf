"""SQLite: a file opened for reading only. Its values have types of their own, whatever the column says."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import ibis

from ba_tui.features.data.analysis.source_process.engine import IbisEngine, SourceQuery, done
from ba_tui.features.data.analysis.source_process.landing import Landed, TextRow, distinct_names, land_text

ATTACHING = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


def connected(url: str) -> SqliteEngine:
    """Open the file. Raises sqlite3.Error."""
    path = Path(unquote(url.partition(":")[2].removeprefix("//")))
    return SqliteEngine(path)


class SqliteEngine(IbisEngine):
    label = "SQLite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = _opened(path, "ro")
        super().__init__(ibis.sqlite.from_connection(self._open))

    def query(self, query: SourceQuery) -> Landed:
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
        return Landed(count, types)

    def execute(self, query: SourceQuery) -> Landed:
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
    """The DuckDB type that holds values of ``kinds``; empty for text."""
    if kinds == {bytes}:
        return "BLOB"
    if kinds and kinds <= {int, float}:
        return "DOUBLE" if float in kinds else "BIGINT"
    return ""
