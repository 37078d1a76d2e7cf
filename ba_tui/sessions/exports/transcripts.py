"""Exports a session by format name: as Markdown, as JSON for programs, or a finished turn as a workflow file.

Secrets are removed. Pure: events in, pieces of text out. ``document`` has what Markdown and HTML share.
"""

from __future__ import annotations

import json
import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from html import escape
from typing import Any, cast

from ba_tui.core.activity import activities
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
from ba_tui.core.messages import Message, Text, ToolUse, clean_json
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import Diff
from ba_tui.core.text.figures import FigureReport, Footnotes, noted
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.plotting.plan_exports import as_json as as_plan
from ba_tui.sessions.exports.document import (
    AgentPart,
    AnswerPart,
    DocumentOpening,
    DocumentPart,
    PlanPart,
    PromptPart,
    Survey,
    ToolCallPart,
    as_record,
    changed_lines,
    document_parts,
    iso,
    newest_plan,
    plan_lines,
    plan_title,
    session_summary,
    time_of,
)
from ba_tui.sessions.foreign import escaped, one_line, redacted, without_secrets
from ba_tui.sessions.records import MAIN, SCHEMA_VERSION, Header, JournalEntry, UnknownRecord
from ba_tui.sessions.timeline import current_events


class Markdown:
    """Renders a session as Markdown. ``hide`` removes secrets from text."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._footnotes = Footnotes(self._safe)

    def write(self, info: SessionInfo, events: Iterable[Event]) -> Iterator[str]:
        whole = Survey(events)
        id, folder, *rest = session_summary(info, whole)
        about = " · ".join([f"`{id}`", f"`{self._safe(folder)}`", *rest])
        yield f"# {one_line(self._hide(info.title)) or 'Untitled'}\n\n{about}\n"
        for part in document_parts(events, whole):
            yield "\n" + "\n".join(self._part(part)).rstrip() + "\n"

    def _part(self, part: DocumentPart) -> list[str]:
        match part:
            case DocumentOpening(at=at):
                return [f"## {time_of(at)}"]
            case PromptPart(message=message):
                return self._quote(message)
            case AnswerPart(message=message, figures=FigureReport() as figures):
                return [*noted(self._footnotes.of(message.text, figures))]
            case AnswerPart(message=message):
                return [self._safe(message.text).strip()]
            case ToolCallPart():
                return self._call(part)
            case PlanPart(plan=plan):
                return [f"**{plan_title(plan, self._hide)}**", "", *_fenced(plan_lines(plan, self._hide), "")]
            case AgentPart():
                return self._agent(part)
            case _:
                return [f"*{one_line(self._safe(part.text))}*"]

    def _agent(self, agent: AgentPart) -> list[str]:
        """Return a section that folds where Markdown is shown as HTML."""
        lines = ["<details>", f"<summary>{escape(one_line(self._safe(agent.head)))}</summary>"]
        for part in agent.parts:
            lines += ["", *self._part(part)]
        return [*lines, "", "</details>"]

    def _quote(self, message: Message) -> list[str]:
        others = [f"[{block.type}]" for block in message.blocks if not isinstance(block, Text)]
        text = self._safe(message.said).strip()
        return [f"> {line}".rstrip() for line in [*text.split("\n"), *others]]

    def _call(self, call: ToolCallPart) -> list[str]:
        start = call.start
        name = one_line(start.call.name) if start else "tool"
        target = f" {_code(one_line(self._safe(start.target)))}" if start and start.target else ""
        agent = f" ({one_line(call.agent)})" if call.agent else ""
        line = f"- **{name}**{agent}{target}{': failed' if call.end.result.failed else ''}"
        if outcome := self._safe(call.outcome):
            line += f": {one_line(outcome)}"
        if output := call.output(self._hide).strip("\n"):
            return [line, "", *_fenced(output.split("\n"), "")]
        if not call.changes:
            return [line]
        return [line, "", *_fenced([row for change in call.changes for row in self._diff(change)], "diff")]

    def _diff(self, change: Diff) -> list[str]:
        return self._safe("\n".join(changed_lines(change))).split("\n")

    def _safe(self, text: str) -> str:
        return paintable(self._hide(text))


def _fenced(lines: Sequence[str], language: str) -> list[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [fence + language, *lines, fence]


def _code(text: str) -> str:
    """Return inline code that may contain backticks."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


_LONGEST = 200
_SHORTEST_WORD = 3
_TEMPLATE = regex(r"\{\{|\{%|\{#")
_BRACES = regex(r"\{+|\r")
_UNSEEN = regex(r"[^\n\t -~\xa0-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\ud7ff\uf900-\ufdff\uff00-\uffef]")
_RESERVED = {"steps", "range", "dict", "lipsum", "cycler", "joiner", "namespace", "true", "false", "none", "loop"}
_LEFT_OUT = "# Left out, because it did not succeed: "


