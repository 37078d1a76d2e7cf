"""The index of all sessions: cached digests, updated by file size and time; and how a digest is computed from a file.

The cache is never the truth: a missing or damaged one is rebuilt.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import is_note
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import (
    FILE,
    HEADER,
    MAIN,
    OURS,
    SCHEMA_VERSION,
    Header,
    Record,
    Schema,
    emptied,
    loads,
    number,
    read_header,
    version_of,
)
from ba_tui.sessions.timeline import Timeline
from ba_tui.sqlite_cache import Cache, CacheLayout, busy, writing

log = logging.getLogger(__name__)

_PREVIEW = 120
_PROMPT = 4_000
_SEARCHED = 200_000
_GUARD = 64
_NEWER = "Written by a newer ba."
EMPTIED = "Its file is empty."
_SKIPPED = tuple(
    f'"type":"{kind}"}}\n'.encode()
    for kind in ("tool_finished", "tool_started", "asked", "answered", "judged", "checkpointed", "skills_changed")
)
"""Ends of lines that are irrelevant for lists: most bytes of a session."""
AHEAD = 120.0
"""Seconds by which clocks may differ."""


@frozen
class Digest:
    """The facts of a session for lists and searches, as a fold over its lines that can be continued.

    ``read``: bytes of the file that are included; ``guard``: the bytes before that offset.
    """

    id: str
    schema: int = SCHEMA_VERSION
    cwd: bytes = b""
    """The encoding of the file system."""
    created: float = 0.0
    updated: float = 0.0
    title: str = ""
    turns: int = 0
    cost: float | None = None
    unpriced: bool = False
    model: str = ""
    preview: str = ""
    unattended: bool = False
    search_text: str = ""
    """Title and prompts, case folded, for searching."""
    timeline: str = ""
    """The current turns; see Timeline."""
    read: int = 0
    guard: bytes = b""

    def used(self, changed: float, now: float) -> float:
        """Return when the session was last used.

        Times in the future come from a wrong clock: then the time at which its file ``changed`` is used, so that it is
        not the newest session forever.
        """
        latest, believed = max(self.updated, self.created), now + AHEAD
        if latest <= believed:
            return latest
        return max((each for each in (changed, self.updated, self.created) if each <= believed), default=0.0)


def digest(path: Path, earlier: Digest | None = None, schema: Schema = OURS) -> Digest:
    """Return the digest of a session file; continues from ``earlier`` if the file has only grown since."""
    with open_regular(path) as file:
        known = earlier if earlier and _grown(file.seek, file.read, earlier) else None
        if known is None:
            known = _opened(path, read_header(path))
        if known.schema > schema.version:
            return known
        file.seek(known.read)
        last, read = b"", known.read
        for line in file:
            if not line.endswith(b"\n"):
                break
            last = line
            read += len(line)
            if line.endswith(_SKIPPED):
                continue
            known = _with(known, line, schema)
            if known.schema > schema.version:
                return replace(known, read=0, preview=_NEWER)
    return replace(known, read=read, guard=last[-_GUARD:]) if last else known


def _grown(seek: Any, read: Any, earlier: Digest) -> bool:
    """Return whether the part that was read before is unchanged."""
    if not earlier.read or earlier.schema > SCHEMA_VERSION:
        return False
    seek(earlier.read - len(earlier.guard))
    return read(len(earlier.guard)) == earlier.guard


def _opened(path: Path, header: Header | None) -> Digest:
    if header is None:
        preview = EMPTIED if emptied(path) else ""
        return Digest(path.parent.name, created=path.stat().st_mtime, preview=preview)
    preview = _NEWER if header.schema_version > SCHEMA_VERSION else ""
    return Digest(
        header.id,
        header.schema_version,
        os.fsencode(header.cwd),
        header.created,
        header.created,
        model=header.model,
        preview=preview,
        unattended=header.unattended,
    )


def _with(known: Digest, line: bytes, schema: Schema) -> Digest:
    record = loads(line)
    if record is None:
        return known
    if record.get("type") == HEADER:
        unattended = bool(record.get("unattended"))
        return replace(known, schema=version_of(record, known.schema), unattended=unattended)
    return _fold(known, schema.migrate(record, known.schema))


def _fold(known: Digest, record: Record) -> Digest:
    """Return the digest after a record, in one step: there are many records."""
    changed: dict[str, Any] = {}
    match record:
        case {"type": "turn_started", "agent": str(agent), "prompt": {"blocks": [*blocks]}} if agent == MAIN:
            changed = _begun(known, _text(blocks))
        case {"type": "rewound", "agent": str(agent), "turns": int(turn)} if agent == MAIN:
            timeline = Timeline.load(known.timeline)
            timeline.rewind(turn)
            preview = _last_prompt(record.get("messages"))
            changed = {"turns": len(timeline.numbers()), "timeline": timeline.dump(), "preview": preview}
        case {"type": "message_done" | "compressed", "cost": int() | float() as cost}:
            if cost and not known.unpriced:
                changed = {"cost": (known.cost or 0.0) + number(cost)}
            elif known.cost is None and not known.unpriced and record["type"] == "message_done":
                changed = {"cost": 0.0}
        case {"type": "message_done", "cost": None, "message": {"usage": dict()}}:
            changed = {"cost": None, "unpriced": True}
        case {"type": "compressed", "cost": None, "strategy": "summarize"} | {
            "type": "compressed",
            "cost": None,
            "usage": dict(),
        }:
            changed = {"cost": None, "unpriced": True}
        case {"type": "titled", "title": str(title)}:
            search_text = f"{title.casefold()}\n{known.search_text}"[:_SEARCHED]
            return replace(known, title=one_line(title), search_text=search_text)
        case {"type": "model_changed", "model": str(model)}:
            return replace(known, model=model)
        case {"type": "turn_ended" | "message_done"}:
            pass
        case _:
            return known
    return replace(known, updated=number(record.get("at")) or known.updated, **changed)


def _begun(known: Digest, prompt: str) -> dict[str, Any]:
    timeline = Timeline.load(known.timeline)
    timeline.begin()
    return {
        "turns": known.turns + 1,
        "title": known.title or one_line(title_of(prompt)),
        "search_text": f"{known.search_text}\n{prompt[:_PROMPT].casefold()}"[-_SEARCHED:],
        "preview": one_line(prompt, _PREVIEW),
        "timeline": timeline.dump(),
    }


def _last_prompt(messages: object) -> str:
    """Return the preview after a rewind: the user's last remaining prompt."""
    for message in reversed(cast("list[Any]", messages)) if isinstance(messages, list) else ():
        match message:
            case {"role": "user", "origin": "user", "hidden": False, "blocks": [*blocks]}:
                return one_line(_text(blocks), _PREVIEW)
            case _:
                pass
    return ""


