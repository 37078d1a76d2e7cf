"""Tool calls that a model wrote as text: recognised, and reported instead of ending the turn in silence.

Nothing is run from such text. Only a call at the end of an answer counts: an example within an explanation is none.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ba_tui.core.events import Notice
from ba_tui.core.messages import Message
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.providers.wire.shapes import arguments, fields, items, text_of

LONGEST = 60_000
"""Characters at the end of an answer that are searched."""
STARTS = 40
"""Places where a JSON value may begin that are tried, the last ones first."""
NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "action_input", "tool_input", "kwargs")
_TAIL = regex(r"(?:\s|`{3,}|</?[a-z_:|]+>|<\|[a-z_|]+\|>|[\]}])*\Z", re.IGNORECASE)
"""What models write behind a call: the end of a fence, closing tags, special tokens, a bracket too many."""
_START = regex(r"[\[{]")
_BEFORE = regex(
    r"(?:<function=|<invoke name=\"|<tool name=\"|>>>|\[TOOL_CALLS\]|functions\.|Action:\s*)([\w.-]{1,64})"
    r"(?:\s|<\|\w+\|>|[\">:`]|\[ARGS\]|Action Input|json|\d)*\Z"
)
_TAGGED = regex(
    r"<(?:function=|invoke name=\"|tool name=\")([\w.-]{1,64})\"?>((?:(?!<function=|<invoke ).)*>)\Z", re.DOTALL
)
_PARAMETER = regex(r"<parameter(?:=| name=\")([\w.-]{1,64})\"?>")
_CODE = regex(
    r"(?:\A(?:```(?:tool_code|python)?\s*\n)?|```tool_code\s*\n|<\|python_tag\|>|<tool_code>)\s*\[?\s*"
    r"((?:print\()?[A-Za-z_]\w{0,63}\()"
)
_CODE_END = regex(r"```|</|<\|")
HINT = "Choose a model or a server template with tool calling (llama.cpp: start it with --jinja)."
AGAIN = "Say “go on” to let it try again."


def call_in_text(text: str, tools: Sequence[Tool]) -> str:
    """Return the name of the tool that ``text`` ends with a call of; empty when it ends with none.

    The name must be that of one of ``tools`` and the arguments must fit it roughly: all that it requires, and at most
    as many unknown ones as known.
    """
    tail = text[-LONGEST:].rstrip()
    schemas = {tool.name: tool.input_schema for tool in tools if tool.name in tail}
    if not schemas:
        return ""
    calls = (*_json_calls(tail, schemas), *_tagged_calls(tail), *_code_calls(tail))
    return next((name for name, args in calls if name in schemas and _fits(args, schemas[name])), "")


def _json_calls(tail: str, names: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    decode = json.JSONDecoder(strict=False).raw_decode
    starts = [match.start() for match in _START.finditer(tail)]
    for start in reversed(starts[-STARTS:]):
        # The last brace is what small models leave out.
        whole = tail[start:] + "}"
        try:
            value, end = decode(whole)
        except (ValueError, RecursionError):
            continue
        if not _TAIL.match(whole, end):
            continue
        if before := _BEFORE.search(tail[max(0, start - 120) : start]):
            yield before[1], fields(value)
        for each in map(fields, items(value) or [value]):
            yield from _named(each, names)


def _named(value: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The call that an object stands for, in one of the shapes that models were trained on."""
    inner = fields(value.get("function")) or fields(value.get("function_call")) or fields(value.get("tool_call"))
    found = inner or value
    key = next((key for key in NAMES if text_of(found.get(key)).removeprefix("functions.") in names), "")
    if key:
        rest = {other: found[other] for other in found.keys() - {key, "type", "id"}}
        given = next((found[other] for other in ARGUMENTS if other in found), rest)
        yield found[key].removeprefix("functions."), arguments(given)[0]
    elif len(value) == 1 and (name := next(iter(value))) in names:
        yield name, fields(value[name])


def _tagged_calls(tail: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``<function=NAME><parameter=KEY>value</parameter></function>``, and the same with ``invoke name``."""
    if found := _TAGGED.search(tail):
        yield found[1], dict.fromkeys(_PARAMETER.findall(found[2]), "")


def _code_calls(tail: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``[NAME(key=value)]`` as the whole answer, or as a block of code at its end."""
    for found in _CODE.finditer(tail):
        code = _CODE_END.split(tail[found.start(1) :], maxsplit=1)[0].strip().removesuffix("]")
        if not _TAIL.match(tail, found.start(1) + len(code)):
            continue
        try:
            value = ast.parse(code, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print" and value.args:
            value = value.args[0]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
            yield value.func.id, {keyword.arg: "" for keyword in value.keywords if keyword.arg}


def _fits(args: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known = fields(schema.get("properties")).keys()
    strangers = len(args.keys() - known)
    return set(items(schema.get("required"))) <= args.keys() and strangers <= len(args) - strangers


class TextCalls:
    """core.agent.Interceptor: tells the person when the model wrote a tool call as text, which ends the turn."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools

    async def before(self, branch: Branch) -> None:
        """Nothing to add before a request."""

    async def after(self, reply: Message, branch: Branch) -> None:
        if not (name := call_in_text(reply.text, self._tools())):
            return
        # A model that called tools before can do it: this time it slipped.
        able = any(message.calls and message.model == reply.model for message in branch.transcript.messages)
        what = f"The model wrote a call of {name} as text instead of making it, so nothing was run."
        branch.emit(Notice(what, "warning", AGAIN if able else HINT))
