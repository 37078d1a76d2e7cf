"""Prompts for models that write calls as text: the tools, the form of a call, examples, and the conversation as text.

The same tools give the same bytes, so that a server's prompt cache can be used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Literal, TypeAlias, cast, get_args

from ba_tui.core.messages import Block, Message, Opaque, Text, Thinking, ToolOutput, ToolUse, user
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.providers.shapes import fields, items, text_of
from ba_tui.providers.text_calls.known_tools import RequestTools
from ba_tui.providers.text_calls.replies import PARAMETER, command_tool
from ba_tui.resources import bundled

# Forms of calls that models can be asked for; ``replies`` parses many more.

Form: TypeAlias = Literal["react", "tags", "command"]
FORMS: frozenset[str] = frozenset(get_args(Form))
TAGGED = frozenset(("qwen3", "hermes", "glm", "granite"))
"""Families that were trained on calls between tags. All others follow the labels of ReAct best."""


def form_for(model: ModelInfo) -> Form:
    """Return the form that ``model`` probably follows best."""
    name = f"{model.family} {model.name}".lower()
    return "tags" if any(each in name for each in TAGGED) else "react"


def as_form(text: str, model: ModelInfo) -> Form:
    """Return the form that a setting names; for ``text`` that of the model's family."""
    return cast("Form", text) if text in FORMS else form_for(model)


