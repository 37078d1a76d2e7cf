"""The full-text index: entries and their terms in SQLite, a cache that follows the log and is rebuilt from it.

``lookup`` holds the questions to it. Several processes may use one index: whichever finds it behind the log catches up.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.core.ports.memory import Entry
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.dates import says_when, spans
from ba_tui.features.memory.engine.entries import VERSION, as_record, changes_of, day_of, entry_of, ids_of, version_of
from ba_tui.features.memory.engine.log import Log, Mark, mark_in
from ba_tui.features.memory.engine.terms import IndexTerm, fingerprint, terms
from ba_tui.sqlite_cache import Cache, CacheLayout, busy, writing

log = logging.getLogger(__name__)

# Without the places of terms (``detail``), FTS5 ranks all rows of a table without content alike.
_LAYOUT = CacheLayout(
    3,
    ("entries", "found", "words", "state"),
    (
        "CREATE TABLE entries (number INTEGER PRIMARY KEY, id TEXT UNIQUE, kind, session, sequence, speaker, at, slot,"
        " print, current, pinned, size, asks, timed, days, terms, record)",
        "CREATE INDEX by_session ON entries (session, sequence, number)",
        "CREATE INDEX by_slot ON entries (slot) WHERE slot != ''",
        "CREATE INDEX by_print ON entries (print)",
        "CREATE INDEX by_speaker ON entries (speaker) WHERE speaker != ''",
        "CREATE INDEX by_time ON entries (at)",
        "CREATE INDEX pinned ON entries (number) WHERE pinned",
        "CREATE TABLE words (stem TEXT PRIMARY KEY, word TEXT, entries INTEGER) WITHOUT ROWID",
        "CREATE TABLE state (name TEXT PRIMARY KEY, value)",
        "CREATE VIRTUAL TABLE found USING fts5(terms, content='',"
        " tokenize=\"unicode61 remove_diacritics 0 categories 'L* N* Co M*'\")",
    ),
)
_STEP = 100
"""Lines in one transaction, 30 ms: other threads and processes wait no longer for the index."""
_PAUSE = 0.001
_SENTENCE_ENDS = "\"')]”’ "

Progress = Callable[[int, int], None]
"""Bytes of the log that are in the index, and bytes that there are."""


@frozen
class Health:
    """The numbers of live entries, of unreadable lines, and of lines of a later ba."""

    entries: int = 0
    bad: int = 0
    later: int = 0
    forgotten: int = 0
    behind: int = 0
    """Bytes of the log that are not in the index yet."""


class Index:
    """``path``: the SQLite file, which is rebuilt when it is missing, damaged or of another log."""

    def __init__(self, path: Path, source: Log) -> None:
        self.path = path
        self.log = source
        self._cache = Cache(path, _LAYOUT)

    def ask(self, question: Callable[[sqlite3.Connection], Any]) -> Any:
        """Return the result of ``question`` on the current database."""
        return self._cache.ask(question)

    def update(self, progress: Progress | None = None, most: int | None = None) -> bool:
        """Index new lines of the log, about ``most`` at most; return True when all are indexed.

        0.2 ms an entry. When another process is writing the index, the rest is left to it.
        """
        left = most
        while True:
            step = _STEP if left is None else min(_STEP, left)
            taken = self._cache.ask(lambda db, step=step: self._step(db, step))
            if progress:
                progress(self._cache.ask(lambda db: _mark(db).offset), self.log.size())
            if taken < step:
                return taken >= 0
            if left is not None and (left := left - taken) <= 0:
                return False
            # Other threads get the database in between.
            time.sleep(_PAUSE)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild the index from the log."""
        self._cache.ask(_clear)
        self.update(progress)

    def health(self) -> Health:
        """Counts of the log as far as it was read."""

        def look(db: sqlite3.Connection) -> Health:
            counts = dict(db.execute("SELECT name, value FROM state"))
            live = db.execute("SELECT count(*) FROM entries").fetchone()[0]
            behind = self.log.size() - _mark(db).offset
            bad, later, forgotten = (counts.get(name, 0) for name in ("bad", "later", "forgotten"))
            return Health(live, bad, later, forgotten, max(0, behind))

        return self._cache.ask(look)

    def tidy(self) -> None:
        """Remove the terms of forgotten entries from the file."""

        def put_together(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO found(found) VALUES ('optimize')")
            db.execute("DELETE FROM words WHERE entries <= 0")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        self._cache.ask(put_together)

    def _step(self, db: sqlite3.Connection, most: int) -> int:
        """Index up to ``most`` lines; return their number, or -1 while another process writes."""
        mark = _mark(db)
        if mark.offset == self.log.size() and self.log.continues(mark):
            return 0
        try:
            with writing(db):
                mark = _mark(db)
                if not self.log.continues(mark):
                    _empty(db)
                    mark = Mark()
                fold = _Fold(db)
                taken = 0
                for line, after in self.log.read(mark):
                    fold.take(line)
                    mark, taken = after, taken + 1
                    if taken >= most:
                        break
                fold.finish(mark)
        except sqlite3.OperationalError as error:
            if not busy(error):
                raise
            log.info("another process writes the memory index: %s", error)
            return -1
        return taken


class _Fold:
    """Applies lines of the log to the tables."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._words: Counter[str] = Counter()
        self._seen: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def take(self, line: bytes) -> None:
        if line.isspace():
            # What was here is forgotten.
            return
        record = read_object(line)
        version = version_of(record) if record else 0
        operation = record.get("op") if record else None
        apply = _OPERATIONS.get(operation) if isinstance(operation, str) else None
        if version > VERSION:
            self._counts["later"] += 1
        elif record is None or apply is None or not version or not apply(self, record):
            self._counts["bad"] += 1

    def finish(self, mark: Mark) -> None:
        rows = [(stem, self._seen.get(stem, stem), count) for stem, count in self._words.items()]
        self._db.executemany(
            "INSERT INTO words VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET entries = entries + excluded.entries", rows
        )
        for name, count in self._counts.items():
            self._db.execute(
                "INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
                (name, count),
            )
        _set_mark(self._db, mark)

    def header(self, record: Mapping[str, Any]) -> bool:
        return True

    def add(self, record: Mapping[str, Any]) -> bool:
        entry = entry_of(record)
        if entry is None:
            return False
        if self._find(entry.id) is None:
            self._insert(entry)
            self._change(entry.supersedes, superseded_by=entry.id)
        return True

    def change(self, record: Mapping[str, Any]) -> bool:
        id, changes = record.get("id"), changes_of(record)
        if not isinstance(id, str) or not changes or not str(changes.get("text", "-")).strip():
            return False
        self._change(id, **changes)
        return True

    def forget(self, record: Mapping[str, Any]) -> bool:
        for id in ids_of(record):
            self._counts["forgotten"] += 1
            if (found := self._find(id)) is not None:
                self._remove(*found)
        return bool(ids_of(record))

    def used(self, record: Mapping[str, Any]) -> bool:
        at = record.get("at")
        for id in ids_of(record):
            if (found := self._find(id)) is not None:
                entry = replace(found[1], used=found[1].used + 1)
                if isinstance(at, int | float):
                    entry = replace(entry, last_used=max(entry.last_used, float(at)))
                self._db.execute("UPDATE entries SET record = ? WHERE number = ?", (_packed(entry), found[0]))
        return bool(ids_of(record))

    def _find(self, id: str) -> tuple[int, Entry] | None:
        row = self._db.execute("SELECT number, record FROM entries WHERE id = ?", (id,)).fetchone() if id else None
        return (row[0], unpacked(row[1])) if row else None

    def _change(self, id: str, **changes: Any) -> None:
        found = self._find(id)
        if found is None:
            return
        number, entry = found
        self._remove(number, entry)
        self._insert(replace(entry, **changes), number)

    def _remove(self, number: int, entry: Entry) -> None:
        spaced = self._db.execute("SELECT terms FROM entries WHERE number = ?", (number,)).fetchone()[0]
        self._db.execute("INSERT INTO found (found, rowid, terms) VALUES ('delete', ?, ?)", (number, spaced))
        self._db.execute("DELETE FROM entries WHERE number = ?", (number,))
        self._words.subtract(set(spaced.split()))

    def _insert(self, entry: Entry, number: int | None = None) -> None:
        found = terms(searched_text(entry))
        spaced = " ".join(term.stem for term in found)
        said = day_of(entry.at)
        days = json.dumps(spans(entry.text, said))
        row = (
            *(number, entry.id, entry.kind, entry.session, entry.sequence, entry.speaker, entry.at, slot(entry)),
            *(fingerprint(entry.text), not entry.superseded_by, entry.pinned, len(found), asks(entry.text)),
            *(says_when(entry.text), days, spaced, _packed(entry)),
        )
        marks = ",".join("?" * len(row))
        cursor = self._db.execute(f"INSERT INTO entries VALUES ({marks})", row)  # noqa: S608 - marks alone
        self._db.execute("INSERT INTO found (rowid, terms) VALUES (?, ?)", (cursor.lastrowid, spaced))
        self._count(found)

    def _count(self, found: list[IndexTerm]) -> None:
        words = dict(found)
        self._words.update(words.keys())
        for stem, word in words.items():
            self._seen.setdefault(stem, word)


_OPERATIONS: Mapping[str, Callable[[_Fold, Mapping[str, Any]], bool]] = {
    "log": _Fold.header,
    "add": _Fold.add,
    "change": _Fold.change,
    "forget": _Fold.forget,
    "used": _Fold.used,
}


def searched_text(entry: Entry) -> str:
    """Return the indexed text of an entry: with an attribute, the subject and attribute come before the text."""
    return f"{entry.subject} {entry.attribute} {entry.text}" if entry.attribute else entry.text


def slot(entry: Entry) -> str:
    """Return the key under which a newer entry supersedes an older one; empty without subject or attribute."""
    if not entry.subject or not entry.attribute:
        return ""
    parts = (" ".join(part.casefold().split()) for part in (entry.subject, entry.attribute))
    return "\n".join(parts)


def asks(text: str) -> bool:
    """Return whether ``text`` ends with a question."""
    return text.rstrip().rstrip(_SENTENCE_ENDS).endswith(("?", "？", "؟"))


def unpacked(record: str) -> Entry:
    """Return the entry in a row of the index."""
    return Entry(**json.loads(record))


def _packed(entry: Entry) -> str:
    return json.dumps(as_record(entry), ensure_ascii=False)


def _mark(db: sqlite3.Connection) -> Mark:
    row = db.execute("SELECT value FROM state WHERE name = 'mark'").fetchone()
    return Mark() if row is None else mark_in(json.loads(row[0]))


def _set_mark(db: sqlite3.Connection, mark: Mark) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('mark', ?)", (json.dumps(mark.packed()),))


def _clear(db: sqlite3.Connection) -> None:
    with writing(db):
        _empty(db)


def _empty(db: sqlite3.Connection) -> None:
    for table in ("entries", "words", "state"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
    db.execute("INSERT INTO found(found) VALUES ('delete-all')")
