"""Converts Codex's rollout files to events: prompts, answers, calls, results and compactions.

Reads files of Codex 0.20 to 0.169, and of the first versions, whose lines are items without an envelope.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Block, Image, Message, Text, ToolUse, Usage, user
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import Record, mapping_of, number, objects_of, text_of

VENDOR = "openai"
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_ITEMS = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})
_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_TOLD = regex(
    r"\s*(?:<(environment_context|user_instructions|permissions|skills_instructions|turn_aborted|INSTRUCTIONS)"
    r"|# AGENTS\.md instructions)"
)
"""Matches the beginning of messages in the role ``user`` that Codex wrote."""
_EXIT = regex(r"(?:Process exited with code|Exit code:) (-?\d+)")
_OUTPUT = regex(r"\A.*?^Output:\n", re.DOTALL | re.MULTILINE)
_PICTURE = regex(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)
_TARGETS = ("cmd", "command", "path", "query", "url", "pattern", "input")


def recognised(records: Sequence[Record]) -> bool:
    """Return whether the first ``records`` of a file are those of a rollout."""
    enveloped = any(
        text_of(record, "type") in _ENVELOPES and isinstance(record.get("payload"), dict) for record in records
    )
    return enveloped or any(text_of(record, "type") in _CALLS and record.get("call_id") for record in records)


@dataclass(slots=True)
class Rollout:
    """A converted file; complete after ``events`` was iterated. ``skipped``: records that are not part of the
    conversation, by kind."""

    session: str = ""
    cwd: str = ""
    model: str = ""
    created: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter[str])
    _at: float = 0.0
    _open: bool = False
    _marked: bool = False
    """Whether the file marks the ends of turns."""
    _blocks: list[Block] = field(default_factory=list[Block])
    _calls: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    _answer: MessageDone | None = None
    _held: list[Event] = field(default_factory=list[Event])
    """The newest answer and later events, until its usage is known."""

    def read_head(self, records: Iterable[Record]) -> None:
        """Read id, folder and model of the session from the first records."""
        for record in records:
            payload = mapping_of(record.get("payload")) or record
            self.created = self.created or _seconds(record.get("timestamp"))
            if text_of(record, "type") in {"session_meta", ""}:
                self.session = self.session or text_of(payload, "id")
            if text_of(record, "type") in {"session_meta", "turn_context"}:
                self.cwd = self.cwd or text_of(payload, "cwd")
                self.model = self.model or text_of(payload, "model")

    def events(self, records: Iterable[Record]) -> Iterator[Event]:
        for record in records:
            self._at = _seconds(record.get("timestamp")) or self._at
            yield from self._record(record)
        yield from self._ended("interrupted" if self._calls else "done")
        yield from self._release()

    def _record(self, record: Record) -> Iterator[Event]:
        kind, payload = text_of(record, "type"), mapping_of(record.get("payload")) or record
        match kind:
            case "turn_context":
                self.model = text_of(payload, "model") or self.model
            case "response_item":
                yield from self._item(payload)
            case "event_msg":
                yield from self._happened(payload)
            case "compacted":
                yield from self._compacted(payload)
            case _ if kind in _ITEMS:
                yield from self._item(record)
            case "session_meta" | "":
                pass
            case _:
                self.skipped[kind] += 1

    def _item(self, item: Record) -> Iterator[Event]:
        kind = text_of(item, "type")
        if kind == "message" and item.get("role") == "assistant":
            self._blocks += [
                Text(text) for part in _parts(item.get("content")) if (text := text_of(part, "text").strip())
            ]
        elif kind == "message" and item.get("role") == "user":
            yield from self._prompt(_parts(item.get("content")))
        elif kind in _CALLS:
            self._blocks.append(_call(item))
        elif kind in _OUTPUTS:
            yield from self._said()
            yield from self._result(item)
        else:
            self.skipped[
                f"message of the {text_of(item, 'role') or 'system'}" if kind == "message" else kind or "item"
            ] += 1

    def _prompt(self, parts: Sequence[Record]) -> Iterator[Event]:
        words = "\n".join(text for part in parts if (text := text_of(part, "text")))
        if _TOLD.match(words):
            self.skipped["note of the program"] += 1
            return
        blocks = (*([Text(words)] if words.strip() else ()), *_pictures(parts))
        if not blocks:
            return
        yield from self._said()
        if self._open and self._marked and not self._calls:
            yield from self._hold(Steered(Message("user", blocks, origin="steer", at=self._time()), at=self._at))
            return
        yield from self._ended("interrupted" if self._calls else "done")
        self._open = True
        yield from self._hold(TurnStarted(Message("user", blocks, at=self._time()), at=self._at))

    def _happened(self, event: Record) -> Iterator[Event]:
        match text_of(event, "type"):
            case "task_started":
                self._marked = True
            case "task_complete":
                yield from self._ended("done")
            case "turn_aborted":
                yield from self._ended("cancelled")
            case "token_count":
                yield from self._count(mapping_of(mapping_of(event.get("info")).get("last_token_usage")))
            case "error" | "stream_error":
                text = one_line(text_of(event, "message") or "The request failed.", 500)
                yield from self._hold(Notice(text, "error", at=self._at))
            case _:
                # Other events repeat the items for display.
                pass

    def _compacted(self, payload: Record) -> Iterator[Event]:
        yield from self._said()
        words = text_of(payload, "message") or "The conversation so far was summarized."
        summary = user(words, origin="compaction", hidden=True)
        yield from self._hold(Compressed((summary,), "summarize", 0, len(words) // 4, 0.0, at=self._at))

    def _said(self) -> Iterator[Event]:
        """Yield the answer collected so far, with its calls."""
        if not self._blocks:
            return
        blocks, self._blocks = tuple(self._blocks), []
        if not self._open:
            self._open = True
            yield from self._hold(TurnStarted(user("(The beginning is missing.)"), at=self._at))
        yield from self._release()
        calls = [block for block in blocks if isinstance(block, ToolUse)]
        stop = "tool_use" if calls else "end_turn"
        message = Message("assistant", blocks, None, stop, self.model, "assistant", at=self._time())
        self._answer = MessageDone(message, None, at=self._at)
        self._held.append(self._answer)
        for call in calls:
            self._calls[call.id] = call
            self._held.append(ToolStarted(call, _target(call), at=self._at))

    def _result(self, item: Record) -> Iterator[Event]:
        call = self._calls.pop(text_of(item, "call_id"), None)
        if call is None:
            self.skipped["result without its call"] += 1
            return
        text, failed = _output(item.get("output"))
        command = _command(call)
        display = CommandText(command, output=text) if command else None
        lines = text.count("\n") + bool(text)
        result = ToolResult(text, display, failed, "failed" if failed else count(lines, "line"))
        yield from self._hold(ToolFinished(call.id, result, at=self._at))

    def _count(self, usage: Mapping[str, Any]) -> Iterator[Event]:
        """Finish the newest answer and note its usage."""
        yield from self._said()
        if not usage or self._answer is None:
            return
        whole, cached, output = (
            int(number(usage.get(key))) for key in ("input_tokens", "cached_input_tokens", "output_tokens")
        )
        counted = Usage(max(0, whole - cached), output, cached, 0)
        answer = replace(self._answer, message=replace(self._answer.message, usage=counted))
        self._held = [answer if event is self._answer else event for event in self._held]
        self._answer = None
        yield from self._release()

    def _ended(self, reason: Any) -> Iterator[Event]:
        yield from self._said()
        if self._open:
            yield from self._hold(TurnEnded(reason, at=self._at))
        self._open = False
        self._calls.clear()

    def _hold(self, event: Event) -> Iterator[Event]:
        if self._answer is None:
            yield event
        else:
            self._held.append(event)

    def _release(self) -> Iterator[Event]:
        yield from self._held
        self._held, self._answer = [], None

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._at, UTC)


def _call(item: Record) -> ToolUse:
    kind = text_of(item, "type")
    id = text_of(item, "call_id") or text_of(item, "id") or "call"
    given: Any = item.get(_CALLS[kind])
    if kind == "local_shell_call":
        return ToolUse(id, "shell", dict(mapping_of(given)))
    name = text_of(item, "name") or "tool"
    if kind == "custom_tool_call":
        return ToolUse(id, name, {"input": str(given or "")})
    try:
        args: Any = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return ToolUse(id, name, {}, str(given))
    return (
        ToolUse(id, name, cast("dict[str, Any]", args)) if isinstance(args, dict) else ToolUse(id, name, {}, str(given))
    )


def _output(output: Any) -> tuple[str, bool]:
    """Return the text of a result and whether it failed. Some versions wrap it in JSON with the exit code."""
    value: Any = output
    if isinstance(output, str) and output.startswith('{"'):
        try:
            value = json.loads(output)
        except (ValueError, RecursionError):
            value = output
    if isinstance(value, list):
        return "\n".join(text_of(part, "text") for part in _parts(value)), False
    if isinstance(value, dict) and ("output" in value or "content" in value):
        told = cast("Record", value)
        code = number(mapping_of(told.get("metadata")).get("exit_code"))
        failed = bool(code) or told.get("success") is False
        return str(told.get("output") if "output" in told else told.get("content")), failed
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    exit_code = _EXIT.search(text[:500])
    return _OUTPUT.sub("", text, 1) if exit_code else text, bool(exit_code and exit_code[1] != "0")


def _command(call: ToolUse) -> str:
    value = call.input.get("cmd") or call.input.get("command")
    if isinstance(value, list):
        words = [str(word) for word in cast("list[Any]", value)]
        return words[-1] if len(words) > 2 and words[1] in {"-c", "-lc"} else " ".join(words)
    return value if isinstance(value, str) else ""


def _target(call: ToolUse) -> str:
    if command := _command(call):
        return one_line(command)
    return next((one_line(value) for key in _TARGETS if isinstance(value := call.input.get(key), str) and value), "")


def _pictures(parts: Sequence[Record]) -> list[Image]:
    found = [_PICTURE.fullmatch(text_of(part, "image_url")) for part in parts if text_of(part, "type") == "input_image"]
    return [Image(match[1], match[2]) for match in found if match]


def _parts(content: Any) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return objects_of(content)


def _seconds(value: Any) -> float:
    try:
        return max(0.0, datetime.fromisoformat(value).timestamp()) if isinstance(value, str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
