"""The lines of a session file as they are read: header, events, damage; forwards and backwards.

Reads only. Writing is the journal's.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from ba_tui import __version__
from ba_tui.core.events import Event, Notice, TurnStarted, event_adapter, event_from_json
from ba_tui.core.messages import clean_json, clean_text
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular
from ba_tui.sessions.migrations import OURS, SCHEMA_VERSION, Record, Schema

FILE = "events.jsonl"
TORN = "The last entry of this session was cut off, probably by a crash. It stays in the file but is left out here."
MAIN = "main"
HEADER = "session"
BLOCK = 64 * 1024
_ZEROS = b"\0"
"""What a power cut may leave before the next whole line."""
_HEADER_LIMIT = 64 * 1024
_TEXTS = ("id", "model", "parent", "source", "ba_version", "note_key")
_KINDS = frozenset(kind.__dataclass_fields__["type"].default for kind in get_args(get_args(Event)[0]))


@frozen
class Header:
    """The first line of a session file."""

    id: str
    cwd: str
    created: float
    model: str = ""
    """The model at the start; ModelChanged events tell later ones."""
    parent: str = ""
    """The session this one was forked from, empty for none."""
    source: str = ""
    """What it was imported from, empty when it began here."""
    unattended: bool = False
    """Only ``ba -p`` wrote it so far. A later header line says so when a person goes on with it."""
    note_key: str = ""
    """What notes of ba's own carry in requests, so that no other text passes for one; empty in sessions of older
    versions."""
    ba_version: str = __version__
    schema_version: int = SCHEMA_VERSION
    type: str = HEADER

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


@frozen
class UnknownRecord:
    """A line of a type that only a later version of ba knows, without its line end."""

    line: bytes
    at: float = 0.0


JournalEntry: TypeAlias = Event | UnknownRecord


def read_header(path: Path) -> Header | None:
    """None when the first line is no header: the file is then read as being of today's schema."""
    with open_regular(path) as file:
        record = _object(file.readline(_HEADER_LIMIT))
    if record is None or record.get("type") != HEADER or not isinstance(record.get("id"), str):
        return None
    texts = {key: clean_text(str(record.get(key) or "")) for key in _TEXTS}
    return Header(
        cwd=_folder(str(record.get("cwd") or "")),
        created=number(record.get("created")),
        unattended=bool(record.get("unattended")),
        schema_version=version_of(record),
        **texts,
    )


def emptied(path: Path) -> bool:
    """Whether a session file holds nothing any more: a full disk, a power cut or another program emptied it. One that
    never held anything has nothing of a session beside it."""
    if len(os.listdir(path.parent)) < 2:  # noqa: PTH208 - names alone
        return False
    with open_regular(path) as file:
        return not file.read(_HEADER_LIMIT).strip(b"\0 \r\n") and file.seek(0, os.SEEK_END) <= _HEADER_LIMIT


def version_of(header: Record, otherwise: int = SCHEMA_VERSION) -> int:
    version = header.get("schema_version")
    return version if isinstance(version, int) and version > 0 else otherwise


def newest_version(path: Path, header: Header) -> int:
    """The version of the file's last lines: it may have been begun under an older one."""
    version = header.schema_version
    for line in forwards(path):
        if b'"schema_version"' in line[:_HEADER_LIMIT] and (record := _object(line)) and record.get("type") == HEADER:
            version = version_of(record, version)
    return version


