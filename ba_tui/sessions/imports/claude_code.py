"""Converts Claude Code's transcripts to events: prompts, answers, calls, results, sub-agents and compactions.

The structure of the conversation is found from skeletons of the records, so that large transcripts fit in memory; a
complete record is loaded only while it is converted.
"""

from __future__ import annotations

import base64
import heapq
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, cast

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
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
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    Usage,
    user,
)
from ba_tui.core.results import CommandText, Diff, Display, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import MAIN, Record, number, text_of

VENDOR = "anthropic"
_TEXTS = ("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "cwd", "timestamp", "agentId")
_TEXTS_WITHIN = ("id", "model", "role", "stop_reason")
_OURS = {"text", "thinking", "redacted_thinking", "tool_use", "tool_result"}


def sound(record: Record) -> Record:
    """Return ``record`` without fields of the wrong type.

    Prompts that the user typed during a turn, which newer versions save as attachments, become messages.
    """
    found = _with_words(record, _TEXTS)
    extra: Any = found.get("attachment")
    queued = cast("Record", extra) if isinstance(extra, dict) else {}
    if found.get("type") == "attachment" and queued.get("type") == "queued_command":
        aside = queued.get("commandMode") not in (None, "prompt")
        found |= {"type": "user", "message": {"content": queued.get("prompt")}, "isQueued": True, "isMeta": aside}
    message = found.pop("message", None)
    if isinstance(message, dict):
        found["message"] = _with_words(cast("Record", message), _TEXTS_WITHIN)
    return found


def _with_words(record: Record, names: tuple[str, ...]) -> Record:
    return {key: value for key, value in record.items() if key not in names or isinstance(value, str)}


def content_blocks(record: Record) -> list[Record]:
    """Return the raw blocks of a message."""
    return _listed(cast("Record", record["message"]).get("content"))


def _listed(content: Any) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [cast("Record", block) for block in items if isinstance(block, dict)]


def block_of(raw: Record) -> Block | None:
    """Convert a raw block; return None if it is damaged, as it would make every later request fail."""
    match raw:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "thinking", "thinking": str(thinking)}:
            return Thinking(thinking, text_of(raw, "signature") or None)
        case {"type": "redacted_thinking", "data": str(data)}:
            return RedactedThinking(data)
        case {"type": "tool_use", "id": str(id), "name": str(name)} if id and name:
            given = raw.get("input")
            if isinstance(given, dict):
                return ToolUse(id, name, cast("dict[str, Any]", given))
            return ToolUse(id, name, {}, json.dumps(given))
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Image(kind, data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return Image("", url=url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Document(kind, data, text_of(raw, "title"))
        case {"type": "document", "source": {"type": "text", "data": str(words)}}:
            data = base64.b64encode(words.encode("utf-8", "replace")).decode("ascii")
            return Document("text/plain", data, text_of(raw, "title"))
        case {"type": str(kind)} if kind and kind not in _OURS:
            return Opaque(dict(raw), VENDOR)
        case _:
            return None


def worth(block: Block | None) -> bool:
    """Return whether requests may contain the block: not if it is empty text or unsigned thinking."""
    return block is not None and not (
        (isinstance(block, Text) and not block.text.strip()) or (isinstance(block, Thinking) and not block.signature)
    )


def result_of(content: Any) -> tuple[str, tuple[Image | Document, ...]]:
    """Return the text and the attachments of a tool's result. Parts of unknown types are kept as JSON text."""
    texts: list[str] = []
    attachments: list[Image | Document] = []
    for raw in _listed(content):
        block = block_of(raw)
        if isinstance(block, Image | Document):
            attachments.append(block)
        else:
            texts.append(block.text if isinstance(block, Text) else json.dumps(raw, ensure_ascii=False))
    return "\n".join(texts), tuple(attachments)


def display_of(call: ToolUse, result: Any) -> Display | None:
    match result:
        case {"filePath": str(path), "originalFile": str(before), "oldString": str(old), "newString": str(new)}:
            return Diff(path, before, _replaced(before, old, new, result.get("replaceAll")))
        case {"filePath": str(path), "originalFileContents": str(before)}:
            after = before
            for edit in _listed(result.get("edits")):
                old, new = text_of(edit, "old_string"), text_of(edit, "new_string")
                after = _replaced(after, old, new, edit.get("replace_all"))
            return Diff(path, before, after)
        case {"filePath": str(path), "content": str(after), "type": "create"}:
            return Diff(path, None, after)
        case {"filePath": str(path), "content": str(after), "originalFile": str(before)}:
            return Diff(path, before, after)
        case {"stdout": str(output), "stderr": str(errors)}:
            return CommandText(str(call.input.get("command") or ""), output="\n".join(filter(None, (output, errors))))
        case _:
            return None


def _replaced(before: str, old: str, new: str, everywhere: Any) -> str:
    return before.replace(old, new, -1 if everywhere else 1) if old else new


def usage_of(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(*(max(0, int(number(cast("Record", usage).get(name)))) for name in names))


TITLES = ("summary", "ai-title", "custom-title")
"""Kinds of records with a title, the least specific first."""
_LATEST = 4e9
"""Latest plausible time, in seconds since the epoch."""
_STRUCTURE = (*_TEXTS, "leafUuid", "isSidechain", "customTitle", "aiTitle", "summary", "title")


def skeleton(record: Record) -> Record:
    """Return only the fields of a record that determine the structure, and its titles."""
    record = sound(record)
    thin: Record = {key: record[key] for key in _STRUCTURE if key in record}
    message = record.get("message")
    if isinstance(message, dict):
        said = cast("Record", message)
        calls = [
            {key: block[key] for key in ("type", "id", "tool_use_id") if key in block}
            for block in content_blocks(record)
            if block.get("type") in ("tool_use", "tool_result")
        ]
        thin["message"] = {**{key: said[key] for key in ("id", "model") if key in said}, "content": calls}
    return thin


def unique(records: Iterable[Record]) -> list[Record]:
    """Return the records without duplicates: a resumed session repeats earlier records with the same ids."""
    found: dict[str, Record] = {}
    for index, record in enumerate(records):
        found.setdefault(text_of(record, "uuid") or f"#{index}", record)
    return list(found.values())


def current_line(talk: Sequence[Record], records: Sequence[Record]) -> list[Record]:
    """Return ``talk`` without abandoned branches: the ancestors of the newest record, their calls and results, and
    records without a known parent, as some versions and tools write no parent or one that the file lacks."""
    if not talk or not all(record.get("uuid") for record in talk):
        return list(talk)
    parents = {text_of(record, "uuid"): _parent(record) for record in records if record.get("uuid")}
    line = _line([text_of(record, "uuid") for record in talk], parents)
    answers = {message_id(record) for record in talk if record["uuid"] in line} - {""}
    branches = _branches(parents, line)
    kept = [record for record in talk if record["uuid"] not in branches or message_id(record) in answers]
    keep = {record["uuid"] for record in kept}
    calls = {call for record in kept for call in _ids(record, "tool_use", "id")}
    return [record for record in talk if record["uuid"] in keep or calls & _ids(record, "tool_result", "tool_use_id")]


def _parent(record: Record) -> str:
    return text_of(record, "parentUuid") or text_of(record, "logicalParentUuid")


def _line(talk: Sequence[str], parents: Mapping[str, str]) -> set[str]:
    """Return the ancestors of the newest record; where a chain ends, continue with the record before it."""
    places = {id: place for place, id in enumerate(talk)}
    line: set[str] = set()
    first = len(talk)
    while first:
        at = talk[first - 1]
        first -= 1
        while at in parents and at not in line:
            line.add(at)
            first = min(first, places.get(at, first))
            at = parents[at]
    return line


def _branches(parents: Mapping[str, str], line: Set[str]) -> set[str]:
    """Return the ids that descend from ``line`` but are not on it."""
    found: set[str] = set()
    rooted: set[str] = set()
    for start in parents:
        way: list[str] = []
        at = start
        while at in parents and at not in line and at not in found and at not in rooted:
            rooted.add(at)
            way.append(at)
            at = parents[at]
        if way and (at in line or at in found):
            found.update(way)
    return found


def threads_of(aside: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Return the records of each sub-agent, grouped by agent or by first ancestor."""
    roots: dict[str, int] = {}
    threads: dict[int, list[Record]] = {}
    for record in aside:
        parent = text_of(record, "agentId") or text_of(record, "parentUuid")
        place = roots.setdefault(parent, len(threads)) if record.get("agentId") else roots.get(parent, len(threads))
        roots[text_of(record, "uuid")] = place
        threads.setdefault(place, []).append(record)
    return [(f"{MAIN}/task-{place + 1}", thread) for place, thread in threads.items()]


def titled(records: Sequence[Record]) -> str:
    """Return the latest title of the most specific kind, except summaries of other sessions in the same file."""
    known = {text_of(record, "uuid") for record in records}
    for kind in reversed(TITLES):
        for record in reversed(records):
            elsewhere = kind == "summary" and text_of(record, "leafUuid") not in {*known, ""}
            if record.get("type") == kind and (title := _title(record)) and not elsewhere:
                return title
    return ""


def _title(record: Record) -> str:
    return next((text for key in ("customTitle", "aiTitle", "summary", "title") if (text := text_of(record, key))), "")


def message_id(record: Record) -> str:
    return text_of(cast("Record", record["message"]), "id") if record.get("type") == "assistant" else ""


def _ids(record: Record, kind: str, key: str) -> set[str]:
    if "message" not in record:
        return set()
    return {text_of(block, key) for block in content_blocks(record) if block.get("type") == kind}


def seconds_of(record: Record) -> float:
    try:
        found = datetime.fromisoformat(text_of(record, "timestamp")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return found if 0 < found < _LATEST else 0.0


_TARGETS = ("file_path", "notebook_path", "path", "command", "pattern", "query", "url", "description", "prompt")
_COMMAND = regex(r"<command-name>([^<]*)</command-name>(?:.*?<command-args>(.*?)</command-args>)?", re.DOTALL)
_PRINTED = regex(r"\s*<(local-command-\w+|command-message|bash-\w+)>")
_REMINDER = regex(r"\s*<system-reminder>.*</system-reminder>\s*", re.DOTALL)
_REMINDER_IN_TEXT = regex(r"^[ \t]*<system-reminder>.*?</system-reminder>[ \t]*\n?", re.DOTALL | re.MULTILINE)
_NOT_THEIRS = ("tool_result", "tool_use", "thinking", "redacted_thinking")
_SYNTHETIC = "<synthetic>"
PLACE = "place"
"""Key in a skeleton for the place of its complete record."""
_STOPPED = "[Request interrupted by user"
_WORDS = 4
_STOPS = {"end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn"}


@dataclass(slots=True)
class Story:
    """A converted transcript. ``events`` can be iterated once; after that all counts are complete. ``skipped``: records
    that are not part of the conversation, by kind; ``abandoned``: records of branches that a rewind left."""

    events: Iterable[Event] = ()
    session: str = ""
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])
    abandoned: int = 0
    titled: bool = False


def recognised(records: Sequence[Record]) -> bool:
    return any(
        record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict) for record in records
    )


def stream_story(records: Sequence[Record], load: Callable[[int], Record]) -> Story:
    """Return the transcript's final conversation and those of its sub-agents. ``records``: skeletons;
    ``load`` returns the complete record at a skeleton's ``PLACE``."""
    story = Story()
    talk = unique(record for record in records if _is_talk(record, story))
    aside = [record for record in talk if record.get("isSidechain")]
    main = [record for record in talk if not record.get("isSidechain")]
    if not main:
        # This is the transcript of one sub-agent, so it is the main conversation here.
        main, aside = aside, []
    current = current_line(main, records)
    story.abandoned = len(main) - len(current)
    for record in [*current, *aside]:
        story.session = story.session or text_of(record, "sessionId")
        story.cwd = text_of(record, "cwd") or story.cwd
    timed = [seconds_of(record) for record in talk if seconds_of(record)]
    story.created = min(timed, default=0.0)
    models = [text_of(cast("Record", one["message"]), "model") for one in current if one.get("type") == "assistant"]
    story.model = next((name for name in reversed(models) if name and name != _SYNTHETIC), "")
    threads = [(MAIN, current), *threads_of(aside)]
    told = [_timed(_AgentEvents(agent, story, load).tell(thread)) for agent, thread in threads]
    # Merge by time: sub-agents run within the calls that started them. The order within each agent is kept.
    merged = (event for _, event in heapq.merge(*told, key=lambda pair: pair[0]))
    title = titled(records)
    story.titled = bool(title)
    story.events = chain(merged, [Titled(one_line(title), at=max(timed, default=0.0))] if title else [])
    return story


def _timed(events: Iterable[Event]) -> Iterator[tuple[float, Event]]:
    """Yield each event with the latest time so far."""
    latest = 0.0
    for event in events:
        latest = max(latest, event.at)
        yield latest, event


def _is_talk(record: Record, story: Story) -> bool:
    kind = text_of(record, "type") or "record without a type"
    if kind in {"user", "assistant"} and "message" in record:
        return True
    if kind == "system" and record.get("subtype") == "compact_boundary":
        return True
    if kind not in TITLES:
        story.skipped[kind if kind != "system" else f"system {record.get('subtype') or ''}".strip()] += 1
    return False


class _AgentEvents:
    """Converts one agent's records to events."""

    def __init__(self, agent: str, story: Story, load: Callable[[int], Record]) -> None:
        self._agent = agent
        self._story = story
        self._load = load
        self._open = False
        self._at = 0.0
        self._calls: dict[str, ToolUse] = {}
        self._notes: list[Message] = []
        """Notes that wait for the turn to start or for results: nothing may come between calls and their results."""

    def tell(self, records: Sequence[Record]) -> Iterator[Event]:
        answers: dict[str, list[Record]] = {}
        for record in records:
            if record.get("type") == "assistant":
                answers.setdefault(message_id(record) or f"#{id(record)}", []).append(record)
        said: set[str] = set()
        for record in records:
            self._at = seconds_of(record) or self._at
            if record.get("type") == "system":
                continue
            if record.get("type") == "user":
                yield from self._user(self._whole(record))
                continue
            key = message_id(record) or f"#{id(record)}"
            if key not in said:
                said.add(key)
                yield from self._assistant([self._whole(one) for one in answers[key]])
        if self._open:
            yield from self._ended("interrupted" if self._calls else "done")

    def _whole(self, record: Record) -> Record:
        return sound(self._load(record[PLACE]))

    def _user(self, record: Record) -> Iterator[Event]:
        blocks = content_blocks(record)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield from self._result(block, record)
        # Calls and reasoning are never part of a user's message.
        content = self._read(block for block in blocks if block.get("type") not in _NOT_THEIRS)
        if not content:
            return
        content = tuple([piece for block in content for piece in _parted(block)])
        reminders = [block for block in content if isinstance(block, Text) and _REMINDER.fullmatch(block.text)]
        if record.get("isMeta") or results or len(reminders) == len(content):
            yield from self._note(Message("user", content, origin="reminder", hidden=True, at=self._time()))
            return
        if reminders:
            self._notes.append(Message("user", tuple(reminders), origin="reminder", hidden=True, at=self._time()))
        content = tuple(block for block in content if block not in reminders)
        if record.get("isQueued"):
            yield from self._note(Message("user", content, origin="steer", at=self._time()))
            return
        yield from self._prompt(record, content)

    def _prompt(self, record: Record, content: tuple[Block, ...]) -> Iterator[Event]:
        words = "".join(block.text for block in content if isinstance(block, Text)).strip()
        command = _COMMAND.search(words)
        if record.get("isCompactSummary"):
            yield self._compressed(words)
        elif words.startswith(_STOPPED):
            yield from self._ended("cancelled")
        elif _PRINTED.match(words) and not command:
            yield self._notice(re.sub(r"<[^>]*>", "", words))
        else:
            notes, self._notes = self._notes, []
            yield from self._ended("done")
            if command:
                content = (Text(f"{command[1].strip()} {(command[2] or '').strip()}".strip() or words),)
            self._open = True
            self._notes = notes
            yield TurnStarted(Message("user", content, at=self._time()), agent=self._agent, at=self._at)
            yield from self._noted()

    def _read(self, raws: Iterable[Record]) -> tuple[Block, ...]:
        """Return the usable blocks; count damaged ones."""
        found: list[Block] = []
        for raw in raws:
            block = block_of(raw)
            if block is None:
                self._story.skipped[f"damaged {text_of(raw, 'type') or 'block'}"] += 1
            elif worth(block):
                found.append(block)
        return tuple(found)

    def _notice(self, words: str, *, failed: bool = False) -> Event:
        level = "error" if failed else "info"
        return Notice(one_line(words, 500), level, agent=self._agent, at=self._at)

    def _note(self, message: Message) -> Iterator[Event]:
        self._notes.append(message)
        if self._open and not self._calls:
            yield from self._noted()

    def _noted(self) -> Iterator[Event]:
        for note in self._notes:
            yield Steered(note, agent=self._agent, at=self._at)
        self._notes.clear()

    def _ended(self, reason: Any) -> Iterator[Event]:
        if self._open:
            yield from self._noted()
            yield TurnEnded(reason, agent=self._agent, at=self._at)
        self._open = False
        self._calls.clear()

    def _compressed(self, words: str) -> Event:
        summary = user(words, origin="compaction", hidden=True)
        return Compressed((summary,), "summarize", 0, len(words) // _WORDS, 0.0, agent=self._agent, at=self._at)

    def _assistant(self, records: Sequence[Record]) -> Iterator[Event]:
        said = [cast("Record", record["message"]) for record in records]
        blocks = self._once(self._read(block for record in records for block in content_blocks(record)))
        if any(text_of(message, "model") == _SYNTHETIC for message in said):
            # The program wrote this text instead of an answer, such as an error.
            words = "".join(block.text for block in blocks if isinstance(block, Text))
            yield self._notice(words, failed=any(record.get("isApiErrorMessage") for record in records))
            return
        model = next((name for message in said if (name := text_of(message, "model"))), "")
        if not blocks:
            return
        if not self._open:
            # The beginning of the conversation is missing; an answer needs a prompt before it.
            self._open = True
            yield TurnStarted(user("(The beginning is missing.)"), agent=self._agent, at=self._at)
        yield from self._noted()
        usage = next((found for message in reversed(said) if (found := usage_of(message.get("usage")))), None)
        stop = next((stop for message in reversed(said) if (stop := message.get("stop_reason")) in _STOPS), None)
        message = Message("assistant", blocks, usage, cast("Any", stop), model, "assistant", at=self._time())
        yield MessageDone(message, None, agent=self._agent, at=self._at)
        for call in message.calls:
            self._calls[call.id] = call
            yield ToolStarted(call, _target(call), agent=self._agent, at=self._at)

    def _once(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Return ``blocks`` without repeated calls: some versions save an answer several times while it arrives."""
        known, found = set(self._calls), list[Block]()
        for block in blocks:
            if isinstance(block, ToolUse):
                if block.id in known:
                    continue
                known.add(block.id)
            found.append(block)
        return tuple(found)

    def _result(self, block: Record, record: Record) -> Iterator[Event]:
        id = text_of(block, "tool_use_id")
        call = self._calls.pop(id, None)
        if call is None:
            self._story.skipped["tool_result without its call"] += 1
            return
        text, attachments = result_of(block.get("content"))
        failed = bool(block.get("is_error"))
        display = None if failed else display_of(call, record.get("toolUseResult"))
        lines = text.count("\n") + bool(text)
        summary = "failed" if failed else count(lines, "line")
        result = ToolResult(text, display, failed, summary, attachments)
        yield ToolFinished(id, result, agent=self._agent, at=self._at)
        if not self._calls:
            yield from self._noted()

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._at, UTC)


def _target(call: ToolUse) -> str:
    return next((one_line(value) for key in _TARGETS if isinstance(value := call.input.get(key), str) and value), "")


def _parted(block: Block) -> Iterator[Block]:
    """Yield ``block``; split a text with reminders of Claude Code into the user's text and each reminder."""
    found = _REMINDER_IN_TEXT.findall(block.text) if isinstance(block, Text) else []
    words = _REMINDER_IN_TEXT.sub("", block.text) if isinstance(block, Text) and found else ""
    yield from (Text(words),) if words.strip() else () if found else (block,)
    yield from map(Text, found)