def _text(blocks: list[Any]) -> str:
    """Return the user's words, without notes of ba."""
    texts = (cast("Record", block).get("text") for block in blocks if isinstance(block, dict))
    return paintable("\n".join(text for text in texts if isinstance(text, str) and not is_note(text)))


_COLUMNS = tuple(field.name for field in fields(Digest))
_LISTED = tuple(name for name in _COLUMNS if name != "search_text")
_LAYOUT = CacheLayout(
    4, ("sessions",), (f"CREATE TABLE sessions (key TEXT PRIMARY KEY, size, changed, {', '.join(_COLUMNS)})",)
)

Stamp = tuple[int, int]
"""Size and modification time of a session file."""


class SessionIndex:
    """Sessions have the key ``<folder-slug>/<id>``, a path below ``root``."""

    def __init__(self, path: Path, root: Path) -> None:
        self._root = root
        self._cache = Cache(path, _LAYOUT)

    def digests(self, found: Mapping[str, Stamp]) -> dict[str, Digest]:
        """Return the digests of the sessions ``found`` on disk; reads new parts of changed ones."""
        return self._cache.ask(lambda db: self._refreshed(db, found))

    def matching(self, terms: Sequence[str]) -> set[str]:
        """Return keys of the sessions whose title or prompts contain all ``terms``, as far as they were read."""
        clause = " AND ".join("instr(search_text, ?) > 0" for _ in terms) or "1"
        query = f"SELECT key FROM sessions WHERE {clause}"  # noqa: S608 - only question marks vary
        folded = [term.casefold() for term in terms]
        return self._cache.ask(lambda db: {row[0] for row in db.execute(query, folded)})

    def keep(self, found: Iterable[str]) -> None:
        """Forget sessions that are not in ``found``, the existing ones: no word of a deleted session remains."""
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
