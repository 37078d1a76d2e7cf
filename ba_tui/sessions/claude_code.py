"""Claude Code's transcripts as events of ours: prompts, answers, calls, results, sub-agents, compactions.

Pure: records in, events out. What is done with them is the business of importing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
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
from ba_tui.core.results import Command, Diff, Display, ToolResult
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import MAIN, number

VENDOR = "anthropic"
_TARGETS = ("file_path", "notebook_path", "path", "command", "pattern", "query", "url", "description", "prompt")
_COMMAND = re.compile(r"<command-name>([^<]*)</command-name>(?:.*?<command-args>(.*?)</command-args>)?", re.DOTALL)
_PRINTED = re.compile(r"\s*<(local-command-\w+|command-message|bash-\w+)>")
_STOPPED = "[Request interrupted by user"
_WORDS = 4
_STOPS = {"end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn"}


@dataclass(slots=True)
class Story:
    """What a transcript came to. ``skipped`` counts records of kinds that are no part of a conversation, by kind;
    ``abandoned`` those of branches that were gone back from."""

    events: list[Event] = field(default_factory=list[Event])
    session: str = ""
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])
    abandoned: int = 0


def recognised(records: Sequence[Record]) -> bool:
    return any(
        record.get("type") in {"user", "assistant"} and isinstance(record.get("message"), dict) for record in records
    )


def told(records: Sequence[Record]) -> Story:
    """The conversation that the transcript ends with, and those of its sub-agents."""
    story = Story()
    titles = [record for record in records if record.get("type") in {"summary", "custom-title", "ai-title"}]
    talk = _unique(record for record in records if _is_talk(record, story))
    aside = [record for record in talk if record.get("isSidechain")]
    main = [record for record in talk if not record.get("isSidechain")]
    if not main:
        # The transcript of one sub-agent: here it is the conversation.
        main, aside = aside, []
    current = _current(main, records)
    story.abandoned = len(main) - len(current)
    for record in [*current, *aside]:
        story.session = story.session or _text(record, "sessionId")
        story.cwd = _text(record, "cwd") or story.cwd
    timed = [_at(record) for record in talk if _at(record)]
    story.created = min(timed, default=0.0)
    threads = [(MAIN, current), *_threads(aside)]
    told = [list(_Telling(agent, story).tell(thread)) for agent, thread in threads]
    # Sub-agents speak while the call runs that started them; the order of what each says stays as it is.
    keyed = [pair for events in told for pair in zip(accumulate((one.at for one in events), max), events, strict=True)]
    story.events = [event for _, event in sorted(keyed, key=lambda pair: pair[0])]
    if title := next((_title(record) for record in reversed(titles) if _title(record)), ""):
        story.events.append(Titled(one_line(title), at=max(timed, default=0.0)))
    return story


def _is_talk(record: Record, story: Story) -> bool:
    kind = str(record.get("type"))
    if kind in {"user", "assistant"} and isinstance(record.get("message"), dict):
        return True
    if kind == "system" and record.get("subtype") == "compact_boundary":
        return True
    if kind not in {"summary", "custom-title", "ai-title"}:
        story.skipped[kind if kind != "system" else f"system {record.get('subtype') or ''}".strip()] += 1
    return False


def _unique(records: Iterable[Record]) -> list[Record]:
    """A resumed session repeats what was said before, under the same ids."""
    found: dict[str, Record] = {}
    for index, record in enumerate(records):
        found.setdefault(_text(record, "uuid") or f"#{index}", record)
    return list(found.values())


def _current(talk: Sequence[Record], records: Sequence[Record]) -> list[Record]:
    """Without the branches that were gone back from: what the newest entry goes back to, and what belongs to it."""
    every = {_text(record, "uuid"): record for record in records if record.get("uuid")}
    if not talk or not all(record.get("uuid") for record in talk):
        return list(talk)
    line: set[str] = set()
    at: str = _text(talk[-1], "uuid")
    while at and at not in line and at in every:
        line.add(at)
        at = _text(every[at], "parentUuid") or _text(every[at], "logicalParentUuid")
    answers = {_message_id(record) for record in talk if record["uuid"] in line} - {""}
    kept = [record for record in talk if record["uuid"] in line or _message_id(record) in answers]
    calls = {call for record in kept for call in _ids(record, "tool_use", "id")}
    first = next(index for index, record in enumerate(talk) if record["uuid"] in line)
    # Where the line breaks off because an entry is missing, all before it is kept.
    lost = {_text(record, "uuid") for record in talk[:first]} if at else set[str]()
    keep = {record["uuid"] for record in kept} | lost
    return [record for record in talk if record["uuid"] in keep or calls & _ids(record, "tool_result", "tool_use_id")]


def _threads(aside: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The sub-agents' own conversations, by whom they go back to."""
    roots: dict[str, int] = {}
    threads: dict[int, list[Record]] = {}
    for record in aside:
        parent = _text(record, "agentId") or _text(record, "parentUuid")
        place = roots.setdefault(parent, len(threads)) if record.get("agentId") else roots.get(parent, len(threads))
        roots[_text(record, "uuid")] = place
        threads.setdefault(place, []).append(record)
    return [(f"{MAIN}/task-{place + 1}", thread) for place, thread in threads.items()]


