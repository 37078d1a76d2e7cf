"""Taking in what other programs wrote, or another ba: a file becomes an ordinary session, with a note of its origin.

What the records of a format mean stands in claude_code, codex, opencode and published; where the session goes is the
library's.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.errors import ErrorInfo, ErrorKind, StorageError, UsageError
from ba_tui.core.events import Event, MessageDone, Notice, Titled, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, ToolUse, clean_json, user
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.results import ToolResult
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.imports import claude_code, codex, opencode
from ba_tui.sessions.imports.conversation_only import conversation_only
from ba_tui.sessions.migrations import OURS, Record
from ba_tui.sessions.records import HEADER, MAIN, JournalEntry, RecordReading, loads, number, version_of
from ba_tui.sessions.results.artifacts import Artifacts

LARGEST_VALUE = 500_000_000
"""Bytes of a file that is one JSON value, or no UTF-8: such a file is read whole."""
HEAD_BYTES = 1_000_000
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_VALUES = (b"[", b"{\n", b"{\r", b"{ ")


@frozen
class ImportedLine:
    """One line of a file, and the object in it; ``place`` is where ``load`` finds it again."""

    text: bytes
    record: Record
    place: int


class TranscriptFile:
    """``damaged`` counts the lines that could not be read, of the last time through.

    Raises:
        UsageError: there is no such file. StorageError: it can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._whole: list[Record] | None = None
        self._text: list[bytes] | None = None
        try:
            with path.open("rb") as file:
                head = file.read(64)
                if head.startswith(_WIDE) or head.removeprefix(_MARK).lstrip().startswith(_VALUES):
                    self._read(head + file.read(LARGEST_VALUE))
        except OSError as error:
            misnamed = isinstance(error, FileNotFoundError | IsADirectoryError)
            raise (UsageError if misnamed else StorageError)(
                f"{path} can't be read: {error.strerror or error}.", "Check the name and its rights."
            ) from error

    @property
    def value(self) -> Sequence[Record]:
        """The objects of a file that is one JSON value: itself, or a list of them. Empty for lines of objects."""
        return self._whole or ()

    def lines(self) -> Iterator[ImportedLine]:
        """Each object, one a line or in the list that the file is."""
        self.damaged = 0
        if self._whole is not None:
            for place, record in enumerate(self._whole):
                yield ImportedLine(json.dumps(record).encode(), record, place)
            return
        for place, line in self._lines():
            if not line.strip():
                continue
            record = loads(line)
            if record is None:
                self.damaged += 1
                continue
            yield ImportedLine(_whole_letters(line, record), record, place)

    def head(self, most: int) -> list[Record]:
        """The first objects, so many at most, and only the first of large ones."""
        found: list[Record] = []
        size = 0
        for line in itertools.islice(self.lines(), most):
            found.append(line.record)
            size += len(line.text)
            if size > HEAD_BYTES:
                break
        return found

    def load(self, place: int) -> Record:
        """The object at a place that ``lines`` gave."""
        if self._whole is not None:
            return self._whole[place]
        if self._text is not None:
            return loads(self._text[place]) or {}
        with self.path.open("rb") as file:
            file.seek(place)
            return loads(_ended(file.readline())) or {}

    def _read(self, data: bytes) -> None:
        if data.startswith(_WIDE):
            data = data.decode("utf-16", "replace").encode()
        data = data.removeprefix(_MARK)
        try:
            value: Any = clean_json(json.loads(data)) if data.lstrip().startswith(_VALUES) else None
        except (ValueError, RecursionError):
            value = None
        items = cast("list[Any]", value) if isinstance(value, list) else [value] if value is not None else []
        objects = [cast("Record", item) for item in items if isinstance(item, dict)]
        if objects:
            self._whole = objects
        else:
            self._text = data.splitlines()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        if self._text is not None:
            yield from enumerate(self._text)
            return
        with self.path.open("rb") as file:
            place = 0
            for line in file:
                yield place, _ended(line.removeprefix(_MARK) if place == 0 else line)
                place += len(line)


