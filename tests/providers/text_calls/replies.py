"""Replies as models write them, written for these tests after the formats of the model families.

``MARKED`` and ``LABELLED``: a call, and what it should be read as. ``PROSE``: replies that hold none.
"""

from __future__ import annotations

from typing import Any

PATH: dict[str, Any] = {"path": "a.txt"}
ONE = [("read_file", PATH)]
LIMITED = [("read_file", {"path": "a.txt", "limit": 5})]
TWO = [*ONE, ("now", {})]


MARKED = {
    "hermes": ('<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>', ONE),
    "hermes, no end": ('<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}', ONE),
    "hermes, twice": (
        '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>\n'
        '<tool_call>{"name": "now", "arguments": {}}</tool_call>',
        TWO,
    ),
    "hermes, two in one": (
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n{"name": "now", "arguments": {}}\n'
        "</tool_call>",
        TWO,
    ),
    "arguments as a string": (
        '<tool_call>{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}</tool_call>',
        ONE,
    ),
    "lists": ('<tool_calls>[{"name": "read_file", "arguments": {"path": "a.txt"}}, {"name": "now"}]</tool_calls>', TWO),
    "capitals": ('<TOOLCALL>[{"name": "read_file", "arguments": {"path": "a.txt"}}]</TOOLCALL>', ONE),
    "granite": ('<|tool_call|>[{"name": "read_file", "arguments": {"path": "a.txt"}}]', ONE),
    "function call": ('<function_call> {"name": "read_file", "arguments": {"path": "a.txt"}}', ONE),
    "llama": ('<|python_tag|>{"name": "read_file", "parameters": {"path": "a.txt"}}<|eom_id|>', ONE),
    "llama, python": ('<|python_tag|>read_file.call(path="a.txt")', ONE),
    "llama, functions": ('<function=read_file>{"path": "a.txt"}</function>', ONE),
    "llama, list": ('<|python_start|>[read_file(path="a.txt"), now()]<|python_end|>', TWO),
    "mistral": ('[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.txt"}}]', ONE),
    "mistral, arguments": ('[TOOL_CALLS]read_file[ARGS]{"path": "a.txt"}now[ARGS]{}', TWO),
    "mistral, id": ('[TOOL_CALLS]read_file[CALL_ID]x1y2z3[ARGS]{"path": "a.txt"}', ONE),
    "mistral, bare": ('[TOOL_CALLS]read_file{"path": "a.txt"}', ONE),
    "functools": ('functools[{"name": "read_file", "arguments": {"path": "a.txt"}}]', ONE),
    "qwen coder": (
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=limit>\n5\n</parameter>\n"
        "</function>\n</tool_call>",
        LIMITED,
    ),
    "qwen coder, unclosed": ("<function=read_file>\n<parameter=path>a.txt\n<parameter=limit>5\n</function>", LIMITED),
    "seed": ("<seed:tool_call><function=read_file><parameter=path>a.txt</parameter></function></seed:tool_call>", ONE),
    "minicpm": (
        '<function name="read_file"><param name="path">a.txt</param><param name="limit">5</param></function>',
        LIMITED,
    ),
    "glm": (
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n<arg_key>limit</arg_key>\n"
        "<arg_value>5</arg_value>\n</tool_call>",
        LIMITED,
    ),
    "glm, nothing": ("<tool_call>now\n</tool_call>", [("now", {})]),
    "longcat": (
        "<longcat_tool_call>read_file<longcat_arg_key>path</longcat_arg_key>"
        "<longcat_arg_value>a.txt</longcat_arg_value></longcat_tool_call>",
        ONE,
    ),
    "claude": (
        '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n</invoke>\n'
        '<invoke name="now">\n</invoke>\n</function_calls>',
        TWO,
    ),
    "minimax": (
        '<minimax:tool_call><invoke name="read_file"><parameter name="path">a.txt</parameter></invoke>'
        "</minimax:tool_call>",
        ONE,
    ),
    "tool use": ('<tool_use><name>read_file</name><arguments>{"path": "a.txt"}</arguments></tool_use>', ONE),
    "tool use, tags": (
        "<tool_use><tool_name>read_file</tool_name><parameters><path>a.txt</path></parameters></tool_use>",
        ONE,
    ),
    "langchain": ("<tool>shell</tool><tool_input>ls -l</tool_input>", [("shell", {"command": "ls -l"})]),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n"
        '{"path": "a.txt"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        ONE,
    ),
    "deepseek, newer": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.txt"}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        TWO,
    ),
    "deepseek, tags": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n'
        '<｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="limit" string="false">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        LIMITED,
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
        '{"path": "a.txt"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        TWO,
    ),
    "kimi, tags": (
        '<|open|>tools<|sep|><|open|>call tool="read_file" index="1"<|sep|><|open|>argument key="path" type="string"'
        "<|sep|>a.txt<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        ONE,
    ),
    "harmony": (
        '<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a.txt"}<|call|>',
        ONE,
    ),
    "gemma": ("<start_function_call>call:read_file{path:<escape>a.txt<escape>,limit:5}<end_function_call>", LIMITED),
    "gemma, newer": ('<|tool_call>call:read_file{path:<|"|>a.txt<|"|>}<tool_call|>', ONE),
    "lfm": ('<|tool_call_start|>[read_file(path="a.txt"), now()]<|tool_call_end|>', TWO),
    "lm studio": ('[TOOL_REQUEST]{"name": "read_file", "arguments": {"path": "a.txt"}}[END_TOOL_REQUEST]', ONE),
}
LABELLED = {
    "react": ('Thought: I look.\nAction: read_file\nAction Input: {"path": "a.txt"}', ONE),
    "react, json": ('Thought: I look.\nAction: {"tool": "read_file", "args": {"path": "a.txt"}}', ONE),
    "react, name and input": ('Action: {"action": "read_file", "action_input": {"path": "a.txt"}}', ONE),
    "react, flat": ('Action: {"tool": "read_file", "path": "a.txt"}', ONE),
    "react, text": ("Action: shell\nAction Input: ls -l", [("shell", {"command": "ls -l"})]),
    "react, quotes": ('Action: shell\nAction Input: "ls -l"', [("shell", {"command": "ls -l"})]),
    "react, fence": ('Action:\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```', ONE),
    "react, code": ("Action: shell\nAction Input:\n```bash\nls\nwc a\n```", [("shell", {"command": "ls\nwc a"})]),
    "react, bold": ('**Action:** `read_file`\n**Action Input:** {"path": "a.txt"}', ONE),
    "react, small": ('action: read_file\naction_input: {"path": "a.txt"}', ONE),
    "react, lines": ('Action:\n    read_file\n\nAction Input:\n    {\n  "path": "a.txt"\n}\n', ONE),
    "react, one line": ('Action: read_file Action Input: {"path": "a.txt"}', ONE),
    "react, call": ('Action: read_file(path="a.txt", limit=5)', LIMITED),
    "react, brackets": ("Action: read_file[a.txt]", ONE),
    "react, beside": ('Action: read_file {"path": "a.txt"}', ONE),
    "react, several": (
        'Action: {"tool": "read_file", "args": {"path": "a.txt"}}\nAction: {"tool": "now", "args": {}}',
        TWO,
    ),
    "react, in a fence": ('```\nThought: I look.\nAction: read_file\nAction Input: {"path": "a.txt"}\n```', ONE),
    "a tool's tag": ("<read_file>\n<path>a.txt</path>\n<limit>5</limit>\n</read_file>", LIMITED),
    "labelled block": ('```tool_call\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```\nThat shows it.', ONE),
    "tool code": ('```tool_code\nread_file(path="a.txt")\nnow()\n```', TWO),
    "block": ('I look.\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```', ONE),
    "block, the api's": (
        '```json\n{"type": "function", "function": {"name": "read_file", '
        '"arguments": "{\\"path\\": \\"a.txt\\"}"}}\n```',
        ONE,
    ),
    "block, wrapped": ('```json\n{"tool_calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}\n```', ONE),
    "block, the tool as key": ('```json\n{"read_file": {"path": "a.txt"}}\n```', ONE),
    "blocks": (
        '```json\n{"tool": "read_file", "args": {"path": "a.txt"}}\n```\n```json\n{"tool": "now", "args": {}}\n```',
        TWO,
    ),
    "block, python": ('```python\nread_file("a.txt")\n```', ONE),
    "json alone": ('{"name": "read_file", "parameters": {"path": "a.txt"}}', ONE),
    "list alone": ('[{"name": "read_file", "arguments": {"path": "a.txt"}}, {"name": "now", "arguments": {}}]', TWO),
    "python alone": ('read_file(path="a.txt")', ONE),
    "python list alone": ('[read_file(path="a.txt", limit=5)]', LIMITED),
}


