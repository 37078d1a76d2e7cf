"""What a local model may write, as a grammar of llama.cpp: a call of one of the tools by its schema, or an answer.

The form is the one of ReAct (see text_calls.forms); how it is read again is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ba_tui.core.tool import Tool
from ba_tui.providers.wire.shapes import fields, items

KEPT = frozenset({"type", "enum", "const", "items", "required", "minimum", "maximum", "anyOf", "oneOf"})
"""Words of a JSON schema that are enforced; the others are checked when the call is made."""
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
THOUGHT = "[^\\n]{1,240}"
DEEPEST = 12


def call_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON schema of a call of any of ``tools``."""
    calls = [
        _object({"tool": {"const": tool.name}, "args": _plain(tool.input_schema, DEEPEST)}, ("tool", "args"))
        for tool in tools
    ]
    return {"x-guidance": {**SPACING, "lenient": True}, **(calls[0] if len(calls) == 1 else {"anyOf": calls})}


def call_grammar(tools: Sequence[Tool], *, needed: bool = False) -> str:
    """The grammar of a reply of a model that may call ``tools``; ``needed``: it has to."""
    schema = json.dumps(call_schema(tools), ensure_ascii=False)
    if needed:
        rules = ("start: thought? call",)
    else:
        rules = ("start: thought? (call | final)", 'final: "Final Answer: " /(.|\\n)+/')
    return "\n".join(
        (
            "%llguidance {}",
            *rules,
            f'thought: "Thought: " /{THOUGHT}/ "\\n"',
            'call: "Action: " arguments "\\n"?',
            f"arguments: %json {schema}",
        )
    )


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
