"""Claude Code's transcripts as events of ours: prompts, answers, calls, results, sub-agents, compactions.

Pure: records in, events out. The shape of the conversation is found from the skeletons of the records; each is loaded
whole only while it is told. What is done with the events is the business of importing.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from ba_tui.core.messages import Block, Message, Text, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.imports.claude_code_blocks import (
    VENDOR,
    block_of,
    content_blocks,
    display_of,
    result_of,
    sound,
    usage_of,
    worth,
)
from ba_tui.sessions.imports.claude_code_shape import (
    TITLES,
    current_line,
    message_id,
    seconds_of,
    skeleton,
    threads_of,
    titled,
    unique,
)
from ba_tui.sessions.imports.values import text_of
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import MAIN

__all__ = ["PLACE", "VENDOR", "Story", "read_story", "recognised", "skeleton", "stream_story"]
_TARGETS = ("file_path", "notebook_path", "path", "command", "pattern", "query", "url", "description", "prompt")
_COMMAND = regex(r"<command-name>([^<]*)</command-name>(?:.*?<command-args>(.*?)</command-args>)?", re.DOTALL)
_PRINTED = regex(r"\s*<(local-command-\w+|command-message|bash-\w+)>")
_REMINDER = regex(r"\s*<system-reminder>.*</system-reminder>\s*", re.DOTALL)
_REMINDER_IN_TEXT = regex(r"^[ \t]*<system-reminder>.*?</system-reminder>[ \t]*\n?", re.DOTALL | re.MULTILINE)
_NOT_THEIRS = ("tool_result", "tool_use", "thinking", "redacted_thinking")
_SYNTHETIC = "<synthetic>"
PLACE = "place"
"""Where a skeleton's whole record is."""
_STOPPED = "[Request interrupted by user"
_WORDS = 4
_STOPS = {"end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn"}


@dataclass(slots=True)
class Story:
    """What a transcript came to. ``events`` can be read once; then all counts are complete. ``skipped`` counts records
    of kinds that are no part of a conversation, by kind; ``abandoned`` those of branches that were gone back from."""

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


def read_story(records: Sequence[Record]) -> Story:
    """The conversation that the transcript ends with, and those of its sub-agents."""
    story = stream_story(
        [{**skeleton(record), PLACE: place} for place, record in enumerate(records)], records.__getitem__
    )
    story.events = list(story.events)
    return story


def stream_story(records: Sequence[Record], load: Callable[[int], Record]) -> Story:
    """The same from skeletons, each with its ``PLACE``, from which ``load`` gives the whole record."""
    story = Story()
    talk = unique(record for record in records if _is_talk(record, story))
    aside = [record for record in talk if record.get("isSidechain")]
    main = [record for record in talk if not record.get("isSidechain")]
    if not main:
        # The transcript of one sub-agent: here it is the conversation.
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
    told = [_timed(_Telling(agent, story, load).tell(thread)) for agent, thread in threads]
    # Sub-agents speak while the call runs that started them; the order of what each says stays as it is.
    merged = (event for _, event in heapq.merge(*told, key=lambda pair: pair[0]))
    title = titled(records)
    story.titled = bool(title)
    story.events = chain(merged, [Titled(one_line(title), at=max(timed, default=0.0))] if title else [])
    return story


def _timed(events: Iterable[Event]) -> Iterator[tuple[float, Event]]:
    """Each event with the latest time so far."""
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


class _Telling:
    """One agent's records as events, turn by turn."""

    def __init__(self, agent: str, story: Story, load: Callable[[int], Record]) -> None:
        self._agent = agent
        self._story = story
        self._load = load
        self._open = False
        self._at = 0.0
        self._calls: dict[str, ToolUse] = {}
        self._notes: list[Message] = []
        """What waits for the turn to begin, or for its calls to be answered: nothing may stand between the two."""

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
        # Calls and reasoning are never the person's.
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
        """The blocks that can be kept; those that are damaged are counted."""
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
            # Words of the program in the place of an answer: that none came, or why.
            words = "".join(block.text for block in blocks if isinstance(block, Text))
            yield self._notice(words, failed=any(record.get("isApiErrorMessage") for record in records))
            return
        model = next((name for message in said if (name := text_of(message, "model"))), "")
        if not blocks:
            return
        if not self._open:
            # The beginning of the conversation is missing; an answer needs something that it answers.
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
        """Some versions write an answer down several times while it grows: each call stands in it once."""
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
    """``block``; of a text with reminders of that program in it, the person's words and each reminder apart."""
    found = _REMINDER_IN_TEXT.findall(block.text) if isinstance(block, Text) else []
    words = _REMINDER_IN_TEXT.sub("", block.text) if isinstance(block, Text) and found else ""
    yield from (Text(words),) if words.strip() else () if found else (block,)
    yield from map(Text, found)