def _folder(name: str) -> str:
    """A folder's name, which may hold bytes that are no UTF-8 (as ``os.fsdecode`` writes them)."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return clean_text(name)
    return name


def loads(line: bytes) -> Record | None:
    """A JSON object, or None for anything else."""
    record = _object(line)
    # An escaped lone surrogate is a string that can go nowhere.
    return clean_json(record) if record and (b"\\ud" in line or b"\\uD" in line) else record


def _object(line: bytes) -> Record | None:
    try:
        value = json.loads(line.lstrip(_ZEROS))
    except (ValueError, RecursionError):
        return None
    return cast("Record", value) if isinstance(value, dict) else None


def is_record(line: bytes) -> bool:
    """True for a whole line of ours, also one of a kind that only a later version knows."""
    record = loads(line)
    return record is not None and isinstance(record.get("type"), str)


def number(value: object) -> float:
    """``value`` when it is a usable number, else 0."""
    try:
        found = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return found if math.isfinite(found) else 0.0


def forwards(path: Path, upto: int | None = None) -> Iterator[bytes]:
    """Lines, oldest first, those that begin before byte ``upto``; the last one may lack its line end."""
    with open_regular(path) as file:
        read = 0
        for line in file:
            if upto is not None and read >= upto:
                return
            read += len(line)
            yield line


def backwards(path: Path) -> Iterator[bytes]:
    """Lines, newest first, reading no more of the file than is taken; the first one may lack its line end."""
    with open_regular(path) as file:
        start = file.seek(0, os.SEEK_END)
        carry: list[bytes] = []
        """The line whose beginning lies further up, last piece first."""
        while start > 0:
            end, start = start, max(0, start - BLOCK)
            file.seek(start)
            pieces = file.read(end - start).split(b"\n")
            carry.append(pieces[-1])
            if len(pieces) == 1:
                continue
            if line := b"".join(reversed(carry)):
                yield line
            for piece in pieces[-2:0:-1]:
                yield piece + b"\n"
            carry = [pieces[0] + b"\n"]
        if line := b"".join(reversed(carry)):
            yield line


class RecordReading:
    """Turns lines into events. What cannot be read is counted, and a notice stands in its place.

    ``version`` is that of the first lines; a header further down says that of the lines after it.
    """

    def __init__(self, path: Path, version: int = SCHEMA_VERSION, schema: Schema = OURS) -> None:
        self._path = path
        self._version = version
        self._schema = schema
        self._damaged = 0
        self._unknown = 0
        self._at = 0.0

    def events(self, lines: Iterable[bytes]) -> Iterator[Event]:
        """Raises NewerSchema where a later version of ba went on with the session."""
        for entry in self.entries(lines):
            if isinstance(entry, UnknownRecord):
                self._unknown += 1
                continue
            yield from self._unknown_notice()
            yield entry
        yield from self._unknown_notice()

    def entries(self, lines: Iterable[bytes]) -> Iterator[JournalEntry]:
        """The same with the lines of unknown types, for copies that lose nothing. Raises as ``events``."""
        for line in lines:
            if not line.strip():
                continue
            entry = self._parse(line) or self._unparsed(line)
            if entry is None:
                continue
            if self._damaged and isinstance(entry, Notice) and entry.text == TORN:
                self._damaged -= 1
            yield from self._damage_notice()
            self._at = entry.at
            yield entry
        yield from self._damage_notice()

    def _parse(self, line: bytes) -> Event | None:
        with contextlib.suppress(ValueError, RecursionError):
            if self._version >= self._schema.version:
                return event_from_json(line.lstrip(_ZEROS))
            record = loads(line)
            if record and record.get("type") != HEADER:
                return event_adapter().validate_python(self._schema.migrate(record, self._version))
        return None

    def _unparsed(self, line: bytes) -> UnknownRecord | None:
        record = loads(line)
        kind: Any = record.get("type") if record else None
        if record and kind == HEADER:
            self._version = version_of(record, self._version)
            self._schema.check(self._version, self._path.parent.name)
        elif record and isinstance(kind, str) and kind not in _KINDS:
            return UnknownRecord(line.lstrip(_ZEROS).rstrip(b"\r\n"), number(record.get("at")))
        else:
            self._damaged += 1
        return None

    def _damage_notice(self) -> Iterator[Notice]:
        if self._damaged:
            lines = count(self._damaged, "damaged line")
            hint = f"Left as found in {self._path}."
            yield Notice(f"{lines} of this session could not be read.", "warning", hint, damage=True, at=self._at)
        self._damaged = 0

    def _unknown_notice(self) -> Iterator[Notice]:
        if self._unknown:
            entries = "1 entry is" if self._unknown == 1 else f"{self._unknown} entries are"
            hint = "Update ba to see everything; nothing was removed."
            yield Notice(f"{entries} of a kind that this ba does not know.", "warning", hint, damage=True, at=self._at)
        self._unknown = 0


def opens_turn(event: Event) -> bool:
    """True where the main agent's turn begins."""
    return isinstance(event, TurnStarted) and event.agent == MAIN


def starts_turn(line: bytes) -> bool:
    """The same for a line, without reading it as an event."""
    return _is_of_main(line, "turn_started")


def ends_turn(line: bytes) -> bool:
    return _is_of_main(line, "turn_ended")


def _is_of_main(line: bytes, kind: str) -> bool:
    if f'"{kind}"'.encode() not in line:
        return False
    record = loads(line)
    return record is not None and record.get("type") == kind and record.get("agent") == MAIN