@dataclass
class _Turn:
    number: int
    prompt: str
    calls: list[ToolUse]
    failed: list[str]
    ended: bool = False


@frozen
class _Parameter:
    """``secret``: the value looks like a secret, which a file must not contain."""

    name: str
    value: str
    secret: bool


def as_flow(info: SessionInfo, events: Iterable[Event]) -> str:
    """Return the last finished turn with tool calls, as YAML.

    Raises:
        UsageError: there is no such turn.
    """
    turn = next((turn for turn in reversed(_turns(events)) if turn.ended and turn.calls), None)
    if turn is None:
        raise UsageError("No finished turn of this session called tools.", "Export it as md or json.")
    calls = [ToolUse(call.id, call.name, cast("dict[str, Any]", clean_json(call.input))) for call in turn.calls]
    parameters = _parameters(turn.prompt, calls)
    prompt = one_line(redacted(turn.prompt))
    flow: dict[str, Any] = {"name": _name(info.title or prompt), "description": prompt or "A turn of a session."}
    if parameters:
        flow["parameters"] = _schema(parameters)
    flow["steps"] = [_step(call, parameters) for call in calls]
    head = [f"# From turn {turn.number} of session {one_line(info.id)}.", "# Look through it, then: ba run FILE"]
    head += [_LEFT_OUT + one_line(redacted(line)) for line in turn.failed]
    return "\n".join(head) + "\n" + _yaml(flow)


def _turns(events: Iterable[Event]) -> list[_Turn]:
    """Return the turns of the main agent with their successful and failed calls."""
    turns: list[_Turn] = []
    started: dict[str, ToolStarted] = {}
    for event in events:
        if event.agent != MAIN:
            continue
        match event:
            case TurnStarted(prompt=message):
                turns.append(_Turn(len(turns) + 1, message.said, [], []))
            case ToolStarted(call=call):
                started[call.id] = event
            case ToolFinished(call_id=call_id, result=result) if turns and call_id in started:
                start = started.pop(call_id)
                if result.failed:
                    turns[-1].failed.append(f"{start.call.name} {start.target}".rstrip())
                else:
                    turns[-1].calls.append(start.call)
            case TurnEnded() if turns:
                turns[-1].ended = True
            case _:
                pass
    return turns


def _parameters(prompt: str, calls: Sequence[ToolUse]) -> list[_Parameter]:
    """Return arguments that the prompt names or several calls share, and secret ones."""
    given = [(key, value) for call in calls for key, value in call.input.items() if isinstance(value, str)]
    counts = Counter(value for _, value in given)
    found: dict[str, _Parameter] = {}
    taken: set[str] = set()
    for key, value in given:
        if value in found:
            continue
        secret = _secret(key, value)
        suits = 0 < len(value) <= _LONGEST and "\n" not in value
        named = len(value) >= _SHORTEST_WORD and _part(value).search(prompt)
        if secret or (suits and (counts[value] > 1 or named)):
            found[value] = _Parameter(_variable(key, taken), value, secret)
    return sorted(found.values(), key=lambda parameter: -len(parameter.value))


def _secret(key: str, value: str) -> bool:
    return without_secrets({key: value}) != {key: value}


def _part(value: str) -> re.Pattern[str]:
    """Compile a pattern for ``value`` as a separate word, not as a part of a longer name or path."""
    return re.compile(rf"(?<![\w./-]){re.escape(value)}(?![\w/-]|\.\w)")


def _variable(key: str, taken: set[str]) -> str:
    name = re.sub(r"\W+", "_", key, flags=re.ASCII).strip("_")[:40].lower()
    if not name.isidentifier() or keyword.iskeyword(name) or name in _RESERVED:
        name = f"value_{name}".rstrip("_")
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free


