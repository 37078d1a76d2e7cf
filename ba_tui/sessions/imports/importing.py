"""Taking in what other programs wrote, or another ba: a file becomes an ordinary session, with a note of its origin.

What the records of a format mean stands in claude_code, codex, opencode and published; where the session goes is the
library's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice, Titled, ToolFinished, TurnStarted
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.text.wording import count
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.imports import claude_code, codex, opencode, published
from ba_tui.sessions.imports.conversation_only import conversation_only
from ba_tui.sessions.imports.files import TranscriptFile
from ba_tui.sessions.migrations import OURS, Record
from ba_tui.sessions.records import HEADER, MAIN, JournalEntry, RecordReading, number, version_of
from ba_tui.sessions.results.artifacts import Artifacts

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
    if published.recognised(file.value or [line.record for line in file.lines()]):
        records = [line.record for line in file.lines()]
        return ImportedTranscript(f"results {path.name}", published.published_events(records, path.name), file)
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
