"""Tool calls written as text: every style that models use is recognised, and no ordinary answer is taken for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ba_tui.core.events import Notice, TurnEnded
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.providers.text_calls.detection import WrittenCallWarning, call_in_text
from tests.script import Script, collect, conversation, says


async def nothing(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("ok")


def tool(name: str, required: tuple[str, ...], *optional: str) -> Tool:
    properties = {key: {"type": "string"} for key in (*required, *optional)}
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(required)}, nothing)


TOOLS = (
    tool("read_file", ("path",), "offset", "limit"),
    tool("shell", ("command",), "timeout"),
    tool("glob", ("pattern",), "path"),
    tool("now", (), "timezone"),
)
CALLS = {
    "bare": '{"name": "read_file", "arguments": {"path": "a.py"}}',
    "fence": 'I will read it.\n\n```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```\n',
    "fence, pretty": '```json\n{\n  "name": "read_file",\n  "arguments": {\n    "path": "a.py"\n  }\n}\n```',
    "open fence": 'First:\n```json\n{"name": "read_file", "arguments": {"path": "a.py"}}',
    "hermes": 'Sure.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>',
    "hermes, unclosed": '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}',
    "tool": '{"tool": "read_file", "args": {"path": "a.py"}}',
    "flat": '{"tool": "read_file", "path": "a.py"}',
    "llama 3.1": '{"type": "function", "name": "read_file", "parameters": {"path": "a.py"}}',
    "python tag": '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.py"}}<|eom_id|>',
    "openai": '{"tool_calls": 1}\n{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}}',
    "text in text": '{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}',
    "by name": '{"read_file": {"path": "a.py"}}',
    "list": '[{"name": "read_file", "arguments": {"path": "a"}}, {"name": "now", "arguments": {}}]',
    "mistral": '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.py"}}]',
    "mistral, new": '[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}',
    "functionary 2": '<function=read_file>{"path": "a.py"}</function>',
    "functionary 3": '>>>read_file\n{"path": "a.py"}',
    "kimi": 'functions.read_file:0{"path": "a.py"}',
    "harmony": 'to=functions.read_file <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
    "qwen coder": "<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
    "invoke": '<invoke name="read_file">\n<parameter name="path">a.py</parameter>\n</invoke>',
    "react": 'Thought: look at it.\nAction: read_file\nAction Input: {"path": "a.py"}',
    "pythonic": '[read_file(path="a.py")]',
    "tool code": '```tool_code\nprint(read_file(path="a.py"))\n```',
    "brace missing": '{"name": "read_file", "arguments": {"path": "a.py"}',
    "brace too many": '```json\n{"name": "read_file", "arguments": {"path": "a.py"}}}\n```',
    "line break in a string": '{"name": "shell", "arguments": {"command": "echo a\necho b"}}',
}
ANSWERS = {
    "words": "The file is read by read_file, then shell runs.",
    "an example before words": '```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\nis how a call looks.',
    "another tool": '{"name": "launch_missiles", "arguments": {"path": "a.py"}}',
    "data": 'The list:\n```json\n[{"name": "read_file", "version": 3}, {"name": "shell", "version": 1}]\n```',
    "a schema": '{"name": "read_file", "parameters": {"type": "object", "properties": {}, "required": ["path"]}}',
    "a package file": '```json\n{"name": "now", "version": "1.0.0", "license": "MIT"}\n```',
    "code": 'Use it so:\n\n```python\nfiles = glob(pattern="*.py")\n```',
    "code without words": '```python\nimport glob\nglob.glob(pattern="*.py")\n```',
    "arguments that do not fit": '{"name": "read_file", "arguments": {"city": "Ulm"}}',
    "an answer in JSON": '{"path": "a.py", "command": "ls", "tool_count": 3}',
    "nothing": "",
}


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_a_call_is_recognised_in_every_style(text: str) -> None:
    named = [each.name for each in TOOLS if each.name in text]
    assert call_in_text(text, TOOLS) == named[-1]


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_ordinary_answer_is_no_call(text: str) -> None:
    assert call_in_text(text, TOOLS) == ""


@pytest.mark.parametrize(
    "text", ["{" * 200_000, "[" * 200_000 + "read_file", '{"a": ' * 50_000 + "now", "<function=" * 9_000]
)
def test_hostile_text_is_no_call(text: str) -> None:
    assert call_in_text(text + " read_file", TOOLS) == ""


async def test_a_turn_that_ends_with_such_text_says_what_happened_and_what_helps() -> None:
    talk = conversation(Script(says(CALLS["hermes"])), TOOLS[0], interceptors=[WrittenCallWarning(lambda: TOOLS)])
    events = await collect(talk.say("read a.py"))
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.text == "The model wrote a call of read_file as text instead of making it, so nothing was run."
    assert "--jinja" in notice.hint
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"


async def test_a_model_that_can_call_is_only_asked_to_try_again() -> None:
    provider = Script(says("", ("read_file", {"path": "a"})), says(CALLS["fence"]))
    talk = conversation(provider, TOOLS[0], interceptors=[WrittenCallWarning(lambda: TOOLS)])
    (notice,) = [event for event in await collect(talk.say("go")) if isinstance(event, Notice)]
    assert notice.hint == "Say “go on” to let it try again."
