"""Converts the output of ``opencode export`` to events: one JSON value with the session and its messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.events import Event, MessageDone, Titled, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Block, Image, Message, Text, ToolUse, Usage, user
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import Record, mapping_of, number, objects_of, text_of

_TARGETS = ("filePath", "path", "command", "pattern", "query", "url", "description")
_PICTURE = regex(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)
_LATEST = 4e12
"""Latest plausible time, in milliseconds since the epoch."""


@dataclass(slots=True)
class OpenCodeSession:
    """A converted session. ``skipped``: parts that are not part of the conversation, by kind."""

    events: Sequence[Event] = ()
    session: str = ""
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])


def recognised(records: Sequence[Record]) -> bool:
    return (
        len(records) == 1 and isinstance(records[0].get("info"), dict) and isinstance(records[0].get("messages"), list)
    )


def read_export(record: Record) -> OpenCodeSession:
    info = mapping_of(record.get("info"))
    told = OpenCodeSession(session=text_of(info, "id"), cwd=text_of(info, "directory"))
    told.created = _time(mapping_of(info.get("time")).get("created"))
    told.events = tuple(_SessionEvents(told).tell(objects_of(record.get("messages"))))
    if title := text_of(info, "title"):
        told.events = (*told.events, Titled(one_line(title), at=max((event.at for event in told.events), default=0.0)))
    return told


class _SessionEvents:
    def __init__(self, told: OpenCodeSession) -> None:
        self._told = told
        self._open = False
        self._at = told.created

    def tell(self, messages: Sequence[Record]) -> Iterator[Event]:
        for message in messages:
            info, parts = mapping_of(message.get("info")), objects_of(message.get("parts"))
            self._at = _time(mapping_of(info.get("time")).get("created")) or self._at
            if info.get("role") == "user":
                yield from self._prompt(parts)
            elif info.get("role") == "assistant":
                yield from self._answer(info, parts)
        yield from self._ended()

    def _prompt(self, parts: Sequence[Record]) -> Iterator[Event]:
        said = [part for part in parts if part.get("synthetic") is not True]
        self._told.skipped.update({"note of the program": 1} if len(said) < len(parts) else {})
        texts = [text for part in said if part.get("type") == "text" and (text := text_of(part, "text")).strip()]
        blocks = (*map(Text, texts), *_pictures(said))
        if blocks:
            yield from self._ended()
            self._open = True
            yield TurnStarted(Message("user", blocks, at=self._when()), at=self._at)

    def _answer(self, info: Record, parts: Sequence[Record]) -> Iterator[Event]:
        """Yield an answer and its calls, each followed by its result."""
        vendor, name = text_of(info, "providerID"), text_of(info, "modelID")
        self._told.model = "/".join(filter(None, (vendor, name))) or self._told.model
        blocks: list[Block] = []
        results: list[tuple[ToolUse, Record]] = []
        for part in parts:
            match text_of(part, "type"):
                case "text" if (text := text_of(part, "text")).strip():
                    if results:
                        # Text after a call belongs to the next answer.
                        yield from self._said(blocks, results, name, None)
                        blocks, results = [], []
                    blocks.append(Text(text))
                case "tool":
                    call = ToolUse(text_of(part, "callID") or text_of(part, "id"), text_of(part, "tool"), _input(part))
                    blocks.append(call)
                    results.append((call, mapping_of(part.get("state"))))
                case "step-start" | "step-finish" | "snapshot" | "text":
                    pass
                case kind:
                    self._told.skipped[kind or "part"] += 1
        yield from self._said(blocks, results, name, _usage(mapping_of(info.get("tokens"))))

    def _said(
        self, blocks: Sequence[Block], results: Sequence[tuple[ToolUse, Record]], model: str, usage: Usage | None
    ) -> Iterator[Event]:
        if not blocks:
            return
        if not self._open:
            self._open = True
            yield TurnStarted(user("(The beginning is missing.)"), at=self._at)
        stop = "tool_use" if results else "end_turn"
        message = Message("assistant", tuple(blocks), usage, stop, model, "assistant", at=self._when())
        yield MessageDone(message, None, at=self._at)
        for call, _ in results:
            yield ToolStarted(call, _target(call), at=self._at)
        for call, state in results:
            yield ToolFinished(call.id, _result(call, state), at=self._at)

    def _ended(self) -> Iterator[Event]:
        if self._open:
            yield TurnEnded("done", at=self._at)
        self._open = False

    def _when(self) -> datetime:
        return datetime.fromtimestamp(self._at, UTC)


def _result(call: ToolUse, state: Record) -> ToolResult:
    failed = state.get("status") != "completed"
    text = text_of(state, "error") if failed else text_of(state, "output")
    command = text_of(call.input, "command")
    display = CommandText(command, output=text) if command and not failed else None
    summary = "failed" if failed else text_of(state, "title") or count(len(text.splitlines()), "line")
    return ToolResult(text or ("It did not finish." if failed else ""), display, failed, one_line(summary, 60))


def _input(part: Record) -> Record:
    return mapping_of(mapping_of(part.get("state")).get("input"))


def _usage(tokens: Record) -> Usage | None:
    if not tokens:
        return None
    cache = mapping_of(tokens.get("cache"))
    counts = (tokens.get("input"), tokens.get("output"), cache.get("read"), cache.get("write"))
    return Usage(*(max(0, int(number(each))) for each in counts))


def _target(call: ToolUse) -> str:
    return next((one_line(value) for key in _TARGETS if (value := text_of(call.input, key))), "")


def _pictures(parts: Sequence[Record]) -> list[Image]:
    found = [_PICTURE.fullmatch(text_of(part, "url")) for part in parts if part.get("type") == "file"]
    return [Image(match[1], match[2]) for match in found if match]


def _time(value: Any) -> float:
    milliseconds = number(value)
    return milliseconds / 1000 if 0 < milliseconds < _LATEST else 0.0