def _ended(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")


def _whole_letters(line: bytes, record: Record) -> bytes:
    """``line``, or ``record`` anew where an escaped half of a letter keeps the line from being read as an event."""
    return json.dumps(record).encode() if b"\\ud" in line.lower() else line


VERSIONS = ("1.4", "1.5", "1.6", "1.7", "1.8", "1.9")
_LEVELS = ("brief", "standard", "full")
_IDS = ("request_id", "tool_call_id", "id")
_KINDS = frozenset(get_args(ErrorKind))


def recognised(records: Sequence[Record]) -> bool:
    return bool(records) and all(isinstance(record.get("observation"), str) for record in records)


def result_of(record: Record) -> ToolResult:
    """A result in any of ``VERSIONS``: 1.4 knows no output level and means the standard one, the others are alike."""
    observation = record.get("observation")
    text = observation if isinstance(observation, str) else ""
    failed = record.get("success") is False
    level = str(record.get("output_level") or "").rpartition(".")[2].lower()
    kept = ("data_file", "data_size_bytes", "data_hash", "data_summary", "error_code", "retry_count", "last_error")
    meta: dict[str, Any] = {key: record[key] for key in kept if record.get(key) is not None}
    given = record.get("metadata")
    meta |= cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    meta["output_level"] = level if level in _LEVELS else "standard"
    if not failed:
        return ToolResult(text, summary=one_line(text, 60), meta=meta)
    kind = str(record.get("error_type") or "").rpartition(".")[2].lower()
    known = cast("ErrorKind", kind) if kind in _KINDS else "execution_error"
    message = str(record.get("error_message") or "") or one_line(text)
    error = ErrorInfo(known, message)
    return ToolResult(text, None, is_error=True, summary=known.replace("_", " "), error=error, meta=meta)


def published_events(records: Sequence[Record], name: str) -> list[Event]:
    """One turn that holds the results as if they had been called for."""
    calls = [ToolUse(_id(record, place), _tool(record), {}) for place, record in enumerate(records)]
    return [TurnStarted(user(f"Results imported from {name}.")), *_called(calls, records), TurnEnded("done")]


def _called(calls: Sequence[ToolUse], records: Sequence[Record]) -> Iterator[Event]:
    yield MessageDone(Message("assistant", tuple(calls), stop="tool_use", origin="assistant"), None)
    for call, record in zip(calls, records, strict=True):
        yield ToolStarted(call)
        yield ToolFinished(call.id, result_of(record), number(record.get("duration_ms")) / 1000)


def _id(record: Record, place: int) -> str:
    found = next((value for key in _IDS if isinstance(value := record.get(key), str) and value), "result")
    return f"{found}-{place + 1}"


def _tool(record: Record) -> str:
    name = record.get("tool_name")
    return name if isinstance(name, str) and name else "tool"


HEAD_RECORDS = 50
"""Records by which a format is known."""
LONG = 100_000
HEAD, TAIL = 8_000, 2_000
"""Of a result that is too long for the journal: what stays there of its beginning and end."""
KINDS = 24
"""Kinds of entries left out that are named."""
DEFAULTS = "It opens in your own default mode and with your own model."


@dataclass(slots=True)
class ImportedTranscript:
    """What a file came to. ``source`` names it for good. ``events`` can be read once; then all counts are complete.
    ``cwd`` and ``model`` are those of the original, for people. ``titled``: one of the events is a title."""

    source: str
    events: Iterable[JournalEntry]
    file: TranscriptFile
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])
    abandoned: int = 0
    titled: bool = False

    @property
    def damaged(self) -> int:
        """Lines that could not be read."""
        return self.file.damaged

    @property
    def remarks(self) -> list[str]:
        """What was left out, in words."""
        found: list[str] = []
        if self.skipped:
            kinds = ", ".join(f"{count} {one_line(kind, 40)}" for kind, count in self.skipped.most_common(KINDS))
            more = sum(self.skipped.values()) - sum(count for _, count in self.skipped.most_common(KINDS))
            others = f", {more} of other kinds" if more else ""
            found.append(f"Left out, being no part of the conversation: {kinds}{others}.")
        if self.abandoned:
            found.append(f"Left out, because the conversation went back from there: {count(self.abandoned, 'entry')}.")
        if self.damaged:
            found.append(f"Not readable: {count(self.damaged, 'entry')}.")
        return found


