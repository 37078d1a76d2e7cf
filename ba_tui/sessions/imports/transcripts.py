"""Imports transcripts of other programs, or of another ba, as ordinary sessions with a note of their origin.

``claude_code``, ``codex`` and ``opencode`` parse the formats; the library saves the session. The files are untrusted:
only events of the types in ``KEPT`` enter an imported session, and only with fields that belong to the conversation. A
new type of event is dropped until it is added there.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.errors import ErrorInfo, ErrorKind, StorageError, UsageError
from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    Notice,
    Rewound,
    Steered,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    MessageOrigin,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    clean_json,
    is_note,
    user,
)
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.results import Display, StateChange, Table, ToolResult
from ba_tui.core.text import untrusted
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.imports import claude_code, codex, opencode
from ba_tui.sessions.records import (
    HEADER,
    OURS,
    JournalEntry,
    Record,
    RecordReading,
    UnknownRecord,
    loads,
    number,
    version_of,
)

LARGEST_VALUE = 500_000_000
"""Most bytes read of a file that is one JSON value or UTF-16, as such a file is read completely."""
HEAD_BYTES = 1_000_000
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_VALUES = (b"[", b"{\n", b"{\r", b"{ ")


@frozen
class ImportedLine:
    """One line of a file and its object. ``place``: the argument with which ``load`` reads it again."""

    text: bytes
    record: Record
    place: int


class TranscriptFile:
    """A file with one JSON object a line, or with one JSON value. ``damaged``: unreadable lines of the last pass.

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
        """Return the objects of a file that is one JSON value; empty for a file with an object a line."""
        return self._whole or ()

    def lines(self) -> Iterator[ImportedLine]:
        """Yield each object of the file."""
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
        """Return the first ``most`` objects at most, and fewer if they exceed ``HEAD_BYTES``."""
        found: list[Record] = []
        size = 0
        for line in itertools.islice(self.lines(), most):
            found.append(line.record)
            size += len(line.text)
            if size > HEAD_BYTES:
                break
        return found

    def load(self, place: int) -> Record:
        """Read the object at a ``place`` of ``lines``."""
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
    """Return ``line``; if an escaped lone surrogate makes it unreadable as an event, ``record`` as JSON."""
    return json.dumps(record).encode() if b"\\ud" in line.lower() else line


VERSIONS = ("1.4", "1.5", "1.6", "1.7", "1.8", "1.9")
_LEVELS = ("brief", "standard", "full")
_IDS = ("request_id", "tool_call_id", "id")
_KINDS = frozenset(get_args(ErrorKind))


def recognised(records: Sequence[Record]) -> bool:
    return bool(records) and all(isinstance(record.get("observation"), str) for record in records)


def result_of(record: Record) -> ToolResult:
    """Return the result in a record of ``VERSIONS``. Version 1.4 has no output level: use ``standard``."""
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
    """Return the events of one turn that contains the results, each with a tool call."""
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
"""Number of records by which a format is recognised."""
LONG = 100_000
HEAD, TAIL = 8_000, 2_000
"""Characters from the beginning and end of a long result that remain in the journal."""
KINDS = 24
"""Most kinds of skipped entries that are named."""
DEFAULTS = "It opens in your own default mode and with your own model."


@dataclass(slots=True)
class ImportedTranscript:
    """An imported transcript. ``source``: permanent description of its origin. ``events`` can be iterated once; after
    that all counts are complete. ``cwd`` and ``model``: those of the original, for display. ``titled``: the events
    include a title."""

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
        """Return the number of unreadable lines."""
        return self.file.damaged

    @property
    def remarks(self) -> list[str]:
        """Return sentences about skipped entries."""
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
    """Read the session in a file.

    Raises:
        UsageError: the file does not exist, has no known format, or has no prompt.
        StorageError: it can't be read.
        NewerSchema: a later ba exported it.
    """
    file = TranscriptFile(path)
    taken = _taken(file)
    # Read up to the first prompt; the rest is read while the session is written.
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
    """Read an export of ba, with the reader and the migrations of session files."""
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
    """Yield the events for the journal: with a title and a note of the origin; long results are stored as files."""
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


_AGENT = regex(rf"{MAIN}(?:/[A-Za-z0-9_.-]{{1,100}}){{0,8}}")
_DOTS = regex(r"/\.+(?:/|$)")
_NO_WORDS = Text("(This prompt held no words of the user.)")


