"""Taking in what other programs wrote, or another ba: a file becomes an ordinary session, with a note of its origin.

What the records of a format mean stands in claude_code and published; where the session goes is the library's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Notice, Titled, ToolFinished, TurnStarted
from ba_tui.core.messages import clean_json
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.imports import claude_code, published
from ba_tui.sessions.migrations import OURS, Record
from ba_tui.sessions.records import HEADER, MAIN, JournalEntry, RecordReading, loads, number, version_of
from ba_tui.sessions.results.artifacts import Artifacts

LONG = 100_000
HEAD, TAIL = 8_000, 2_000
"""Of a result that is too long for the journal: what stays there of its beginning and end."""


@frozen
class ImportedLine:
    """One line of a file, and the object in it."""

    text: bytes
    record: Record


@dataclass(slots=True)
class ImportedTranscript:
    """What a file came to. ``source`` names it for good; ``damaged`` counts lines that could not be read."""

    source: str
    events: Sequence[JournalEntry]
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])
    abandoned: int = 0
    damaged: int = 0

    @property
    def remarks(self) -> list[str]:
        """What was left out, in words."""
        found: list[str] = []
        if self.skipped:
            kinds = ", ".join(f"{count} {one_line(kind, 40)}" for kind, count in self.skipped.most_common(8))
            found.append(f"Left out, being no part of the conversation: {kinds}.")
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
    try:
        data = path.read_bytes()
    except OSError as error:
        misnamed = isinstance(error, FileNotFoundError | IsADirectoryError)
        raise (UsageError if misnamed else StorageError)(
            f"{path} can't be read: {error.strerror or error}.", "Check the name and its rights."
        ) from error
    lines, damaged = _lines(data)
    taken = _taken(path, lines)
    taken.damaged += damaged
    if not any(isinstance(event, TurnStarted) and event.agent == MAIN for event in taken.events):
        raise UsageError(f"{path} holds no conversation.", "Give a transcript with at least one prompt.")
    return taken


def _taken(path: Path, lines: Sequence[ImportedLine]) -> ImportedTranscript:
    records = [line.record for line in lines]
    if any(record.get("type") == HEADER and "schema_version" in record for record in records[:5]):
        return _ours(path, lines)
    if claude_code.recognised(records):
        story = claude_code.read_story(records)
        model = f"{claude_code.VENDOR}/{story.model}" if story.model else ""
        source = f"Claude Code {story.session or path.stem}"
        return ImportedTranscript(source, story.events, story.cwd, model, story.created, story.skipped, story.abandoned)
    if published.recognised(records):
        return ImportedTranscript(f"results {path.name}", published.published_events(records, path.name))
    raise UsageError(
        f"{path} is of no format that can be imported.",
        "Known are Claude Code's transcripts, ba sessions export -f jsonl, and lists of tool results.",
    )


def _ours(path: Path, lines: Sequence[ImportedLine]) -> ImportedTranscript:
    """Our own lines, through the same reading and the same steps as a session's file."""
    header = next(line.record for line in lines if line.record.get("type") == HEADER)
    OURS.check(version_of(header), path.name)
    events = list(RecordReading(path, version_of(header)).entries(line.text for line in lines))
    source = f"ba {header.get('id') or path.stem}"
    cwd, model = (str(header.get(key) or "") for key in ("cwd", "model"))
    return ImportedTranscript(source, events, cwd, model, number(header.get("created")))


def _lines(data: bytes) -> tuple[list[ImportedLine], int]:
    """The objects in a file, one a line or in one JSON value that is an object or a list of them, and how many lines
    could not be read."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(b"\xef\xbb\xbf")
    if whole := _whole(data):
        return [ImportedLine(json.dumps(record).encode(), record) for record in whole], 0
    lines = [line for line in data.splitlines() if line.strip()]
    found = [
        ImportedLine(_whole_letters(line, record), record) for line in lines if (record := loads(line)) is not None
    ]
    return found, len(lines) - len(found)


def _whole_letters(line: bytes, record: Record) -> bytes:
    """``line``, or ``record`` anew where an escaped half of a letter keeps the line from being read as an event."""
    return json.dumps(record).encode() if b"\\ud" in line.lower() else line


def _whole(data: bytes) -> list[Record]:
    if not data.lstrip().startswith((b"[", b"{\n", b"{\r", b"{ ")):
        return []
    try:
        value: Any = clean_json(json.loads(data))
    except (ValueError, RecursionError):
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("Record", item) for item in items if isinstance(item, dict)]


def journal_entries(taken: ImportedTranscript, results: Artifacts) -> Iterator[JournalEntry]:
    """The events as the journal gets them: titled, with a note of where they are from, and long results in files."""
    titled = any(isinstance(event, Titled) for event in taken.events)
    for event in taken.events:
        if isinstance(event, ToolFinished) and len(event.result.text) > LONG:
            yield _stored(event, results)
            continue
        yield event
        if not titled and isinstance(event, TurnStarted) and event.agent == MAIN:
            titled = True
            yield Titled(title_of(event.prompt.said), at=event.at)
    at = max((event.at for event in taken.events), default=0.0)
    yield Notice(f"Imported from {one_line(taken.source)}.", hint=" ".join(taken.remarks), at=at)


def _stored(event: ToolFinished, results: Artifacts) -> ToolFinished:
    text = event.result.text
    stored = results.store(text, kind=event.result.kind, call_id=event.call_id)
    left = f"\n… {len(text) - HEAD - TAIL:,} characters left out; the whole is {stored.ref} …\n"
    short = f"{text[:HEAD]}{left}{text[-TAIL:]}"
    return replace(event, result=replace(event.result, text=short, artifact=stored.ref))
