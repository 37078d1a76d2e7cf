"""A session as a document: Markdown for people, JSON for programs. Control characters and keys are taken out.

Pure: events in, text out. The file format of the session itself is in records.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, MessageDone, Notice, Steered, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, Usage
from ba_tui.core.results import Diff, Diffs
from ba_tui.core.session import SessionInfo
from ba_tui.core.transcript import Transcript
from ba_tui.core.untrusted import paintable
from ba_tui.sessions.flows import as_flow
from ba_tui.sessions.foreign import escaped, one_line, redacted, without_secrets
from ba_tui.sessions.migrations import SCHEMA_VERSION
from ba_tui.sessions.records import MAIN

Writer = Callable[[SessionInfo, Sequence[Event]], str]
_DIFF_LINES = 20_000
_ENDINGS = {
    "cancelled": "Stopped by the person.",
    "limit": "Stopped at a limit.",
    "error": "Ended with an error.",
    "interrupted": "Interrupted: ba was ended in the middle of this turn.",
}


def exporter(format: str, redact: Callable[[str], str] = str) -> Writer:
    """``redact`` is asked about what people and tools said, beside our own look for keys.

    Raises:
        UsageError: there is no such format.
    """
    writers: dict[str, Writer] = {"md": markdown, "json": as_json, "workflow": as_flow}
    if format not in writers:
        raise UsageError(f"There is no export format “{format}”.", "Use md, json or workflow.")
    write = writers[format]
    if format == "workflow":
        # Secrets become parameters of it: a mark in their place would be run.
        return write
    return lambda info, events: _redacted(write(info, events), format, redact)


def _redacted(text: str, format: str, redact: Callable[[str], str]) -> str:
    if format == "md" or redact is str:
        return redact(text)
    return escaped(json.dumps(_each(json.loads(text), redact), ensure_ascii=False, indent=2)) + "\n"


def _each(value: Any, redact: Callable[[str], str]) -> Any:
    """A JSON value with ``redact`` applied to every text in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _each(item, redact) for key, item in cast("dict[str, Any]", value).items()}
    return [_each(item, redact) for item in cast("list[Any]", value)] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Spent:
    """``cost`` in US dollars; None when nothing, or not everything, had a price."""

    usage: Usage
    cost: float | None


def spent(events: Iterable[Event]) -> Spent:
    """What the answers of all agents used, as billed."""
    usage, cost, complete = Usage(), None, True
    for event in events:
        if isinstance(event, MessageDone):
            usage += event.message.usage or Usage()
            complete = complete and (event.cost is not None or event.message.usage is None)
            cost = cost if event.cost is None else (cost or 0.0) + event.cost
    return Spent(usage, cost if complete else None)


def markdown(info: SessionInfo, events: Sequence[Event]) -> str:
    """Prompts as quotes, answers as they are, one line a tool call, changes of files as diffs."""
    lines = [f"# {one_line(redacted(info.title))}", "", _facts(info, spent(events)), ""]
    started: dict[str, ToolStarted] = {}
    for event in events:
        match event:
            case TurnStarted(prompt=message):
                lines += [f"## {_time(event.at)}", "", *_quote(message), ""]
            case Steered(message=message) if not message.hidden:
                lines += [*_quote(message), ""]
            case MessageDone(message=message, agent="main") if message.text.strip():
                lines += [_safe(message.text).strip(), ""]
            case ToolStarted(call=call):
                started[call.id] = event
            case ToolFinished(call_id=call_id):
                lines += [*_call(started.pop(call_id, None), event), ""]
            case Notice(text=text, level="warning" | "error"):
                lines += [f"*{one_line(_safe(text))}*", ""]
            case TurnEnded(reason=reason, error=error, agent="main") if reason in _ENDINGS:
                why = f" {one_line(_safe(error.message))}" if error else ""
                lines += [f"*{_ENDINGS[reason]}{why}*", ""]
            case _:
                pass
    return "\n".join(lines).rstrip() + "\n"


