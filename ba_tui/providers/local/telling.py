"""How a local model with a small window is told of its tools: fewer arguments, shorter words, examples of whole rounds.

What it is told is data, in ``config/prompts/local``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ba_tui.core.messages import Message, Text, user
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.providers.text_calls.forms import Form, call_text, final_text
from ba_tui.providers.wire.shapes import fields, items, text_of
from ba_tui.resources import bundled


def told_tools(tools: Sequence[Tool]) -> Sequence[Tool]:
    """``tools`` as a small model is told of them. A call that fits these fits the real ones."""
    known = fields(_read("tools"))
    return [_told(tool, fields(known[tool.name])) if tool.name in known else tool for tool in tools]


def examples(form: Form, tools: Sequence[Tool], model: ModelInfo) -> Sequence[Message]:
    """Rounds of questions, calls and answers; those that need a tool beyond ``tools`` are left out."""
    names = {tool.name for tool in tools}
    rounds = [fields(each) for each in items(_read("examples"))]
    return [message for each in rounds if _uses(each) <= names for message in _round(each, form, model.id)]


def _told(tool: Tool, words: Mapping[str, Any]) -> Tool:
    properties = fields(tool.input_schema.get("properties"))
    required = [name for name in items(words.get("arguments")) if name in properties]
    named = [*required, *(name for name in items(words.get("optional")) if name in properties)]
    if not set(items(tool.input_schema.get("required"))) <= set(required):
        # Its arguments have changed since these words were written: it is told as it is.
        return tool
    schema = {
        "type": "object",
        "properties": {name: properties[name] for name in named},
        "required": required,
        "additionalProperties": False,
    }
    facts = replace(tool.facts, examples=tuple(fields(each) for each in items(words.get("examples"))))
    return replace(tool, description=text_of(words.get("about")), input_schema=schema, facts=facts)


def _uses(example: Mapping[str, Any]) -> set[str]:
    return {text_of(fields(step).get("tool")) for step in items(example.get("steps"))}


def _round(example: Mapping[str, Any], form: Form, model: str) -> Sequence[Message]:
    asked, messages = f"(An example) {text_of(example.get('ask'))}", list[Message]()
    for step in map(fields, items(example.get("steps"))):
        call = call_text(form, text_of(step.get("tool")), fields(step.get("args")))
        messages += [user(asked), _said(f"{_thought(step)}{call}", model)]
        asked = f"Observation: {text_of(step.get('seen'))}"
    answer = final_text(form, text_of(example.get("answer")))
    return [*messages, user(asked), _said(f"{_thought(example)}{answer}", model)]


def _thought(step: Mapping[str, Any]) -> str:
    return f"Thought: {step['thought']}\n" if step.get("thought") else ""


def _said(text: str, model: str) -> Message:
    return Message("assistant", (Text(text),), model=model, origin="assistant")


@cache
def _read(name: str) -> Any:
    import yaml  # noqa: PLC0415 - not before a local model is asked

    return yaml.safe_load((bundled("config") / "prompts" / "local" / f"{name}.yaml").read_text("utf-8"))
