"""Full-text search over messages, calls and results of all sessions: a cache that follows the growing files.

It is built in small steps, so that two processes can build it concurrently.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import clean_text, is_note
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular
from ba_tui.sessions.records import FILE, HEADER, MAIN, OURS, Record, loads, version_of
from ba_tui.sqlite_cache import Cache, CacheLayout, busy, writing

log = logging.getLogger(__name__)

# Limits in characters. Long texts are indexed by their beginning, tool results also by their end, where errors are.
SAID = 20_000
CALLED = 1_000
HEAD, TAIL = 2_000, 500
LONGEST_LINE = 8_000_000
_READ = tuple(f'"type":"{kind}"'.encode() for kind in ("turn_started", "steered", "message_done", "tool_finished"))


def is_searchable(line: bytes) -> bool:
    """Return whether a line has words of its own; lines that repeat words are skipped."""
    return len(line) <= LONGEST_LINE and any(kind in line[-64:] for kind in _READ)


@frozen
class SessionEntry:
    """The words of one line. ``who`` is ``you``, ``ba`` or ``tool``."""

    who: str
    text: str


def entry_of(record: Record) -> SessionEntry | None:
    """Return the words of a record; None if it has none."""
    match record:
        case {"type": "turn_started", "prompt": {"blocks": [*blocks]}}:
            return _entry("you", _words(blocks))
        case {"type": "steered", "message": {"hidden": False, "blocks": [*blocks]}}:
            return _entry("you", _words(blocks))
        case {"type": "message_done", "message": {"blocks": [*blocks]}}:
            return _entry("ba", _words(blocks))
        case {"type": "tool_finished", "result": {"text": str(text)}}:
            short = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n…\n{text[-TAIL:]}"
            return _entry("tool", short)
        case _:
            return None


def _entry(who: str, text: str) -> SessionEntry | None:
    return SessionEntry(who, text) if text.strip() else None


def _words(blocks: list[Any]) -> str:
    return "\n".join(_texts(blocks))[:SAID]


def _texts(blocks: list[Any]) -> Iterator[str]:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if not is_note(text):
                yield text
            case {"type": "tool_use", "name": str(name), "input": given}:
                yield f"{name} {' '.join(_strings(given))[:CALLED]}"
            case _:
                pass


def _strings(given: Any) -> Iterator[str]:
    """Yield the texts in a call's arguments."""
    if isinstance(given, str):
        yield given[:CALLED]
    elif isinstance(given, dict):
        for value in cast("dict[str, Any]", given).values():
            yield from _strings(value)
    elif isinstance(given, list):
        for value in cast("list[Any]", given):
            yield from _strings(value)