def conversation_only(entries: Iterable[JournalEntry], left_out: Counter[str]) -> Iterator[Event]:
    """Yield the conversation in ``entries``; count dropped entries by type in ``left_out``."""
    for entry in entries:
        if isinstance(entry, UnknownRecord):
            left_out[one_line(str((loads(entry.line) or {}).get("type")), 40)] += 1
            continue
        keep = KEPT.get(type(entry))
        kept = keep(entry) if keep and _is_agent(entry.agent) else None
        if kept is None:
            left_out["damaged entry" if isinstance(entry, Notice) and entry.damage else entry.type] += 1
        else:
            yield kept


def _is_agent(name: str) -> bool:
    return _AGENT.fullmatch(name) is not None and not _DOTS.search(name)


def _prompt(event: TurnStarted) -> Event | None:
    if event.prompt.role != "user":
        return None
    said = _said(event.prompt)
    return replace(event, prompt=said if said.blocks else replace(said, blocks=(_NO_WORDS,)))


def _steered(event: Steered) -> Event | None:
    """Keep messages that the user saw; hidden ones are notes of the program."""
    message = event.message
    if message.hidden or message.role != "user" or message.origin not in {"user", "steer", "imported"}:
        return None
    said = _said(message)
    return replace(event, message=said) if said.blocks else None


def _answer(event: MessageDone) -> Event | None:
    return replace(event, message=_message(event.message)) if event.message.role == "assistant" else None


def _result(event: ToolFinished) -> Event:
    """Keep the text and display of a result; drop references to another session's files and data."""
    result = event.result
    todos = result.changes.todos if result.changes else None
    kept = ToolResult(
        untrusted.neutralized(result.text, untrusted.OURS),
        _shown(result.display),
        result.is_error,
        result.summary,
        _attached(result.attachments),
        result.error,
        None if todos is None else StateChange(todos=todos),
        kind=result.kind,
    )
    return replace(event, result=kept)


def _shown(display: Display | None) -> Display | None:
    return replace(display, handle="") if isinstance(display, Table) else display


def _compressed(event: Compressed) -> Event:
    return replace(event, messages=tuple(map(_message, event.messages)))


def _rewound(event: Rewound) -> Event | None:
    """Keep a rewind of the conversation; files and checkpoints belong to another session."""
    if event.turns is None:
        return None
    state = StateChange(todos=event.state.todos)
    return Rewound(tuple(map(_message, event.messages)), state, event.turns, agent=event.agent, at=event.at)


def _agent(event: AgentStarted) -> Event:
    """Keep the start of a sub-agent; drop its model and its copy of the project."""
    return replace(event, model="", worktree="", background=False)


def _title(event: Titled) -> Event:
    return replace(event, title=one_line(event.title))


def _as_it_is(event: Event) -> Event:
    return event


KEPT: Mapping[type, Callable[[Any], Event | None]] = {
    TurnStarted: _prompt,
    Steered: _steered,
    MessageDone: _answer,
    ToolStarted: _as_it_is,
    ToolFinished: _result,
    Compressed: _compressed,
    Rewound: _rewound,
    AgentStarted: _agent,
    Titled: _title,
    TurnEnded: _as_it_is,
}
"""The kept types of events, each with the function that removes other fields; if it returns None the event is
dropped."""


def _said(message: Message) -> Message:
    """Return a prompt without notes that were hidden from the user."""
    seen = tuple(block for block in message.blocks if not (isinstance(block, Text) and is_note(block.text)))
    return replace(_message(replace(message, blocks=seen)), hidden=False)


def _message(message: Message) -> Message:
    """Return ``message`` without vendor-specific blocks and without ba's own tags.

    Its new origin marks that no user typed it here, so hosts and facts in it are not trusted as the user's words.
    """
    origin: MessageOrigin = "imported" if message.origin in {"user", "steer", "memory", "skill"} else message.origin
    blocks = tuple(kept for block in message.blocks if (kept := _block(block, message.role)) is not None)
    return replace(message, blocks=blocks, origin=origin if message.role == "user" else "assistant")


def _block(block: Block, role: str) -> Block | None:
    match block:
        case Text(text=text):
            return Text(untrusted.neutralized(text, untrusted.OURS))
        case ToolOutput() if role == "user":
            content = untrusted.neutralized(block.content, untrusted.OURS)
            return replace(block, content=content, attachments=_attached(block.attachments))
        case Image(url=None) | Document() if role == "user":
            return block
        case Thinking() | RedactedThinking() | ToolUse() if role == "assistant":
            return block
        case _:
            return None


def _attached(blocks: Sequence[Image | Document]) -> tuple[Image | Document, ...]:
    """Keep embedded pictures and documents; drop linked ones, which would be fetched from their host."""
    return tuple(block for block in blocks if not (isinstance(block, Image) and block.url))
