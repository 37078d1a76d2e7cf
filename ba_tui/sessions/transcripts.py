"""A session as a file to give away: the formats by name, and JSON for programs. Secrets are taken out.

Pure: events in, text out. The format of the session's own file is in records; pages for people in markdown and html.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Compressed, Event, Rewound, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.events import event_to_json as line_of
from ba_tui.core.messages import Message
from ba_tui.core.session import SessionInfo
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.document import iso, spent
from ba_tui.sessions.flows import as_flow
from ba_tui.sessions.foreign import escaped, one_line, redacted, without_secrets
from ba_tui.sessions.migrations import SCHEMA_VERSION
from ba_tui.sessions.records import Header
from ba_tui.sessions.standing import standing

Writer = Callable[[SessionInfo, Sequence[Event]], str]
Hide = Callable[[str], str]
FORMATS = ("md", "html", "json", "jsonl", "workflow")


def exporter(format: str, redact: Hide = str, *, with_secrets: bool = False) -> Writer:
    """``redact`` is asked about what people and tools said, beside our own look for keys. ``with_secrets``: neither is.

    Raises:
        UsageError: there is no such format, or it never holds secrets.
    """
    if format not in FORMATS:
        names = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise UsageError(f"There is no export format “{format}”.", f"Use {names}.")
    if format == "workflow":
        # Secrets become parameters of it: a mark in their place would be run.
        if with_secrets:
            raise UsageError("A workflow never holds secrets: they become its parameters.", "Leave --with-secrets out.")
        return as_flow
    hide: Hide = str if with_secrets else lambda text: redact(redacted(text))
    if format == "md":
        from ba_tui.sessions.markdown import Markdown  # noqa: PLC0415 - one format of several

        return Markdown(hide).write
    if format == "html":
        from ba_tui.sessions.html import Page  # noqa: PLC0415 - loads a Markdown parser

        return Page(hide).write
    write = as_json if format == "json" else as_lines
    return lambda info, events: write(info, events, hide)


def as_json(info: SessionInfo, events: Sequence[Event], hide: Hide) -> str:
    """What was said, message by message, and the tool calls, turns, tokens and cost. All that stands is there, also
    what a compression left out of later requests; what was taken back counts in tokens and cost alone."""
    total = spent(events)
    kept = [event for event in standing(events) if not isinstance(event, Compressed | Rewound)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "session": {
            "id": info.id,
            "title": info.title,
            "cwd": str(info.cwd),
            "created": iso(info.created),
            "updated": iso(info.updated),
            "model": info.model,
        },
        "turns": _turns(kept),
        "messages": [_message(message) for message in Transcript(events=kept).messages],
        "tool_calls": _tool_calls(kept),
        "compressions": [_compression(event) for event in events if isinstance(event, Compressed)],
        "usage": asdict(total.usage),
        "cost_usd": total.cost,
    }
    return escaped(json.dumps(without_secrets(document, hide), ensure_ascii=False, indent=2, default=str)) + "\n"


def as_lines(info: SessionInfo, events: Sequence[Event], hide: Hide) -> str:
    """The session's own format, which ``ba sessions import`` takes: every event, also what was taken back."""
    header = asdict(Header(info.id, str(info.cwd), info.created, info.model))
    records = [header, *(json.loads(line_of(event)) for event in events)]
    return "".join(json.dumps(without_secrets(record, hide)) + "\n" for record in records)


def _turns(events: Sequence[Event]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for event in events:
        match event:
            case TurnStarted(prompt=message, agent="main"):
                prompt = one_line(message.text)
                turns.append({"number": len(turns) + 1, "at": iso(event.at), "prompt": prompt, "tool_calls": 0})
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


def _compression(event: Compressed) -> dict[str, Any]:
    return {"at": iso(event.at), "strategy": event.strategy, "before": event.before, "after": event.after}


def _message(message: Message) -> dict[str, Any]:
    record = asdict(message)
    record["content"] = record.pop("blocks")
    record["at"] = message.at.isoformat()
    return record
