"""A finished turn as a workflow file: its calls as steps, what they have in common as suggested parameters.

Pure: events in, text out. What a workflow file means is the planning room's business.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import ToolUse, clean_json
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.sessions.foreign import escaped, one_line, redacted, without_secrets
from ba_tui.sessions.records import MAIN

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
    """``secret``: the value looks like one, and a file must not hold it."""

    name: str
    value: str
    secret: bool


def as_flow(info: SessionInfo, events: Iterable[Event]) -> str:
    """The last finished turn that called tools, as YAML.

    Raises:
        UsageError: there is none.
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
    """The turns of the main agent with the calls that succeeded and those that did not."""
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
    """Arguments that the prompt names, or that several calls share; and those that hold what must not be kept."""
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
    """``value`` as a word of its own, not as a part of a longer name or path."""
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
    """``value`` of the argument ``key`` as the file has it: with references, and never taken for a template itself."""
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
    """``text`` within a template, so that none of its own braces is read as one."""
    return _BRACES.sub(lambda match: f"{{{{ {match[0]!r} }}}}", text)


def _name(title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:40].strip("_")
    return words if words[:1].isalpha() else f"flow_{words}".rstrip("_")


def _yaml(value: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - heavy, and only for this export

    class Dumper(yaml.SafeDumper):
        """Text of several lines as a block, which people can read and change."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> yaml.ScalarNode:
        style = '"' if _UNSEEN.search(data) else "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    # What acts on a terminal stands in double quotes only, where it can be written as an escape.
    return escaped(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000))