def _schema(parameters: Sequence[_Parameter]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter in sorted(parameters, key=lambda one: one.name):
        default = {} if parameter.secret else {"default": parameter.value}
        properties[parameter.name] = {"type": "string", **default}
    required = sorted(parameter.name for parameter in parameters if parameter.secret)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _step(call: ToolUse, parameters: Sequence[_Parameter]) -> dict[str, Any]:
    args = {key: _written(key, value, parameters) for key, value in call.input.items()}
    return {"tool": call.name, **({"args": args} if args else {})}


def _written(key: str, value: Any, parameters: Sequence[_Parameter]) -> Any:
    """Return the argument ``key`` for the file: with references to parameters, and with literal braces escaped."""
    match value:
        case str():
            return _text(key, value, parameters)
        case dict():
            return {name: _written(name, item, parameters) for name, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_written(key, item, parameters) for item in cast("list[Any]", value)]
        case _:
            return value


def _text(key: str, text: str, parameters: Sequence[_Parameter]) -> str:
    for parameter in parameters:
        if parameter.value == text:
            return f"{{{{ {parameter.name} }}}}"
    text = without_secrets({key: text})[key]
    names = {one.value: one.name for one in parameters if len(one.value) >= _SHORTEST_WORD and not one.secret}
    found = list(re.finditer("|".join(_part(value).pattern for value in names), text)) if names else []
    if not found and not _TEMPLATE.search(text):
        return text
    parts: list[str] = []
    last = 0
    for match in found:
        parts += (_literal(text[last : match.start()]), f"{{{{ {names[match[0]]} }}}}")
        last = match.end()
    return "".join(parts) + _literal(text[last:])


def _literal(text: str) -> str:
    """Return ``text`` with its braces escaped, for use in a template."""
    return _BRACES.sub(lambda match: f"{{{{ {match[0]!r} }}}}", text)


def _name(title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:40].strip("_")
    return words if words[:1].isalpha() else f"flow_{words}".rstrip("_")


def _yaml(value: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - heavy, and only for this export

    class Dumper(yaml.SafeDumper):
        """Writes text of several lines as a block, which users can read and edit."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> yaml.ScalarNode:
        style = '"' if _UNSEEN.search(data) else "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    # Control characters occur only in double quotes, where they can be escaped.
    return escaped(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000))


Writer = Callable[[SessionInfo, Any], Iterator[str]]
"""Returns the pieces of a file. It iterates over the events more than once, so that they need not fit into memory."""
Hide = Callable[[str], str]
FORMATS = ("md", "html", "json", "jsonl", "workflow", "mermaid", "plan-json")
_SHORT = 64
_REMEMBERED = 4_096


class SaidToModels:
    """``events`` without commands that the user ran, some of which are private. Can be iterated again."""

    def __init__(self, events: Iterable[Any]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[Any]:
        return (event for event in self._events if getattr(event, "agent", "") != PERSON)


def exporter(format: str, redact: Hide = str, *, with_secrets: bool = False) -> Writer:
    """Return the writer of a format.

    ``redact`` removes secrets from text in addition to the built-in patterns. ``with_secrets``: keep secrets.

    Raises:
        UsageError: the format is unknown, or never contains secrets.
    """
    if format not in FORMATS:
        names = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise UsageError(f"There is no export format “{format}”.", f"Use {names}.")
    if format == "workflow":
        # Secrets become parameters: a mark in their place would be executed.
        if with_secrets:
            raise UsageError(
                "A workflow never contains secrets: they become its parameters.", "Leave --with-secrets out."
            )
        return lambda info, events: iter((as_flow(info, events),))
    hide: Hide = str if with_secrets else _remembering(lambda text: redact(redacted(text)))
    if format in {"mermaid", "plan-json"}:
        return lambda _info, events: iter((newest_plan(events, format, hide),))
    if format == "md":
        return Markdown(hide).write
    if format == "html":
        from ba_tui.sessions.exports.html import HtmlPage  # noqa: PLC0415 - loads a Markdown parser

        return HtmlPage(hide).write
    write = as_json if format == "json" else as_lines
    return lambda info, events: write(info, events, hide)


def as_json(info: SessionInfo, events: Iterable[Event], hide: Hide) -> Iterator[str]:
    """Yield the messages, tool calls, turns, tokens and cost as JSON.

    Current messages include those that compression removed from later requests; undone turns count only in tokens and
    cost.
    """
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
    """Yield what each agent did, with the time it began."""
    return ({"at": iso(at), "agent": agent, "activity": activity} for at, agent, activity in activities(events))


def _plans(whole: Survey) -> Iterator[dict[str, Any]]:

    return (as_plan(record.plan) for record in whole.plans.plans)


def as_lines(info: SessionInfo, entries: Iterable[JournalEntry], hide: Hide) -> Iterator[str]:
    """Yield the session in its own format, which ``ba sessions import`` reads: every event, including undone ones.

    Lines of a later version are unchanged unless they contain a secret.
    """
    yield json.dumps(without_secrets(asdict(Header(info.id, str(info.cwd), info.created, info.model)), hide)) + "\n"
    for entry in entries:
        line = (entry.line if isinstance(entry, UnknownRecord) else line_of(entry)).decode()
        record = json.loads(line)
        shown = without_secrets(record, hide)
        # Control characters are escaped.
        same = isinstance(entry, UnknownRecord) and shown == record and line.isprintable()
        yield (line if same else json.dumps(shown)) + "\n"


def _remembering(hide: Hide) -> Hide:
    """Return ``hide`` with a cache for short texts, which repeat in every record."""
    short = lru_cache(_REMEMBERED)(hide)
    return lambda text: short(text) if len(text) <= _SHORT else hide(text)


def _messages(events: Iterable[Event]) -> Iterator[Message]:
    """Yield messages as a Transcript has them, keeping only the last one in memory: it may still change."""
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
    """Yield the sub-agents in the order in which they began, each with its task and words."""
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
    """Yield calls in the order in which they began; a call without an end when the next turn begins."""
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