def call_text(form: Form, name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as the model is asked to write it."""
    if form == "command" and set(arguments) == {PARAMETER}:
        return f"```bash\n{arguments[PARAMETER]}\n```"
    if form == "tags":
        said = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
        return f"<tool_call>\n{said}\n</tool_call>"
    return f"Action: {json.dumps({'tool': name, 'args': dict(arguments)}, ensure_ascii=False)}"


def final_text(form: Form, text: str) -> str:
    """Return the answer as the model is asked to write it."""
    return f"Final Answer: {text}" if form == "react" else text


SHORT_WINDOW = 32_768
"""Models with at most so many tokens, and unknown ones, get one line for each tool."""
LONGEST_LINE = 200
PLACEHOLDER = {"NAME OF AN ARGUMENT": "ITS VALUE"}
READING, EDITING = "read_file", "edit_file"
"""The tools of the example."""
CHANGE = {"path": "server.toml", "old_string": "port = 8080", "new_string": "port = 9090"}
MOST = 3
"""Examples of one tool in the prompt."""


def shortened(model: ModelInfo) -> bool:
    """Whether ``model`` gets the short list."""
    return not model.known or model.window <= SHORT_WINDOW


def offered(form: Form, tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools that can be called in ``form``."""
    if form != "command":
        return tools
    name = command_tool(RequestTools(tools))
    return [tool for tool in tools if tool.name == name]


def tool_prompt(form: Form, tools: Sequence[Tool], *, short: bool) -> str:
    """Return the part of the system prompt that replaces the tools of the request."""
    told = (bundled("config") / "prompts" / "text_tools" / f"{form}.md").read_text("utf-8").strip()
    how = told.replace("{form}", blank_call(form))
    if form == "command":
        return f"# Commands\n{how}"
    lines = "\n".join(_described(tool, form, short=short) for tool in tools)
    return f"# Tools\nYou have these tools:\n\n{lines}\n\n{how}"


def blank_call(form: Form) -> str:
    """Return a call with placeholders."""
    return call_text(form, "NAME OF A TOOL", {PARAMETER: "COMMAND"} if form == "command" else PLACEHOLDER)


def example(form: Form, tools: Sequence[Tool], model: ModelInfo) -> Sequence[Message]:
    """Return rounds that show replies up to an answer; empty without the example's tools. Small models imitate them:
    after one that only reads a file, they would never change one."""
    known = RequestTools(tools)

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
    calls = (call_text(form, tool.name, given).replace("\n", "") for given in tool.facts.examples[:MOST])
    return "\n".join([*lines, *(f"  Example: {call}" for call in calls)])


def _type(schema: object) -> str:
    """Return the type of an argument in a few words."""
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


# The conversation as text: calls as a model would have written them, results as observations. Media are kept as they
# are.

VENDOR = "text_calls"
UNREAD = "unread_call"
NAMELESS = "unreadable_call"
"""The name of a call that names no tool."""
LONGEST_THOUGHT = 500
"""Characters of a thought that is repeated to the model; longer thoughts are the server's own kind of reasoning."""


def unread(id: str, problem: str, source: str) -> Opaque:
    """Return the record of an unreadable call: its problem and its text."""
    return Opaque({"type": UNREAD, "id": id, "problem": problem, "source": source}, VENDOR)


def unread_calls(message: Message) -> Mapping[str, dict[str, Any]]:
    """Return the unreadable calls of an answer by their ids."""
    kept = (block.raw for block in message.blocks if isinstance(block, Opaque) and block.vendor == VENDOR)
    return {text_of(raw.get("id")): fields(raw) for raw in kept if raw.get("type") == UNREAD}


class TextRenderer:
    """Renders a growing conversation; a message that was rendered before is the same object again."""

    def __init__(self, form: Form, model: ModelInfo) -> None:
        self._form: Form = form
        self._model = model
        self._known: list[Message] = []
        self._told: list[Message] = []

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return ``messages`` as text."""
        same = next((at for at, each in enumerate(map(is_, self._known, messages)) if not each), None)
        kept = min(len(self._known), len(messages)) if same is None else same
        del self._known[kept:], self._told[kept:]
        for at in range(kept, len(messages)):
            self._known.append(messages[at])
            self._told.append(self._rendered(messages[at], messages[at - 1] if at else None))
        return list(self._told)

    def _rendered(self, message: Message, before: Message | None) -> Message:
        if message.role == "assistant":
            return replace(message, blocks=tuple(self._said(message)))
        if not any(isinstance(block, ToolOutput) for block in message.blocks):
            return message
        return replace(message, blocks=tuple(self._observed(message, before)))

    def _said(self, message: Message) -> Sequence[Block]:
        """Return an answer's text with its calls written after it."""
        broken, text = unread_calls(message), list[str]()
        final = not message.calls and message.stop == "end_turn"
        kept: list[Block] = [
            block for block in message.blocks if not isinstance(block, Text | ToolUse | Opaque | Thinking)
        ]
        for block in message.blocks:
            match block:
                case Thinking(signature=str()):
                    kept.append(block)
                case Thinking(thinking=thought) if (
                    self._form == "react" and len(thought) <= LONGEST_THOUGHT and not final
                ):
                    text.append(f"Thought: {thought.strip()}")
                case Text(text=said) if said.strip():
                    text.append(final_text(self._form, said.strip()) if final else said.strip())
                case ToolUse(id=id) if id in broken:
                    text.append(text_of(broken[id].get("source")))
                case ToolUse():
                    text.append(call_text(self._form, block.name, block.input))
                case _:
                    pass
        return [*kept, *([Text("\n".join(text))] if text else [])]

    def _observed(self, message: Message, before: Message | None) -> Sequence[Block]:
        """Return results as observations, before the other text of the message."""
        asked = before or Message("assistant", ())
        names, broken = {call.id: call.name for call in asked.calls}, unread_calls(asked)
        blocks: list[Block] = []
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        for number, output in enumerate(outputs, 1):
            label = "Observation" if len(outputs) == 1 else f"Observation {number}, {names.get(output.tool_use_id, '')}"
            content = output.content
            if output.tool_use_id in broken:
                problem = text_of(broken[output.tool_use_id].get("problem"))
                content = f"Error: {problem} No tool was called. A call is written like this:\n{blank_call(self._form)}"
            blocks += [Text(f"{label}: {content}"), *output.attachments]
        return [*blocks, *(block for block in message.blocks if not isinstance(block, ToolOutput))]
