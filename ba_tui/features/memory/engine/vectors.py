"""Stored vectors by a hash of model and text, so that rebuilding an index embeds no text again.

A SQLite cache next to the log. It stores bytes; ``store_process.desk`` searches them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from ba_tui.sqlite_cache import Cache, CacheLayout, writing

# With rowids: WITHOUT ROWID would store each row of this size on a separate page, at four times the space.
_LAYOUT = CacheLayout(1, ("vectors",), ("CREATE TABLE vectors (hash BLOB PRIMARY KEY, vector BLOB)",))
_AT_ONCE = 500


class VectorFile:
    """Vectors as bytes (float16, little-endian)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cache = Cache(path, _LAYOUT)

    @property
    def exists(self) -> bool:
        """Return whether any vector was ever stored."""
        return self._path.exists()

    def get(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the stored vectors among ``hashes``."""
        wanted = list(hashes)

        def look(db: sqlite3.Connection) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            for at in range(0, len(wanted), _AT_ONCE):
                part = wanted[at : at + _AT_ONCE]
                marks = ",".join("?" * len(part))
                found.update(db.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", part))  # noqa: S608
            return found

        return self._cache.ask(look)

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        def keep(db: sqlite3.Connection) -> None:
            with writing(db):
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())

        if vectors:
            self._cache.ask(keep)

    def drop(self, hashes: Iterable[bytes]) -> None:
        """Remove the vectors of forgotten texts from the file."""
        gone = [(each,) for each in hashes]

        def remove(db: sqlite3.Connection) -> None:
            with writing(db):
                db.executemany("DELETE FROM vectors WHERE hash = ?", gone)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        if gone:
            self._cache.ask(remove)


def content_hash(model: str, text: str) -> bytes:
    """Return 16 bytes that identify this text under this model."""
    return hashlib.blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
