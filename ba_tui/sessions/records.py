"""Reads the lines of a session file, forwards and backwards: header, events, damage; and migrates older versions.

Files are never rewritten: a migration step works on one record as it is read.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from ba_tui import __version__
from ba_tui.core.errors import NewerSchema, written_by_newer
from ba_tui.core.events import Event, Notice, TurnStarted, event_adapter, event_from_json
from ba_tui.core.messages import clean_json, clean_text
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular

Record = dict[str, Any]
Step = Callable[[Record], Record]


@frozen
class Schema:
    """The version that is written, and the migration of older records: ``steps[n]`` turns a record of version n into
    one of version n + 1."""

    version: int
    steps: Mapping[int, Step] = field(default_factory=dict[int, Step])

    def migrate(self, record: Record, version: int) -> Record:
        """Return ``record``, written under ``version``, in the current format."""
        for step in range(version, self.version):
            record = self.steps[step](record)
        return record

    def check(self, version: int, name: str) -> None:
        """Raise NewerSchema if the session ``name`` was written by a later version of ba."""
        if version > self.version:
            words = written_by_newer(f"Session {name}", version, self.version)
            raise NewerSchema(words, "Update ba to open it; the file was left as it is.")


OURS = Schema(1)
SCHEMA_VERSION = OURS.version


FILE = "events.jsonl"
TORN = "The last entry of this session was cut off, probably by a crash. It stays in the file but is left out here."
MAIN = "main"
HEADER = "session"
BLOCK = 64 * 1024
_ZEROS = b"\0"
"""What a power failure may leave before the next complete line."""
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
    """The model at the start; later ones are in ModelChanged events."""
    parent: str = ""
    """The session from which this one was forked; empty for none."""
    source: str = ""
    """The origin of an imported session; empty otherwise."""
    unattended: bool = False
    """Only ``ba -p`` wrote it so far. A later header line changes it when a user continues the session."""
    note_key: str = ""
    """Marks notes of ba in requests, so that no other text can imitate one; empty in sessions of older versions."""
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
    """Return the header; None if the first line is none: then the current schema is assumed."""
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
    """Return whether a session file was emptied by a full disk, a power failure or another program.

    A file that was never written has no other session files next to it.
    """
    if len(os.listdir(path.parent)) < 2:  # noqa: PTH208 - names alone
        return False
    with open_regular(path) as file:
        return not file.read(_HEADER_LIMIT).strip(b"\0 \r\n") and file.seek(0, os.SEEK_END) <= _HEADER_LIMIT


def version_of(header: Record, otherwise: int = SCHEMA_VERSION) -> int:
    version = header.get("schema_version")
    return version if isinstance(version, int) and version > 0 else otherwise


def newest_version(path: Path, header: Header) -> int:
    """Return the version of the file's last lines, which may be later than that of the first ones."""
    version = header.schema_version
    for line in forwards(path):
        if b'"schema_version"' in line[:_HEADER_LIMIT] and (record := _object(line)) and record.get("type") == HEADER:
            version = version_of(record, version)
    return version


def _folder(name: str) -> str:
    """Return a folder's name, which may contain bytes that are not UTF-8 (as ``os.fsdecode`` returns them)."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return clean_text(name)
    return name


def loads(line: bytes) -> Record | None:
    """Parse a JSON object; None for anything else."""
    record = _object(line)
    # Escaped lone surrogates can't be encoded.
    return clean_json(record) if record and (b"\\ud" in line or b"\\uD" in line) else record


def _object(line: bytes) -> Record | None:
    return read_object(line.lstrip(_ZEROS))


def is_record(line: bytes) -> bool:
    """Return whether it is a complete line of a session file, also of an unknown type."""
    record = loads(line)
    return record is not None and isinstance(record.get("type"), str)


def number(value: object) -> float:
    """Return ``value`` if it is a finite number, otherwise 0."""
    try:
        found = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return found if math.isfinite(found) else 0.0


def text_of(record: Record, key: str) -> str:
    """Return the text under ``key``; empty if there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def mapping_of(value: Any) -> Record:
    """Return ``value`` if it is an object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[Record]:
    """Return the objects in a list; empty if ``value`` is not a list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Record", item) for item in items if isinstance(item, dict)]


def forwards(path: Path, upto: int | None = None) -> Iterator[bytes]:
    """Yield lines that begin before byte ``upto``, oldest first; the last one may lack its line end."""
    with open_regular(path) as file:
        read = 0
        for line in file:
            if upto is not None and read >= upto:
                return
            read += len(line)
            yield line


def backwards(path: Path) -> Iterator[bytes]:
    """Yield lines, newest first, reading only as much of the file as needed; the first one may lack its line end."""
    with open_regular(path) as file:
        start = file.seek(0, os.SEEK_END)
        carry: list[bytes] = []
        """Pieces of the line whose beginning was not read yet, last piece first."""
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
    """Converts lines to events. Unreadable lines are counted and replaced by a notice.

    ``version`` is that of the first lines; a later header changes it for the lines after it.
    """

    def __init__(self, path: Path, version: int = SCHEMA_VERSION, schema: Schema = OURS) -> None:
        self._path = path
        self._version = version
        self._schema = schema
        self._damaged = 0
        self._unknown = 0
        self._at = 0.0

    def events(self, lines: Iterable[bytes]) -> Iterator[Event]:
        """Yield events. Raises NewerSchema where a later version of ba continued the session."""
        for entry in self.entries(lines):
            if isinstance(entry, UnknownRecord):
                self._unknown += 1
                continue
            yield from self._unknown_notice()
            yield entry
        yield from self._unknown_notice()

    def entries(self, lines: Iterable[bytes]) -> Iterator[JournalEntry]:
        """Yield events and the lines of unknown types, for lossless copies. Raises as ``events``."""
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
    """Return whether the event begins a turn of the main agent."""
    return isinstance(event, TurnStarted) and event.agent == MAIN


def starts_turn(line: bytes) -> bool:
    """Return whether the line begins a turn of the main agent, without parsing it as an event."""
    return _is_of_main(line, "turn_started")


def ends_turn(line: bytes) -> bool:
    return _is_of_main(line, "turn_ended")


def _is_of_main(line: bytes, kind: str) -> bool:
    if f'"{kind}"'.encode() not in line:
        return False
    record = loads(line)
    return record is not None and record.get("type") == kind and record.get("agent") == MAIN
