"""A SQLite file that is only a cache: recreated if missing, moved aside if corrupt, in memory if it cannot be
written."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from ba_tui.core.errors import written_by_newer
from ba_tui.core.values import frozen

log = logging.getLogger(__name__)
T = TypeVar("T")
_BUSY_SECONDS = 1.0
_TRIES = 2
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@frozen
class CacheLayout:
    """``statements`` create the ``tables``; a file of an older ``version`` is emptied first."""

    version: int
    tables: Sequence[str]
    statements: Sequence[str]


class Cache:
    """A cache that several processes may use; each waits at most a second, and only while another writes."""

    def __init__(self, path: Path, layout: CacheLayout) -> None:
        self._path = path
        self._layout = layout
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of ``question``, if necessary on a new file or in memory."""
        with self._turn:
            for _ in range(_TRIES):
                try:
                    return question(self._open(self._path))
                except _Newer as error:
                    # Replacing it would make the newer ba and this one empty the file in turns.
                    log.warning("%s Update ba; until then it is made anew in memory.", error)
                    break
                except sqlite3.OperationalError as error:
                    log.warning("%s cannot be used: %s", self._path.name, error)
                    if not busy(error):
                        break
                except sqlite3.DatabaseError as error:
                    log.warning("%s is damaged: %s", self._path.name, error)
                    self._set_aside()
            self._drop()
            return question(self._open(None))

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if self._connection is None:
            if path:
                # It contains the user's words, so only the user may read it.
                with contextlib.suppress(OSError):
                    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            where = path or ":memory:"
            db = sqlite3.connect(where, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, db.close)
            self._connection = db
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            if (found := _version(db)) > self._layout.version:
                raise _Newer(written_by_newer(str(path), found, self._layout.version))
            if found != self._layout.version:
                with writing(db):
                    # Another process may have created the tables meanwhile.
                    if _version(db) != self._layout.version:
                        self._lay_out(db)
        return self._connection

    def _lay_out(self, db: sqlite3.Connection) -> None:
        for table in self._layout.tables:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in self._layout.statements:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {self._layout.version}")

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


class _Newer(Exception):
    """A newer ba made the file."""


@contextlib.contextmanager
def writing(db: sqlite3.Connection) -> Generator[None]:
    """Run the block as one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another process is writing: the data read is valid, only storing it has to wait."""
    return error.sqlite_errorcode & 0xFF in _BUSY


def _version(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]
