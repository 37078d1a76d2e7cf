"""What a local model may write, as a grammar of llama.cpp: a call of one of the tools by its schema, or an answer.

The form is the one of ReAct (see text_calls.forms); how it is read again is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ba_tui.core.tool import Tool
from ba_tui.providers.wire.shapes import fields, items

KEPT = frozenset({"type", "enum", "const", "items", "required", "minimum", "maximum", "anyOf", "oneOf"})
"""Words of a JSON schema that are enforced; the others are checked when the call is made."""
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
FileLines: TypeAlias = Mapping[str, Sequence[str]]
NOTHING_READ: FileLines = {}
EDITING, CHOSEN = "edit_file", ("path", "old_string")
"""The tool whose arguments are chosen from what was read."""
THOUGHT = "[^\\n]{1,240}"
DEEPEST = 12
_THOUGHT = f'thought: "Thought: " /{THOUGHT}/ "\\n"'
_FINAL = 'final: "Final Answer: " /(.|\\n)+/'
ANSWER = "\n".join(("%llguidance {}", "start: thought? final", _FINAL, _THOUGHT))
"""The grammar of a reply that is no call."""


def call_schema(tools: Sequence[Tool], lines: FileLines = NOTHING_READ) -> dict[str, Any]:
    """The JSON schema of a call of any of ``tools``. ``lines``: what may be replaced in which file, once one was read:
    a small model that copies text makes mistakes, and one that chooses a line can't."""
    calls = [
        _object({"tool": {"const": tool.name}, "args": args}, ("tool", "args"))
        for tool in tools
        for args in _arguments(tool, lines)
    ]
    return {"x-guidance": {**SPACING, "lenient": True}, **(calls[0] if len(calls) == 1 else {"anyOf": calls})}


def call_grammar(tools: Sequence[Tool], *, needed: bool = False, lines: FileLines = NOTHING_READ) -> str:
    """The grammar of a reply of a model that may call ``tools``; ``needed``: it has to. For ``lines`` see above."""
    schema = json.dumps(call_schema(tools, lines), ensure_ascii=False)
    rules = ("start: thought? call",) if needed else ("start: thought? (call | final)", _FINAL)
    return "\n".join(
        (
            "%llguidance {}",
            *rules,
            _THOUGHT,
            'call: "Action: " arguments "\\n"?',
            f"arguments: %json {schema}",
        )
    )


def _arguments(tool: Tool, lines: FileLines) -> Sequence[dict[str, Any]]:
    args = _plain(tool.input_schema, DEEPEST)
    properties = fields(args.get("properties"))
    if tool.name != EDITING or not lines or not {*CHOSEN} <= properties.keys():
        return [args]
    return [
        {
            **args,
            "properties": {**properties, **dict(zip(CHOSEN, ({"const": path}, {"enum": list(said)}), strict=True))},
        }
        for path, said in lines.items()
    ]


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _plain(schema: object, depth: int) -> dict[str, Any]:
    """``schema`` with the words that are enforced; nothing but what it names may stand in an object."""
    whole = fields(schema)
    if not depth:
        return {}
    kept: dict[str, Any] = {key: value for key, value in whole.items() if key in KEPT}
    for key in ("anyOf", "oneOf"):
        if key in kept:
            kept[key] = [_plain(each, depth - 1) for each in items(kept[key])]
    if "items" in kept:
        kept["items"] = _plain(kept["items"], depth - 1)
    if "properties" in whole:
        named = {name: _plain(part, depth - 1) for name, part in fields(whole["properties"]).items()}
        kept |= _object(named, [name for name in items(whole.get("required")) if name in named])
    return kept
