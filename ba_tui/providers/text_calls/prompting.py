"""What a model is told of tools that it can only call by writing: their list, the form of a call, and an example.

The same bytes for the same tools, so that a server's prompt cache holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ba_tui.core.messages import Message, Text, user
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.providers.text_calls.commands import PARAMETER, command_tool
from ba_tui.providers.text_calls.forms import Form, call_text, final_text
from ba_tui.providers.text_calls.known import Known
from ba_tui.providers.wire.shapes import fields, items, text_of
from ba_tui.resources import bundled

SHORT_WINDOW = 32_768
"""Models with no more tokens than this, and those of which nothing is known, get one line a tool."""
LONGEST_LINE = 200
PLACEHOLDER = {"NAME OF AN ARGUMENT": "ITS VALUE"}
READING, EDITING = "read_file", "edit_file"
"""The tools that the example shows."""
CHANGE = {"path": "server.toml", "old_string": "port = 8080", "new_string": "port = 9090"}
MOST = 3
"""Examples of one tool that are shown."""


def shortened(model: ModelInfo) -> bool:
    """Whether ``model`` gets the short list."""
    return not model.known or model.window <= SHORT_WINDOW


def offered(form: Form, tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools that can be called in ``form``."""
    if form != "command":
        return tools
    name = command_tool(Known(tools))
    return [tool for tool in tools if tool.name == name]


def tool_prompt(form: Form, tools: Sequence[Tool], *, short: bool) -> str:
    """The part of the system prompt that takes the place of the tools in the request."""
    told = (bundled("config") / "prompts" / "text_tools" / f"{form}.md").read_text("utf-8").strip()
    how = told.replace("{form}", blank_call(form))
    if form == "command":
        return f"# Commands\n{how}"
    lines = "\n".join(_described(tool, form, short=short) for tool in tools)
    return f"# Tools\nYou have these tools:\n\n{lines}\n\n{how}"


def blank_call(form: Form) -> str:
    """A call to be filled in."""
    return call_text(form, "NAME OF A TOOL", {PARAMETER: "COMMAND"} if form == "command" else PLACEHOLDER)


def example(form: Form, tools: Sequence[Tool], model: ModelInfo) -> Sequence[Message]:
    """Rounds that show what replies look like, up to an answer; empty where the tools have nothing to show them with.

    Small models do as the example does: one that ended after it had read would never change anything.
    """
    known = Known(tools)

    def step(thought: str, name: str, arguments: Mapping[str, Any]) -> str:
        return f"{f'Thought: {thought}' if form == 'react' else ''}\n{call_text(form, name, arguments)}".strip()

    if form == "command":
        asked = ["Which port does server.toml set?", "1:port = 8080"]
        said = [step("", PARAMETER, {PARAMETER: "grep -n port server.toml"}), "server.toml sets port 8080."]
    elif not (parameter := known.parameter(READING)):
        return ()
    elif known.properties(EDITING) >= CHANGE.keys():
        asked = ["Set the port in server.toml to 9090.", "1\tport = 8080", "server.toml is changed."]
        said = [
            step("I have to read the file first.", READING, {parameter: "server.toml"}),
            step("Now I change it.", EDITING, CHANGE),
            "I set the port in server.toml from 8080 to 9090.",
        ]
    else:
        asked = ["Which port does server.toml set?", "1\tport = 8080"]
        said = [step("I have to read the file.", READING, {parameter: "server.toml"}), "server.toml sets port 8080."]
    asked = [f"(An example) {asked[0]}", *(f"Observation: {seen}" for seen in asked[1:])]
    said[-1] = final_text(form, said[-1])
    return [
        message
        for question, answer in zip(asked, said, strict=True)
        for message in (user(question), Message("assistant", (Text(answer),), model=model.id, origin="assistant"))
    ]


def _described(tool: Tool, form: Form, *, short: bool) -> str:
    schema = tool.input_schema
    required = items(schema.get("required"))
    named = fields(schema.get("properties"))
    parameters = [f"{name}{'' if name in required else '?'}: {_type(part)}" for name, part in named.items()]
    told = re.sub(r"\s+", " ", tool.description).strip()
    if short:
        told = re.split(r"(?<=[.;])\s", told, maxsplit=1)[0][:LONGEST_LINE]
    lines = [f"{tool.name}({', '.join(parameters)}): {told}"]
    if not short:
        lines += [
            f"  {name}: {text}" for name, part in named.items() if (text := text_of(fields(part).get("description")))
        ]
    lines += [f"  Example: {_on_one_line(call_text(form, tool.name, given))}" for given in tool.facts.examples[:MOST]]
    return "\n".join(lines)


def _on_one_line(call: str) -> str:
    return call.replace("\n", "")


def _type(schema: object) -> str:
    """The type of an argument in a word or a few."""
    whole = fields(schema)
    if choices := items(whole.get("enum")):
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    match whole.get("type"):
        case "array":
            return f"[{_type(whole.get('items'))}]"
        case "object" if inner := fields(whole.get("properties")):
            required = items(whole.get("required"))
            return "{" + ", ".join(f"{key}: {_type(part)}" for key, part in inner.items() if key in required) + "}"
        case str(kind):
            return kind
        case _:
            return "any"
