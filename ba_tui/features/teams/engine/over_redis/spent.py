"""Which messages a member has handled, kept over restarts: a message that comes once more is refused.

Redis can't be asked for that: who can write to it can also forget there. Blocks.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError

MOST = 50_000
"""Messages that are remembered. Beyond that the oldest are forgotten, and all that are as old are refused."""
_TABLES = """
CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS spent_at ON spent (at);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_OLDEST, _REVOKED = "forgotten", "revoked"


class Spent:
    """One file for all members of a machine; ``path`` None: in memory. Thread-safe."""

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def has(self, id: str, at: float) -> bool:
        """Return whether the message was handled, or is too old to know. Raises StorageError."""
        rows = self._asked("SELECT 1 FROM spent WHERE id = ?", (id,))
        return bool(rows) or at <= float(self._fact(_OLDEST) or 0.0)

    def add(self, id: str, at: float) -> None:
        """Remember a message, which was signed ``at``. Raises StorageError."""
        self._asked("INSERT OR IGNORE INTO spent VALUES (?, ?)", (id, at))
        ((count,),) = self._asked("SELECT COUNT(*) FROM spent")
        if int(str(count)) > self._most:
            few = max(1, self._most // 10)
            ((last,),) = self._asked("SELECT MAX(at) FROM (SELECT at FROM spent ORDER BY at LIMIT ?)", (few,))
            self._keep(_OLDEST, str(last))
            self._asked("DELETE FROM spent WHERE at <= ?", (last,))

    def revoked(self) -> dict[str, float]:
        """Return the revoked members that this machine heard of, with until when. Raises StorageError."""
        return read_revoked(self._fact(_REVOKED))

    def keep_revoked(self, revoked: Mapping[str, float]) -> None:
        """Raises StorageError."""
        self._keep(_REVOKED, json.dumps(dict(revoked)))

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open.close()
                self._open = None

    def _fact(self, name: str) -> str:
        rows = self._asked("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def _keep(self, name: str, value: str) -> None:
        self._asked("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _asked(self, statement: str, values: Iterable[object] = ()) -> list[tuple[object, ...]]:
        try:
            with self._lock:
                return self._connection().execute(statement, tuple(values)).fetchall()  # type: ignore[arg-type]
        except (sqlite3.Error, OSError) as error:
            text = f"{self._path or 'The list of handled messages'} can't be used: {error}."
            hint = "Stop the workers of this machine, remove the file, and wait an hour before you start them again."
            raise StorageError(text, hint) from error

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            if self._path:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
            made = sqlite3.connect(
                str(self._path or ":memory:"), timeout=5.0, isolation_level=None, check_same_thread=False
            )
            made.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_TABLES}")
            self._open = made
        return self._open


def read_revoked(text: str) -> dict[str, float]:
    """Return the revoked members in a list; none for one that can't be read."""
    with suppress(ValueError, TypeError, AttributeError):
        told = cast("dict[str, Any]", json.loads(text or "{}"))
        return {str(name): float(at) for name, at in told.items()}
    return {}