_HERMES = '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>'
SPOKEN_OF = {
    "between double backticks": "The tag of the tool: ``<read_file><path>a.txt</path></read_file>``.",
    "in a sentence": f"Hermes models write {_HERMES} and the server parses that.",
    "in a table": f"| form | example |\n|---|---|\n| hermes | {_HERMES} |",
    "in a list": f"- Hermes: {_HERMES}\n- ReAct: labels in front of everything",
    "in a quotation": f"The log says:\n\n> {_HERMES}\n",
    "in indented code": f"Write this:\n\n    {_HERMES}\n\nand run it.",
    "in a diff": f"```diff\n+{_HERMES}\n```",
    "in a string": f"```python\nprompt = '{_HERMES}'\n```",
    "in an observation": f"Observation: {_HERMES}",
    "on a line of its own in an observation": f"Observation: the page says\n{_HERMES}",
}
"""What no model means as a call, however it was asked."""
EXPLAINED = {
    "markup in the middle": 'The page has:\n<tool name="read_file"><path>a.txt</path></tool>\nThat is its markup.',
    "steps explained": (
        'In ReAct a step looks as follows.\n\nAction: read_file\nAction Input: {"path": "a.txt"}\n'
        "Observation: its content\n\nThe loop goes on until a final answer."
    ),
}
"""What only a model that was asked for calls in text can mean as one."""
PROSE = {
    "an example": 'For example:\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```',
    "an explanation": (
        "Qwen writes:\n```json\n"
        '{"name": "read_file", "arguments": {"path": "a.txt"}}\n```\nThe server reads that and calls the tool.'
    ),
    "what one could do": (
        "To see it you can use read_file with this call:\n"
        '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'
    ),
    "code span": 'Hermes writes `<tool_call>{"name": "now", "arguments": {}}</tool_call>` for a call.',
    "code": 'Then run it:\n```python\nfrom ba import read_file\nprint(read_file(path="a.txt"))\n```',
    "marks in code": (
        'A template:\n```xml\n<tool_call>\n{"name": "NAME", "arguments": {}}\n</tool_call>\n```\nFill it in.'
    ),
    "json of another kind": 'Here is the file:\n```json\n{"name": "grep", "version": "1.0", "bin": "grep"}\n```',
    "a list of people": '[{"name": "Ann", "age": 3}, {"name": "Bob", "age": 4}]',
    "a name in passing": "I can use the `read_file` tool, or <function=read_file>, to reach the goal.",
    "html": 'Use <input name="path"> inside of <form action="now"> and <function> is no tag.',
    "thinking": '<think>Shall I <tool_call>{"name": "now", "arguments": {}}</tool_call>?</think>No.',
    "another tool's": '<tool_call>{"name": "fly", "arguments": {"to": "Paris"}}</tool_call>',
}