def as_json(info: SessionInfo, events: Sequence[Event]) -> str:
    """What the model saw, message by message, and the tool calls, turns, tokens and cost."""
    total = spent(events)
    document = {
        "schema_version": SCHEMA_VERSION,
        "session": {
            "id": info.id,
            "title": info.title,
            "cwd": str(info.cwd),
            "created": _iso(info.created),
            "updated": _iso(info.updated),
            "model": info.model,
        },
        "turns": _turns(events),
        "messages": [_message(message) for message in Transcript(events=events).messages],
        "tool_calls": _tool_calls(events),
        "usage": asdict(total.usage),
        "cost_usd": total.cost,
    }
    text = json.dumps(without_secrets(document), ensure_ascii=False, indent=2, default=str)
    return escaped(text) + "\n"


def _turns(events: Sequence[Event]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for event in events:
        match event:
            case TurnStarted(prompt=message, agent="main"):
                prompt = one_line(message.text)
                turns.append({"number": len(turns) + 1, "at": _iso(event.at), "prompt": prompt, "tool_calls": 0})
            case ToolStarted() if turns:
                turns[-1]["tool_calls"] += 1
            case TurnEnded(agent="main", reason=reason) if turns:
                turns[-1]["ended"] = reason
            case _:
                pass
    return turns


def _tool_calls(events: Sequence[Event]) -> list[dict[str, Any]]:
    finished = {event.call_id: event for event in events if isinstance(event, ToolFinished)}
    calls: list[dict[str, Any]] = []
    for event in events:
        if not isinstance(event, ToolStarted):
            continue
        end = finished.get(event.call.id)
        calls.append(
            {
                "id": event.call.id,
                "name": event.call.name,
                "agent": event.agent,
                "target": event.target,
                "input": event.call.input,
                "ok": end is not None and not end.result.is_error,
                "summary": end.result.summary if end else "interrupted",
                "duration_ms": round(end.duration * 1000) if end else None,
            }
        )
    return calls


def _message(message: Message) -> dict[str, Any]:
    record = asdict(message)
    record["content"] = record.pop("blocks")
    record["at"] = message.at.isoformat()
    return record


def _facts(info: SessionInfo, total: Spent) -> str:
    used = total.usage
    facts = [
        f"`{info.id}`",
        f"`{one_line(str(info.cwd))}`",
        _time(info.created),
        one_line(info.model),
        "1 turn" if info.turns == 1 else f"{info.turns} turns",
        f"{used.prompt} tokens in, {used.output} out" if used.prompt or used.output else "",
        "" if total.cost is None else f"${total.cost:.4f}",
    ]
    return " · ".join(fact for fact in facts if fact)


def _quote(message: Message) -> list[str]:
    others = [f"[{block.type}]" for block in message.blocks if not isinstance(block, Text)]
    text = _safe(message.text).strip()
    return [f"> {line}".rstrip() for line in [*text.split("\n"), *others]]


def _call(start: ToolStarted | None, end: ToolFinished) -> list[str]:
    result = end.result
    name = one_line(start.call.name) if start else "tool"
    target = f" {_code(one_line(_safe(start.target)))}" if start and start.target else ""
    agent = "" if end.agent == MAIN else f" ({one_line(end.agent)})"
    outcome = _safe(result.error.message if result.error else result.summary)
    line = f"- **{name}**{agent}{target}{': failed' if result.is_error else ''}"
    if outcome:
        line += f": {one_line(outcome)}"
    changes = result.display.items if isinstance(result.display, Diffs) else (result.display,)
    shown = [change for change in changes if isinstance(change, Diff)]
    if not shown or result.is_error:
        return [line]
    return [line, "", *_fenced([row for change in shown for row in _diff(change)], "diff")]


def _diff(change: Diff) -> list[str]:
    before, after = (change.before or "").split("\n"), change.after.split("\n")
    if len(before) + len(after) > _DIFF_LINES and change.before is not None:
        head = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))))
        return [f"(a large file; its first change is at line {head + 1})"]
    path = one_line(change.path)
    old = path if change.before is not None else "/dev/null"
    lines = difflib.unified_diff(before if change.before is not None else [], after, old, path, lineterm="")
    return _safe("\n".join(lines)).split("\n")


def _fenced(lines: Sequence[str], language: str) -> list[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [fence + language, *lines, fence]


def _code(text: str) -> str:
    """Inline code that may hold backticks itself."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _safe(text: str) -> str:
    return paintable(redacted(text))


def _time(at: float) -> str:
    return _iso(at).replace("T", " ").replace("+00:00", " UTC")


def _iso(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