class _Telling:
    """One agent's records as events, turn by turn."""

    def __init__(self, agent: str, story: Story) -> None:
        self._agent = agent
        self._story = story
        self._open = False
        self._at = 0.0
        self._calls: dict[str, ToolUse] = {}
        self._notes: list[Message] = []

    def tell(self, records: Sequence[Record]) -> Iterator[Event]:
        parts: dict[str, list[Record]] = {}
        for record in records:
            if record.get("type") == "assistant":
                parts.setdefault(_message_id(record) or f"#{id(record)}", []).append(record)
        said: set[str] = set()
        for record in records:
            self._at = _at(record) or self._at
            if record.get("type") == "system":
                continue
            if record.get("type") == "user":
                yield from self._user(record)
                continue
            key = _message_id(record) or f"#{id(record)}"
            if key not in said:
                said.add(key)
                yield from self._assistant(parts[key])
        if self._open:
            yield TurnEnded("interrupted" if self._calls else "done", agent=self._agent, at=self._at)

    def _user(self, record: Record) -> Iterator[Event]:
        blocks = _blocks(record)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield from self._result(block, record)
        others = (_block(block) for block in blocks if block.get("type") != "tool_result")
        content = tuple(block for block in others if _worth(block))
        words = "".join(block.text for block in content if isinstance(block, Text)).strip()
        if not content:
            return
        if record.get("isCompactSummary"):
            yield self._compressed(words)
        elif words.startswith(_STOPPED):
            yield from self._ended("cancelled")
        elif record.get("isMeta") or results:
            yield from self._note(Message("user", content, origin="reminder", hidden=True, at=self._time()))
        elif _PRINTED.match(words):
            yield Notice(one_line(re.sub(r"<[^>]*>", "", words), 500), agent=self._agent, at=self._at)
        else:
            yield from self._ended("done")
            if command := _COMMAND.search(words):
                content = (Text(f"{command[1].strip()} {(command[2] or '').strip()}".strip() or words),)
            self._open = True
            yield TurnStarted(Message("user", content, at=self._time()), agent=self._agent, at=self._at)
            for note in self._notes:
                yield Steered(note, agent=self._agent, at=self._at)
            self._notes.clear()

    def _note(self, message: Message) -> Iterator[Event]:
        if self._open:
            yield Steered(message, agent=self._agent, at=self._at)
        else:
            self._notes.append(message)

    def _ended(self, reason: Any) -> Iterator[Event]:
        if self._open:
            yield TurnEnded(reason, agent=self._agent, at=self._at)
        self._open = False
        self._calls.clear()

    def _compressed(self, words: str) -> Event:
        summary = user(words, origin="compaction", hidden=True)
        return Compressed((summary,), "summarize", 0, len(words) // _WORDS, 0.0, agent=self._agent, at=self._at)

    def _assistant(self, records: Sequence[Record]) -> Iterator[Event]:
        said = [cast("Record", record["message"]) for record in records]
        blocks = tuple(block for record in records for block in map(_block, _blocks(record)) if _worth(block))
        model = next((name for message in said if (name := _text(message, "model")) and name[0] != "<"), "")
        self._story.model = model or self._story.model
        if not blocks:
            return
        if not self._open:
            # The beginning of the conversation is missing; an answer needs something that it answers.
            self._open = True
            yield TurnStarted(user("(The beginning is missing.)"), agent=self._agent, at=self._at)
        usage = next((found for message in reversed(said) if (found := _usage(message.get("usage")))), None)
        stop = next((stop for message in reversed(said) if (stop := message.get("stop_reason")) in _STOPS), None)
        message = Message("assistant", blocks, usage, cast("Any", stop), model, "assistant", at=self._time())
        yield MessageDone(message, None, agent=self._agent, at=self._at)
        for call in message.calls:
            self._calls[call.id] = call
            yield ToolStarted(call, _target(call), agent=self._agent, at=self._at)

    def _result(self, block: Record, record: Record) -> Iterator[Event]:
        id = _text(block, "tool_use_id")
        call = self._calls.pop(id, None)
        if call is None:
            self._story.skipped["tool_result without its call"] += 1
            return
        texts, attachments = _content(block.get("content"))
        text = "\n".join(texts)
        failed = bool(block.get("is_error"))
        display = None if failed else _display(call, record.get("toolUseResult"))
        lines = text.count("\n") + bool(text)
        summary = "failed" if failed else f"{lines} line{'s' if lines != 1 else ''}"
        result = ToolResult(text, display, failed, summary, attachments)
        yield ToolFinished(id, result, agent=self._agent, at=self._at)

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._at, UTC)


