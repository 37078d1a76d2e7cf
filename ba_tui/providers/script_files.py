"""Scripts from YAML files; the format stands in scripted.py.

What a script does is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.messages import StopReason, Usage
from ba_tui.providers.marked_yaml import YamlNode, read_yaml
from ba_tui.providers.script_conditions import Choice, When
from ba_tui.providers.scripted import ERRORS, Failure, ModelScript, Planned, Step
from ba_tui.settings.document import SettingsDocument

STEP = ("say", "think", "calls", "usage", "stop", "error", "when", "delay", "next", "stays", "again")
CHOICE = {"if", "then", "else"}
FLAGS = ("denied", "failed", "interrupted", "compacted")
TEXTS = ("said", "result")
USAGE = ("input", "output", "cache_read", "cache_write")


def read_script(path: Path) -> ModelScript:
    """Raises UsageError naming file, line and expectation."""
    top = read_yaml(path)
    if top is None:
        raise YamlNode(SettingsDocument(path), (), None).wrong("a mapping with “steps”")
    found = top.mapping(("steps", "last", "delay"))
    if "steps" not in found:
        raise top.wrong("a mapping with “steps”")
    steps = tuple(step for node in found["steps"].sequence() for step in _alternatives(node))
    last = _step(found["last"]) if "last" in found else None
    return ModelScript(steps, last, found["delay"].number() if "delay" in found else 0.0)


def _alternatives(node: YamlNode) -> Iterator[Step]:
    nodes = node.sequence() if isinstance(node.value, list) else [node]
    for number, one in enumerate(nodes):
        yield replace(_step(one), before=number, behind=len(nodes) - number - 1)


def _step(node: YamlNode) -> Step:
    found = node.mapping(STEP)
    if not {"say", "think", "calls", "error"} & found.keys():
        raise node.wrong("a step with “say”, “think”, “calls” or “error”")
    stop = found["stop"].value if "stop" in found else None
    if stop is not None and stop not in get_args(StopReason):
        raise found["stop"].wrong(f"one of {', '.join(get_args(StopReason))}")
    return Step(
        say=found["say"].text() if "say" in found else "",
        think=found["think"].text() if "think" in found else "",
        calls=tuple(_call(call) for call in found["calls"].sequence()) if "calls" in found else (),
        usage=_usage(found["usage"]) if "usage" in found else None,
        stop=cast("StopReason | None", stop),
        error=_failure(found["error"]) if "error" in found else None,
        when=_when(found["when"]) if "when" in found else None,
        delay=found["delay"].number() if "delay" in found else None,
        next=found["next"].text() if "next" in found else "",
        stays="stays" in found and found["stays"].flag(),
        again="again" not in found or found["again"].flag(),
    )


def _call(node: YamlNode) -> Planned:
    found = node.mapping(("tool", "args", "id"))
    if "tool" not in found:
        raise node.wrong("a call with “tool” and “args”")
    args: dict[str, Any] = {}
    if "args" in found:
        args = {key: _argument(value) for key, value in found["args"].mapping().items()}
    return Planned(found["tool"].text(), args, found["id"].text() if "id" in found else "")


def _argument(node: YamlNode) -> Any:
    if isinstance(node.value, dict):
        found = node.mapping()
        if found.keys() == CHOICE:
            return Choice(_when(found["if"]), _argument(found["then"]), _argument(found["else"]))
        return {key: _argument(value) for key, value in found.items()}
    if isinstance(node.value, list):
        return [_argument(item) for item in node.sequence()]
    try:
        json.dumps(node.value)
    except (TypeError, ValueError):
        raise node.wrong("a plain value: a text, a number, a list, a mapping (put dates in quotes)") from None
    return node.value


def _usage(node: YamlNode) -> Usage:
    found = node.mapping(USAGE)
    return Usage(**{key: value.whole() for key, value in found.items()})


def _failure(node: YamlNode) -> Failure:
    found = node.mapping(("kind", "message", "retry_after", "after"))
    if "kind" not in found:
        raise node.wrong("an error with “kind”")
    kind = found["kind"].text()
    if kind not in ERRORS:
        raise found["kind"].wrong(f"one of {', '.join(ERRORS)}")
    return Failure(
        kind,
        found["message"].text() if "message" in found else "The script says so.",
        found["retry_after"].number() if "retry_after" in found else None,
        found["after"].whole() if "after" in found else 0,
    )


def _when(node: YamlNode) -> When:
    found = node.mapping((*FLAGS, *TEXTS, "done", "not"))
    plain: dict[str, Any] = {key: found[key].flag() for key in FLAGS if key in found}
    plain |= {key: found[key].text() for key in TEXTS if key in found}
    done = tuple(item.text() for item in found["done"].sequence()) if "done" in found else ()
    return When(**plain, done=done, unless=_when(found["not"]) if "not" in found else None)