Stamp = tuple[int, int]
"""Size and modification time of a session file."""
_LAYOUT = CacheLayout(
    1,
    ("sessions", "entries", "words"),
    (
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY, key TEXT UNIQUE, size, changed, read, guard, version,"
        " turns, filled)",
        "CREATE TABLE entries (id INTEGER PRIMARY KEY, turn, who, packed)",
        "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')",
    ),
)
_SHIFT = 24
"""Bits for entries of a session; the id of an entry is the session's number followed by these bits."""
_GUARD = 64
_STEP = 4_000_000
"""Bytes of files per transaction, which limits how long others wait."""
_AROUND = 70
_PREFIX = 3
_WORD = regex(r"\w")
_UNSPACED = regex("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
"""Scripts without spaces between words: each letter counts as a word."""


@frozen
class SessionMatch:
    """Where the words occur in a session: the ``turn``, ``who`` said it, and the surrounding text."""

    turn: int
    who: str
    text: str


@frozen
class _SessionProgress:
    """How far a session is indexed. ``filled``: number of its entries."""

    number: int
    read: int = 0
    guard: bytes = b""
    version: int = OURS.version
    turns: int = 0
    filled: int = 0


class FullText:
    """Sessions have the key ``<folder-slug>/<id>``, a path below ``root``."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root
        self._cache = Cache(path, _LAYOUT)

    def update(self, found: Mapping[str, Stamp]) -> None:
        """Index new parts of the sessions ``found``.

        The first time takes seconds for thousands of sessions. It works in steps, so that other queries need not wait
        for all of it.
        """
        waiting = self._cache.ask(lambda db: _unknown(db, found))
        while waiting and self._cache.ask(lambda db: self._step(db, found, waiting)):
            pass

    def matching(self, term: str) -> set[str]:
        """Return keys of the sessions that contain ``term``, or a word that begins with it."""
        if not _WORD.search(term):
            return set()
        query = "SELECT DISTINCT rowid >> ? FROM words WHERE words MATCH ?"

        def keys(db: sqlite3.Connection) -> set[str]:
            numbers = {row[0] for row in db.execute(query, (_SHIFT, _phrase(term)))}
            return {key for number, key in db.execute("SELECT number, key FROM sessions") if number in numbers}

        return self._cache.ask(keys)

    def places(self, keys: Sequence[str], terms: Sequence[str]) -> dict[str, SessionMatch]:
        """Return the newest place in each session at which most of the ``terms`` occur."""
        phrases = [_phrase(term) for term in terms if _WORD.search(term)]
        if not phrases:
            return {}

        def look(db: sqlite3.Connection) -> dict[str, SessionMatch]:
            numbers = dict(db.execute("SELECT key, number FROM sessions"))
            placed: dict[str, SessionMatch] = {}
            for key in keys:
                if key in numbers and (place := _place(db, numbers[key], phrases, terms)):
                    placed[key] = place
            return placed

        return self._cache.ask(look)

    def keep(self, found: Iterable[str]) -> None:
        """Forget sessions that are not in ``found``, the existing ones."""
        present = set(found)
        self._forget(lambda key: key not in present)

    def forget(self, key: str) -> None:
        """Stop finding places in that session; its words leave the file with the next ``tidy``."""
        self._forget(key.__eq__)

    def _forget(self, lost: Callable[[str], bool]) -> None:
        def prune(db: sqlite3.Connection) -> None:
            gone = [row for row in db.execute("SELECT number, key FROM sessions") if lost(row[1])]
            for number, _ in gone:
                with writing(db):
                    _empty(db, number)
                    db.execute("DELETE FROM sessions WHERE number = ?", (number,))
                    db.execute("PRAGMA application_id = 1")

        self._change(prune)

    def tidy(self) -> None:
        """Remove the words of forgotten sessions from the file. Takes a second for thousands of sessions."""

        def put_together(db: sqlite3.Connection) -> None:
            if db.execute("PRAGMA application_id").fetchone()[0]:
                # FTS5 keeps deleted words until its segments are merged.
                db.execute("INSERT INTO words(words) VALUES ('optimize')")
                db.execute("PRAGMA application_id = 0")

        self._change(put_together)

    def _change(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Make a change that is postponed if another process is writing."""

        def attempt(db: sqlite3.Connection) -> None:
            try:
                change(db)
            except sqlite3.OperationalError as error:
                if not busy(error):
                    raise
                log.info("another process writes the search index: %s", error)

        if self._path.exists():
            self._cache.ask(attempt)

    def _step(self, db: sqlite3.Connection, found: Mapping[str, Stamp], waiting: list[str]) -> bool:
        """Index some of the waiting sessions, the last first; return False to postpone the rest."""
        try:
            with writing(db):
                room = _STEP
                while waiting and room > 0:
                    room -= self._take_in(db, waiting[-1], found[waiting[-1]], room)
                    if room > 0:
                        waiting.pop()
        except sqlite3.OperationalError as error:
            if not busy(error):
                raise
            log.info("another process writes the search index: %s", error)
            return False
        return True

    def _take_in(self, db: sqlite3.Connection, key: str, stamp: Stamp, room: int) -> int:
        """Index up to about ``room`` bytes of one session; return how many were read."""
        state = _state(db, key)
        path = self._root / key / FILE
        before = state.read
        try:
            with open_regular(path) as file:
                if state.read:
                    file.seek(max(0, state.read - len(state.guard)))
                    if file.read(len(state.guard)) != state.guard:
                        _empty(db, state.number)
                        state, before = _SessionProgress(state.number), 0
                        file.seek(0)
                for line in file:
                    if not line.endswith(b"\n") or state.read - before >= room:
                        break
                    state = _added(db, state, line)
        except OSError as error:
            log.warning("session %s cannot be read: %s", key, error)
            return 0
        size, changed = stamp if state.read - before < room else (-1, -1)
        db.execute(
            "UPDATE sessions SET size=?, changed=?, read=?, guard=?, version=?, turns=?, filled=? WHERE number=?",
            (size, changed, state.read, state.guard, state.version, state.turns, state.filled, state.number),
        )
        return state.read - before


def _unknown(db: sqlite3.Connection, found: Mapping[str, Stamp]) -> list[str]:
    """Return the keys of new or changed sessions, the newest last."""
    known = {row[0]: row[1:] for row in db.execute("SELECT key, size, changed FROM sessions")}
    return sorted((key for key, stamp in found.items() if known.get(key) != stamp), key=lambda key: found[key][1])


def _state(db: sqlite3.Connection, key: str) -> _SessionProgress:
    query = "SELECT number, read, guard, version, turns, filled FROM sessions WHERE key = ?"
    row = db.execute(query, (key,)).fetchone()
    if row:
        return _SessionProgress(*row)
    made = db.execute("INSERT INTO sessions (key) VALUES (?)", (key,)).lastrowid or 0
    return _SessionProgress(made)


def _added(db: sqlite3.Connection, state: _SessionProgress, line: bytes) -> _SessionProgress:
    state = replace(state, read=state.read + len(line), guard=line[-_GUARD:])
    if b'"schema_version"' in line[:400] and (header := loads(line)) and header.get("type") == HEADER:
        return replace(state, version=version_of(header, state.version))
    if state.version > OURS.version or not is_searchable(line):
        return state
    record = loads(line)
    if record is None:
        return state
    record = OURS.migrate(record, state.version)
    turns = state.turns + (record.get("type") == "turn_started" and record.get("agent") == MAIN)
    found = entry_of(record)
    if found and state.filled < (1 << _SHIFT) - 1:
        _keep(db, (state.number << _SHIFT) + state.filled, turns, found)
        state = replace(state, filled=state.filled + 1)
    return replace(state, turns=turns)


def _keep(db: sqlite3.Connection, id: int, turn: int, found: SessionEntry) -> None:
    text = clean_text(found.text)
    packed = zlib.compress(text.encode(), 1)
    db.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (id, turn, found.who, packed))
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (id, _folded(text)))


