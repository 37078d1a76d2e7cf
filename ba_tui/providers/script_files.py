"""Scripts from YAML files; the format stands in scripted.py.

What a script does is not known here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.messages import StopReason, Usage
from ba_tui.providers.marked_yaml import YamlNode, read_yaml
from ba_tui.providers.scripted import ERRORS, Failure, ModelScript, Planned, Step, When
from ba_tui.settings.document import SettingsDocument

STEP = ("say", "think", "calls", "usage", "stop", "error", "when", "delay")
USAGE = ("input", "output", "cache_read", "cache_write")


def read_script(path: Path) -> ModelScript:
    """Raises UsageError naming file, line and expectation."""
    top = read_yaml(path)
    if top is None:
        raise YamlNode(SettingsDocument(path), (), None).wrong("a mapping with “steps”")
    found = top.mapping(("steps", "last", "delay"))
    if "steps" not in found:
        raise top.wrong("a mapping with “steps”")
    steps = tuple(_step(node) for node in found["steps"].sequence())
    last = _step(found["last"]) if "last" in found else None
    return ModelScript(steps, last, found["delay"].number() if "delay" in found else 0.0)


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
    )


def _call(node: YamlNode) -> Planned:
    found = node.mapping(("tool", "args", "id"))
    if "tool" not in found:
        raise node.wrong("a call with “tool” and “args”")
    args: dict[str, Any] = {}
    if "args" in found:
        args = {key: value.value for key, value in found["args"].mapping().items()}
        try:
            json.dumps(args)
        except (TypeError, ValueError):
            raise found["args"].wrong("plain values: texts, numbers, lists, mappings (put dates in quotes)") from None
    return Planned(found["tool"].text(), args, found["id"].text() if "id" in found else "")


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
    return When(**{key: value.flag() for key, value in node.mapping(("denied", "failed", "interrupted")).items()})