def read_transcript(path: Path) -> ImportedTranscript:
    """The session in a file of a known format.

    Raises:
        UsageError: there is no such file, it is of no format that is known, or holds nothing.
        StorageError: it can't be read.
        NewerSchema: a later ba exported it.
    """
    file = TranscriptFile(path)
    taken = _taken(file)
    # Until the first prompt: what follows is read while it is written.
    ahead: list[JournalEntry] = []
    events = iter(taken.events)
    for event in events:
        ahead.append(event)
        if isinstance(event, TurnStarted) and event.agent == MAIN:
            break
    else:
        raise UsageError(f"{path} holds no conversation.", "Give a transcript with at least one prompt.")
    taken.events = chain(ahead, events)
    return taken


def _taken(file: TranscriptFile) -> ImportedTranscript:
    path, head = file.path, file.head(HEAD_RECORDS)
    if any(record.get("type") == HEADER and "schema_version" in record for record in head[:5]):
        return _ours(file)
    if opencode.recognised(file.value or head):
        return _opencode(file, (file.value or head)[0])
    if codex.recognised(head):
        return _codex(file)
    if claude_code.recognised(head):
        return _claude_code(file)
    if recognised(file.value or [line.record for line in file.lines()]):
        records = [line.record for line in file.lines()]
        return ImportedTranscript(f"results {path.name}", published_events(records, path.name), file)
    raise UsageError(
        f"{path} is of no format that can be imported.",
        "Known are transcripts of Claude Code and Codex, opencode export, ba sessions export -f jsonl, and lists of "
        "tool results.",
    )


def _ours(file: TranscriptFile) -> ImportedTranscript:
    """Our own lines, through the same reading and the same steps as a session's file."""
    header = next(line.record for line in file.lines() if line.record.get("type") == HEADER)
    OURS.check(version_of(header), file.path.name)
    events = RecordReading(file.path, version_of(header)).entries(line.text for line in file.lines())
    source = f"ba {header.get('id') or file.path.stem}"
    cwd, model = (str(header.get(key) or "") for key in ("cwd", "model"))
    return ImportedTranscript(source, events, file, cwd, model, number(header.get("created")), titled=True)


def _claude_code(file: TranscriptFile) -> ImportedTranscript:
    bones = [{**claude_code.skeleton(line.record), claude_code.PLACE: line.place} for line in file.lines()]
    story = claude_code.stream_story(bones, file.load)
    model = f"{claude_code.VENDOR}/{story.model}" if story.model else ""
    source = f"Claude Code {story.session or file.path.stem}"
    return ImportedTranscript(
        source, story.events, file, story.cwd, model, story.created, story.skipped, story.abandoned, story.titled
    )


def _codex(file: TranscriptFile) -> ImportedTranscript:
    rollout = codex.Rollout()
    rollout.read_head(file.head(HEAD_RECORDS))
    events = rollout.events(line.record for line in file.lines())
    model = f"{codex.VENDOR}/{rollout.model}" if rollout.model else ""
    source = f"Codex {rollout.session or file.path.stem}"
    return ImportedTranscript(source, events, file, rollout.cwd, model, rollout.created, rollout.skipped)


def _opencode(file: TranscriptFile, export: Record) -> ImportedTranscript:
    story = opencode.read_export(export)
    source = f"OpenCode {story.session or file.path.stem}"
    return ImportedTranscript(
        source, story.events, file, story.cwd, story.model, story.created, story.skipped, titled=True
    )


def journal_entries(taken: ImportedTranscript, results: Artifacts) -> Iterator[JournalEntry]:
    """The conversation as the journal gets it: titled, with a note of where it is from, and long results in files."""
    titled, at = taken.titled, 0.0
    for event in conversation_only(taken.events, taken.skipped):
        at = max(at, event.at)
        if isinstance(event, ToolFinished) and len(event.result.text) > LONG:
            yield _stored(event, results)
            continue
        yield event
        if not titled and isinstance(event, TurnStarted) and event.agent == MAIN:
            titled = True
            yield Titled(title_of(event.prompt.said), at=event.at)
    yield Notice(f"Imported from {one_line(taken.source)}. {DEFAULTS}", hint=" ".join(taken.remarks), at=at)


def _stored(event: ToolFinished, results: Artifacts) -> ToolFinished:
    text = event.result.text
    stored = results.store(text, kind=event.result.kind, call_id=event.call_id)
    left = f"\n… {len(text) - HEAD - TAIL:,} characters left out; the whole is {stored.ref} …\n"
    short = f"{text[:HEAD]}{left}{text[-TAIL:]}"
    return replace(event, result=replace(event.result, text=short, artifact=stored.ref))
