"""The index of all sessions: their digests in a cache, brought up to date by file size and time.

Never the truth. What becomes of a missing or damaged cache stands in cache; searching all that was said in fulltext.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from ba_tui.sessions.records import FILE
from ba_tui.sessions.search.digest import Digest, digest
from ba_tui.sqlite_cache import Cache, CacheLayout, busy, writing

log = logging.getLogger(__name__)

_COLUMNS = tuple(field.name for field in fields(Digest))
_LISTED = tuple(name for name in _COLUMNS if name != "search_text")
_LAYOUT = CacheLayout(
    4, ("sessions",), (f"CREATE TABLE sessions (key TEXT PRIMARY KEY, size, changed, {', '.join(_COLUMNS)})",)
)

Stamp = tuple[int, int]
"""Size and time of change of a session file."""


class Index:
    """Sessions are named by their key: ``<folder-slug>/<id>`` below ``root``."""

    def __init__(self, path: Path, root: Path) -> None:
        self._root = root
        self._cache = Cache(path, _LAYOUT)

    def digests(self, found: Mapping[str, Stamp]) -> dict[str, Digest]:
        """What is known of the sessions ``found`` on disk; reads the new parts of those that have changed."""
        return self._cache.ask(lambda db: self._refreshed(db, found))

    def matching(self, terms: Sequence[str]) -> set[str]:
        """Keys of the sessions whose title or prompts hold all ``terms``, as far as they were read."""
        clause = " AND ".join("instr(search_text, ?) > 0" for _ in terms) or "1"
        query = f"SELECT key FROM sessions WHERE {clause}"  # noqa: S608 - only question marks vary
        folded = [term.casefold() for term in terms]
        return self._cache.ask(lambda db: {row[0] for row in db.execute(query, folded)})

    def keep(self, found: Iterable[str]) -> None:
        """Forget the sessions that are not among ``found``, all that there are: no word of a deleted session stays."""
        present = set(found)

        def prune(db: sqlite3.Connection) -> None:
            gone = [row for row in db.execute("SELECT key FROM sessions") if row[0] not in present]
            if gone:
                db.executemany("DELETE FROM sessions WHERE key = ?", gone)

        self._cache.ask(prune)

    def forget(self, key: str) -> None:
        self._cache.ask(lambda db: db.execute("DELETE FROM sessions WHERE key = ?", (key,)))

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
        try:
            with writing(db):
                db.executemany(query, rows)
        except sqlite3.OperationalError as error:
            if not busy(error):
                raise
            log.info("the session index is being written: %s", error)


def _digest(names: Sequence[str], row: Sequence[object]) -> Digest:
    values = dict(zip(names, row, strict=True))
    values |= {name: bool(values[name]) for name in ("unpriced", "unattended")}
    return Digest(**values)  # pyright: ignore[reportArgumentType] - the columns are the fields
