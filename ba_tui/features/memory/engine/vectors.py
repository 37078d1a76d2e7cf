"""Vectors that were made, under a hash of the model and the text: no rebuild of an index embeds a text twice.

A SQLite cache beside the log. Bytes in, bytes out: what searches them is ``nearest``.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from ba_tui.sqlite_cache import Cache, CacheLayout, writing

# With rowids: a table without them puts each row of this size on a page of its own, four times the space.
_LAYOUT = CacheLayout(1, ("vectors",), ("CREATE TABLE vectors (hash BLOB PRIMARY KEY, vector BLOB)",))
_AT_ONCE = 500


class VectorFile:
    """Vectors as bytes (float16, little-endian)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cache = Cache(path, _LAYOUT)

    @property
    def exists(self) -> bool:
        """Whether any vector was ever kept."""
        return self._path.exists()

    def get(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """The vectors that there are."""
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
        """Take vectors out of the file, of texts that were forgotten."""
        gone = [(each,) for each in hashes]

        def remove(db: sqlite3.Connection) -> None:
            with writing(db):
                db.executemany("DELETE FROM vectors WHERE hash = ?", gone)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        if gone:
            self._cache.ask(remove)


def content_hash(model: str, text: str) -> bytes:
    """16 bytes that only this text has under this model."""
    return hashlib.blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