def _empty(db: sqlite3.Connection, number: int) -> None:
    """Delete all entries of a session and their words."""
    first, last = number << _SHIFT, (number + 1) << _SHIFT
    for id, packed in db.execute("SELECT id, packed FROM entries WHERE id >= ? AND id < ?", (first, last)).fetchall():
        text = _folded(zlib.decompress(packed).decode())
        db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (id, text))
    db.execute("DELETE FROM entries WHERE id >= ? AND id < ?", (first, last))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return _UNSPACED.sub(r" \1 ", text.casefold())


def _phrase(term: str) -> str:
    """Return ``term`` as an FTS phrase; the last word also matches as a prefix if it is long enough."""
    quoted = _folded(clean_text(term)).strip().replace('"', '""')
    whole = len(quoted) < _PREFIX or _UNSPACED.match(quoted[-1:])
    return f'"{quoted}"' if whole else f'"{quoted}"*'


def _place(db: sqlite3.Connection, number: int, phrases: Sequence[str], terms: Sequence[str]) -> SessionMatch | None:
    query = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC LIMIT 1"
    bounds = (number << _SHIFT, (number + 1) << _SHIFT)
    for together in (" AND ".join(phrases), " OR ".join(phrases)):
        row = db.execute(query, (together, *bounds)).fetchone()
        if row:
            turn, who, packed = db.execute("SELECT turn, who, packed FROM entries WHERE id = ?", row).fetchone()
            return SessionMatch(turn, who, text_around(zlib.decompress(packed).decode(), terms))
    return None


def text_around(text: str, terms: Sequence[str]) -> str:
    """Return one line of ``text`` around the first match of ``terms``."""
    line = " ".join(text.split())
    for term in terms:
        if (found := re.search(re.escape(term), line, re.IGNORECASE)) is not None:
            begin, end = max(0, found.start() - _AROUND), found.end() + _AROUND
            return f"{'…' if begin else ''}{line[begin:end].strip()}{'…' if end < len(line) else ''}"
    return line[: 2 * _AROUND] + ("…" if len(line) > 2 * _AROUND else "")
