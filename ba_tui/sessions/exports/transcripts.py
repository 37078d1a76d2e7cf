"""A session as a file to give away: the formats by name, and JSON for programs. Secrets are taken out.

Pure: events in, pieces of text out. The session's own file is the matter of records, pages of markdown and html.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.events import (
    PERSON,
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    Rewound,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.events import event_to_json as line_of
from ba_tui.core.events.activity import activities
from ba_tui.core.messages import Message
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.exports.flows import as_flow
from ba_tui.sessions.exports.outline import Survey, as_record, iso
from ba_tui.sessions.foreign import escaped, redacted, without_secrets
from ba_tui.sessions.migrations import SCHEMA_VERSION
from ba_tui.sessions.records import MAIN, Header, JournalEntry, UnknownRecord
from ba_tui.sessions.timeline import current_events

Writer = Callable[[SessionInfo, Any], Iterator[str]]
"""The pieces of a file. The events are gone through more than once, so that none need be held."""
Hide = Callable[[str], str]
FORMATS = ("md", "html", "json", "jsonl", "workflow", "mermaid", "plan-json")
_SHORT = 64
_REMEMBERED = 4_096


class SaidToModels:
    """``events`` without commands of the person's own, of which some are private. Can be gone through again."""

    def __init__(self, events: Iterable[Any]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[Any]:
        return (event for event in self._events if getattr(event, "agent", "") != PERSON)


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
        return lambda info, events: iter((as_flow(info, events),))
    hide: Hide = str if with_secrets else _remembering(lambda text: redact(redacted(text)))
    if format in {"mermaid", "plan-json"}:
        from ba_tui.sessions.exports.plans import newest_plan  # noqa: PLC0415 - one format of several

        return lambda _info, events: iter((newest_plan(events, format, hide),))
    if format == "md":
        from ba_tui.sessions.exports.markdown import Markdown  # noqa: PLC0415 - one format of several

        return Markdown(hide).write
    if format == "html":
        from ba_tui.sessions.exports.html import HtmlPage  # noqa: PLC0415 - loads a Markdown parser

        return HtmlPage(hide).write
    write = as_json if format == "json" else as_lines
    return lambda info, events: write(info, events, hide)


def as_json(info: SessionInfo, events: Iterable[Event], hide: Hide) -> Iterator[str]:
    """What was said, message by message, and the tool calls, turns, tokens and cost. All that stands is there, also
    what a compression left out of later requests; what was taken back counts in tokens and cost alone."""
    whole = Survey(events)
    session = {
        "id": info.id,
        "title": info.title,
        "cwd": str(info.cwd),
        "created": iso(info.created),
        "updated": iso(info.updated),
        "model": info.model,
    }

    def line(value: Any) -> str:
        return escaped(json.dumps(without_secrets(value, hide), ensure_ascii=False, default=str))

    def lines(key: str, values: Iterable[Any]) -> Iterator[str]:
        begin = f'  "{key}": ['
        for value in values:
            yield f"{begin}\n    {line(value)}"
            begin = ","
        yield f"{begin}],\n" if begin != "," else "\n  ],\n"

    yield f'{{\n  "schema_version": {SCHEMA_VERSION},\n  "session": {line(session)},\n'
    yield from lines("turns", map(as_record, whole.turns))
    yield from lines("messages", map(_message, _messages(current_events(events, whole.timeline))))
    yield from lines("agents", _agents(current_events(events, whole.timeline)))
    yield from lines("tool_calls", _tool_calls(current_events(events, whole.timeline)))
    yield from lines("compressions", map(_compression, whole.compressions))
    yield from lines("plans", _plans(whole))
    yield from lines("activities", _activities(current_events(events, whole.timeline)))
    yield f'  "usage": {line(whole.usage.record)},\n  "cost_usd": {line(whole.cost)}\n}}\n'


def _activities(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """What each agent did from when on."""
    return ({"at": iso(at), "agent": agent, "activity": activity} for at, agent, activity in activities(events))


def _plans(whole: Survey) -> Iterator[dict[str, Any]]:
    from ba_tui.plotting.plans.plan_json import as_json as as_plan  # noqa: PLC0415 - few sessions have a plan

    return (as_plan(record.plan) for record in whole.plans.plans)


def as_lines(info: SessionInfo, entries: Iterable[JournalEntry], hide: Hide) -> Iterator[str]:
    """The session's own format, which ``ba sessions import`` takes: every event, also what was taken back, and lines of
    a later version as they stand unless they hold a secret."""
    yield json.dumps(without_secrets(asdict(Header(info.id, str(info.cwd), info.created, info.model)), hide)) + "\n"
    for entry in entries:
        line = (entry.line if isinstance(entry, UnknownRecord) else line_of(entry)).decode()
        record = json.loads(line)
        shown = without_secrets(record, hide)
        # Letters that would act on a terminal are escaped.
        same = isinstance(entry, UnknownRecord) and shown == record and line.isprintable()
        yield (line if same else json.dumps(shown)) + "\n"


def _remembering(hide: Hide) -> Hide:
    """The same few words stand in every record."""
    short = lru_cache(_REMEMBERED)(hide)
    return lambda text: short(text) if len(text) <= _SHORT else hide(text)


def _messages(events: Iterable[Event]) -> Iterator[Message]:
    """As a Transcript has them, one that never holds more than the last: that one may still grow."""
    transcript = Transcript()
    for event in events:
        if event.agent != MAIN or isinstance(event, Compressed | Rewound):
            continue
        if isinstance(event, TurnStarted | Steered | MessageDone) and (ready := transcript.messages):
            yield from ready[:-1]
            transcript = Transcript(events=[Steered(ready[-1])])
        transcript.apply(event)
    yield from transcript.messages


def _agents(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """The sub-agents in the order in which they began, each with what it was told and what it said."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if not event.agent.startswith(f"{MAIN}/"):
            continue
        new: dict[str, Any] = {"agent": event.agent, "type": "", "description": "", "call_id": "", "ending": None}
        agent = found.setdefault(event.agent, {**new, "messages": []})
        match event:
            case AgentStarted(kind=kind, description=description, call_id=call_id):
                agent.update(type=kind, description=description, call_id=call_id)
            case TurnStarted(prompt=message) | Steered(message=message) | MessageDone(message=message):
                agent["messages"].append(_message(message))
            case TurnEnded(reason=reason):
                agent["ending"] = reason
            case _:
                pass
    yield from found.values()


def _tool_calls(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """In the order in which they began. One that never ended is told when the next turn begins."""
    begun: dict[str, tuple[ToolStarted, ToolFinished | None]] = {}
    for event in events:
        match event:
            case ToolStarted(call=call):
                begun[call.id] = (event, None)
            case ToolFinished(call_id=call_id) if call_id in begun:
                begun[call_id] = (begun[call_id][0], event)
                while begun and (first := next(iter(begun.values())))[1]:
                    yield _tool_call(*first)
                    del begun[first[0].call.id]
            case TurnStarted(agent="main"):
                yield from (_tool_call(*pair) for pair in begun.values())
                begun = {}
            case _:
                pass
    yield from (_tool_call(*pair) for pair in begun.values())


def _tool_call(start: ToolStarted, end: ToolFinished | None) -> dict[str, Any]:
    return {
        "id": start.call.id,
        "name": start.call.name,
        "agent": start.agent,
        "target": start.target,
        "input": start.call.input,
        "ok": end is not None and not end.result.failed,
        "summary": end.result.summary if end else "interrupted",
        "duration_ms": round(end.duration * 1000) if end else None,
    }


def _compression(event: Compressed) -> dict[str, Any]:
    record = {"at": iso(event.at), "strategy": event.strategy, "before": event.before, "after": event.after}
    return {**record, "cost_usd": event.cost, "usage": event.usage.record if event.usage else None}


def _message(message: Message) -> dict[str, Any]:
    record = asdict(message)
    record["content"] = record.pop("blocks")
    record["at"] = message.at.isoformat()
    return record