def _blocks(record: Record) -> list[Record]:
    content = cast("Record", record["message"]).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [cast("Record", block) for block in cast("list[Any]", content or []) if isinstance(block, dict)]


def _block(block: Record) -> Block:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "thinking", "thinking": str(thinking)}:
            return Thinking(thinking, _text(block, "signature") or None)
        case {"type": "redacted_thinking", "data": str(data)}:
            return RedactedThinking(data)
        case {"type": "tool_use", "id": str(id), "name": str(name), "input": given} if isinstance(given, dict):
            return ToolUse(id, name, cast("dict[str, Any]", given))
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Image(kind, data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return Image("", url=url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Document(kind, data, _text(block, "title"))
        case _:
            return Opaque(dict(block), VENDOR)


def _worth(block: Block) -> bool:
    """False for what no request may hold: empty words, thinking that nobody signed."""
    return not (
        (isinstance(block, Text) and not block.text.strip()) or (isinstance(block, Thinking) and not block.signature)
    )


def _content(content: Any) -> tuple[list[str], tuple[Image | Document, ...]]:
    if isinstance(content, str):
        return [content], ()
    items = [_block(cast("Record", item)) for item in cast("list[Any]", content or []) if isinstance(item, dict)]
    texts = [item.text for item in items if isinstance(item, Text)]
    return texts, tuple(item for item in items if isinstance(item, Image | Document))


def _display(call: ToolUse, result: Any) -> Display | None:
    match result:
        case {"filePath": str(path), "originalFile": str(before), "oldString": str(old), "newString": str(new)}:
            times = -1 if result.get("replaceAll") else 1
            return Diff(path, before, before.replace(old, new, times)) if old else Diff(path, before, new)
        case {"filePath": str(path), "content": str(after), "type": "create"}:
            return Diff(path, None, after)
        case {"stdout": str(output), "stderr": str(errors)}:
            return Command(str(call.input.get("command") or ""), output="\n".join(filter(None, (output, errors))))
        case _:
            return None


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(*(int(number(cast("Record", usage).get(name))) for name in names))


def _target(call: ToolUse) -> str:
    return next((one_line(value) for key in _TARGETS if isinstance(value := call.input.get(key), str) and value), "")


def _title(record: Record) -> str:
    return next((text for key in ("customTitle", "aiTitle", "summary", "title") if (text := _text(record, key))), "")


def _message_id(record: Record) -> str:
    return _text(cast("Record", record["message"]), "id") if record.get("type") == "assistant" else ""


def _ids(record: Record, kind: str, key: str) -> set[str]:
    if not isinstance(record.get("message"), dict):
        return set()
    return {_text(block, key) for block in _blocks(record) if block.get("type") == kind}


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _at(record: Record) -> float:
    try:
        return datetime.fromisoformat(_text(record, "timestamp")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
