"""The index of all sessions: a SQLite cache of their digests, brought up to date by file size and time.

Never the truth: it is built anew when missing, moved aside when corrupt, and kept in memory when it can't be saved.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TypeVar

from ba_tui.sessions.digest import Digest, digest
from ba_tui.sessions.records import FILE

log = logging.getLogger(__name__)
T = TypeVar("T")

_LAYOUT = 1
_COLUMNS = tuple(field.name for field in fields(Digest))
_LISTED = tuple(name for name in _COLUMNS if name != "words")
_BUSY_SECONDS = 2.0

Stamp = tuple[int, int]
"""Size and time of change of a session file."""


class Index:
    """Sessions are named by their key: ``<folder-slug>/<id>`` below ``root``."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def digests(self, found: Mapping[str, Stamp]) -> dict[str, Digest]:
        """What is known of the sessions ``found`` on disk; reads the new parts of those that have changed."""
        return self._ask(lambda db: self._refreshed(db, found))

    def matching(self, words: Sequence[str]) -> set[str]:
        """Keys of the sessions whose title or prompts hold all ``words``, as far as they were read."""
        clause = " AND ".join("instr(words, ?) > 0" for _ in words) or "1"
        query = f"SELECT key FROM sessions WHERE {clause}"  # noqa: S608 - only question marks vary
        folded = [word.casefold() for word in words]
        return self._ask(lambda db: {row[0] for row in db.execute(query, folded)})

    def keep(self, found: Iterable[str]) -> None:
        """Forget the sessions that are not among ``found``, all that there are: no word of a deleted session stays."""
        present = set(found)

        def prune(db: sqlite3.Connection) -> None:
            gone = [row for row in db.execute("SELECT key FROM sessions") if row[0] not in present]
            if gone:
                db.executemany("DELETE FROM sessions WHERE key = ?", gone)

        self._ask(prune)

    def forget(self, key: str) -> None:
        self._ask(lambda db: db.execute("DELETE FROM sessions WHERE key = ?", (key,)))

    def _refreshed(self, db: sqlite3.Connection, found: Mapping[str, Stamp]) -> dict[str, Digest]:
        columns = ", ".join(_LISTED)
        rows = db.execute(f"SELECT key, size, changed, {columns} FROM sessions")  # noqa: S608 - names of ours
        known = {row[0]: (row[1:3], row[3:]) for row in rows if row[0] in found}
        result: dict[str, Digest] = {}
        fresh: dict[str, Digest] = {}
        for key, stamp in found.items():
            if key in known and known[key][0] == stamp:
                result[key] = _digest(_LISTED, known[key][1])
            elif entry := self._read(key, self._whole(db, key)):
                result[key] = fresh[key] = entry
        if fresh:
            self._save(db, {key: (found[key], entry) for key, entry in fresh.items()})
        return result

    def _read(self, key: str, earlier: Digest | None) -> Digest | None:
        try:
            return digest(self._root / key / FILE, earlier)
        except OSError as error:
            log.warning("session %s cannot be read: %s", key, error)
            return None

    def _whole(self, db: sqlite3.Connection, key: str) -> Digest | None:
        query = f"SELECT {', '.join(_COLUMNS)} FROM sessions WHERE key = ?"  # noqa: S608 - names of ours
        row = db.execute(query, (key,)).fetchone()
        return _digest(_COLUMNS, row) if row else None

    def _save(self, db: sqlite3.Connection, entries: Mapping[str, tuple[Stamp, Digest]]) -> None:
        marks = ", ".join("?" for _ in range(3 + len(_COLUMNS)))
        query = f"INSERT OR REPLACE INTO sessions (key, size, changed, {', '.join(_COLUMNS)}) VALUES ({marks})"  # noqa: S608
        rows = [(key, *stamp, *astuple(entry)) for key, (stamp, entry) in entries.items()]
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany(query, rows)
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """The answer, if need be from a fresh index, if need be from one in memory."""
        with self._turn:
            try:
                return question(self._open(self._path))
            except sqlite3.OperationalError as error:
                log.warning("the session index cannot be used: %s", error)
            except sqlite3.DatabaseError as error:
                log.warning("the session index is damaged: %s", error)
                self._set_aside()
                with contextlib.suppress(sqlite3.DatabaseError):
                    return question(self._open(self._path))
            self._drop()
            return question(self._open(None))

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if self._connection is None:
            if path:
                # Prompts are in it: for nobody else to read.
                with contextlib.suppress(OSError):
                    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            where = path or ":memory:"
            db = sqlite3.connect(where, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, db.close)
            self._connection = db
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            if db.execute("PRAGMA user_version").fetchone()[0] != _LAYOUT:
                columns = ", ".join(_COLUMNS)
                db.execute("BEGIN IMMEDIATE")
                db.execute("DROP TABLE IF EXISTS sessions")
                db.execute(f"CREATE TABLE sessions (key TEXT PRIMARY KEY, size, changed, {columns})")
                db.execute(f"PRAGMA user_version = {_LAYOUT}")
                db.execute("COMMIT")
        return self._connection

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _set_aside(self) -> None:
        self._drop()
        aside = f"{self._path}.damaged-{time.time_ns()}"
        for tail in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                Path(f"{self._path}{tail}").rename(f"{aside}{tail}")


def _digest(names: Sequence[str], row: Sequence[object]) -> Digest:
    values = dict(zip(names, row, strict=True))
    values["unpriced"] = bool(values["unpriced"])
    return Digest(**values)  # pyright: ignore[reportArgumentType] - the columns are the fields
