"""The tools that a reply may call: which tool a name means, its arguments by its JSON schema, and calls as JSON values.

Values are changed only where nothing is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import did_you_mean, sentence
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.providers.shapes import decode, fields, items, text_of
from ba_tui.providers.text_calls.json_dialects import JsonDecoder

Given: TypeAlias = "dict[str, Any] | str | None"
"""Arguments as they were written: by name, as one text, or none."""
LONGEST_NAME = 120
_PREFIX = regex(r"\A(?:functions?|tools?|default_api|api|multi_tool_use)\.(?=\w)")
_INDEX = regex(r":\d+\Z")
_NAME = regex(r"[A-Za-z_][\w.:/-]*\Z")
_OBJECT_LIKE = regex(r"""\A\{\s*(?:["'“]|\w+\s*:)""")
_NUMBERS = {
    "integer": regex(r"-?(?:0|[1-9]\d{0,300})\Z"),
    "number": regex(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?\Z"),
}


@frozen
class WrittenCall:
    """A call in a reply. ``problem``: why it can't be made, ``unknown`` if only its name is wrong; ``source``: its
    text; ``arguments``: text where no schema says to which parameter it belongs."""

    name: str
    arguments: dict[str, Any] | str
    problem: str = ""
    source: str = ""
    unknown: bool = False


class RequestTools:
    """The ``tools`` of the request. None: all names are accepted, and arguments are not converted."""

    def __init__(self, tools: Sequence[Tool] | None) -> None:
        self.open = tools is None
        self.schemas: Mapping[str, Mapping[str, Any]] = {tool.name: tool.input_schema for tool in tools or ()}
        self._plain = {_plain(name): name for name in self.schemas}
        names = "|".join(sorted(map(re.escape, self.schemas), key=len, reverse=True))
        self.tag = re.compile(rf"<(?P<name>{names})>" if names else "(?!)")
        """The tag of a call that is named like its tool."""

    def find(self, name: str) -> str:
        """Return the tool that ``name`` means, which may differ in case, dashes or decoration; else empty."""
        name = name.strip().strip("`*\"'[]")
        if name in self.schemas:
            return name
        name = _INDEX.sub("", _PREFIX.sub("", name)).removesuffix("()")
        if self.open:
            return name if 0 < len(name) <= LONGEST_NAME and "\n" not in name else ""
        return name if name in self.schemas else self._plain.get(_plain(name), "")

    def read(self, name: str, given: Given, source: str, *, textual: bool = False) -> WrittenCall:
        """Return the call, or its problem. ``textual``: values are text whose spelling does not show their types."""
        found = self.find(name)
        if not found:
            shown = name.strip()[:LONGEST_NAME]
            problem = "It names no tool."
            if shown:
                problem = sentence(f"There is no tool {shown!r}{did_you_mean(shown, self.schemas)}")
            named = _NAME.match(shown) is not None
            return WrittenCall(shown if named else "", given or {}, problem, source, unknown=named)
        if self.open:
            if textual and isinstance(given, dict):
                given = {key: _untyped(value) for key, value in given.items()}
            return WrittenCall(found, {} if given is None else given, source=source)
        arguments, problem = self._fitted(self.schemas[found], given)
        return WrittenCall(found, arguments, problem, source)

    def fits(self, call: WrittenCall) -> bool:
        """Whether the call has all arguments that the schema requires, and only those that it names."""
        schema = self.schemas.get(call.name)
        if call.problem or schema is None or not isinstance(call.arguments, dict):
            return self.open and not call.problem
        named = fields(schema.get("properties"))
        required: set[Any] = set(items(schema.get("required")))
        return required <= call.arguments.keys() and (call.arguments.keys() <= named.keys() or not named)

    def properties(self, name: str) -> frozenset[str]:
        """Return the parameters of a tool."""
        return frozenset(fields(self.schemas.get(self.find(name), {}).get("properties")))

    def parameter(self, name: str) -> str:
        """Return the only parameter to which a plain text can belong; empty when there are several or none."""
        return _sole(self.schemas.get(self.find(name), {}))

    def _fitted(self, schema: Mapping[str, Any], given: Given) -> tuple[dict[str, Any], str]:
        if given is None:
            return {}, ""
        if isinstance(given, str):
            return self._from_text(schema, given)
        named = fields(schema.get("properties"))
        required = items(schema.get("required"))
        fitted: dict[str, Any] = {}
        for key, value in given.items():
            wanted = _types(named.get(key))
            if value is None and key in named and key not in required and wanted and "null" not in wanted:
                # Many models write null for arguments that they leave out.
                continue
            fitted[key] = _coerced(value, wanted)
        return fitted, ""

    def _from_text(self, schema: Mapping[str, Any], text: str) -> tuple[dict[str, Any], str]:
        """Parse arguments that were written as one text: JSON, else the value of the only possible parameter."""
        named = fields(schema.get("properties"))
        if text.lstrip().startswith("{"):
            try:
                found, _ = JsonDecoder().value(text.strip())
            except ValueError as error:
                if object_like(text):
                    return {}, f"The arguments can't be read: {error}."
            else:
                if found.keys() <= named.keys() or not named:
                    return self._fitted(schema, found)
        if sole := _sole(schema):
            return {sole: _coerced(text, _types(named[sole]))}, ""
        if not text.strip():
            return {}, ""
        names = ", ".join(named)
        return {}, f"The arguments must be a JSON object with {names}." if names else "It takes no arguments."


def object_like(text: str) -> bool:
    """Whether ``text`` must be a JSON object, and not a text that begins with a brace."""
    return _OBJECT_LIKE.match(text.lstrip()) is not None


def _sole(schema: Mapping[str, Any]) -> str:
    named = fields(schema.get("properties"))
    candidates = [each for each in items(schema.get("required")) if each in named] or list(named)
    return candidates[0] if len(candidates) == 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def _types(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema allows; empty when it does not say."""
    whole = fields(schema)
    kinds = whole.get("type")
    named: set[str] = {kinds} if isinstance(kinds, str) else set(map(str, items(kinds)))
    for key in ("anyOf", "oneOf"):
        for each in items(whole.get(key)):
            named |= _types(each)
    if not named and isinstance(whole.get("enum"), list):
        named |= {"string"} if all(isinstance(each, str) for each in items(whole["enum"])) else set()
    return frozenset(named)


def _coerced(value: Any, wanted: frozenset[str]) -> Any:
    """Return ``value`` as one of the ``wanted`` types where its meaning stays the same; else unchanged."""
    if not wanted or isinstance(value, bool | None):
        return value
    if isinstance(value, str):
        return value if "string" in wanted else _from_string(value, wanted)
    if isinstance(value, float) and "number" not in wanted and "integer" in wanted and value.is_integer():
        return int(value)
    if isinstance(value, int) and wanted <= {"string", "null"}:
        return str(value)
    return value


def _untyped(value: Any) -> Any:
    try:
        return decode(value)
    except (ValueError, AttributeError):
        return value


def _from_string(text: str, wanted: frozenset[str]) -> Any:
    plain = text.strip()
    for kind, shape in _NUMBERS.items():
        if kind in wanted and shape.match(plain):
            return json.loads(plain)
    if "boolean" in wanted and plain.lower() in {"true", "false"}:
        return plain.lower() == "true"
    if "null" in wanted and plain.lower() in {"null", "none"}:
        return None
    try:
        found: object = decode(plain)
    except ValueError:
        return text
    kind = "object" if isinstance(found, dict) else "array" if isinstance(found, list) else ""
    return cast("object", found) if kind in wanted else text


# JSON values of calls: the keys under which models put a tool's name and arguments, and the objects around them.

NAMES = ("tool", "tool_name", "toolName", "name", "action", "function", "function_name", "recipient_name")
ARGUMENTS = (
    *("args", "arguments", "input", "parameters", "params", "action_input", "tool_input", "tool_args", "kwargs"),
    *("toolInput", "function_args", "action_args"),
)
WRAPPERS = ("tool_calls", "tool_uses", "function_call", "tool_call", "function_calls", "calls", "actions")
BESIDE = frozenset({"id", "type", "index", "call_id", "thought", "reason", "reasoning", "explanation", "output_level"})
"""Further keys of a call that are no arguments."""
KEYS = frozenset((*NAMES, *ARGUMENTS, *WRAPPERS, "type", "id", "thought"))
"""A call in JSON begins with one of these."""
FINAL = frozenset({"finalanswer", "final_answer", "final answer", "finish"})
DEEPEST = 4


@frozen
class JsonCalls:
    """The calls of a JSON value, or the final answer."""

    calls: tuple[WrittenCall, ...] = ()
    final: str | None = None


def calls_in_json(value: object, known: RequestTools, source: str, *, inline: bool = False) -> JsonCalls | None:
    """Return the calls in ``value``, or None. ``inline``: a call is expected, its arguments may be beside its name."""
    found = list(_flat(value, DEEPEST))
    calls: list[WrittenCall] = []
    for each in found:
        final = _final(each, known)
        if final is not None and len(found) == 1:
            return JsonCalls(final=final)
        call = _call(each, known, source, inline=inline)
        if call is None:
            return None
        calls.append(call)
    return JsonCalls(tuple(calls)) if calls else None


def _flat(value: object, depth: int) -> Iterator[dict[str, Any]]:
    """Return the objects in lists and wrappers that may be calls; an empty one for any other value."""
    if isinstance(value, list) and value and depth:
        for each in cast("list[Any]", value):
            yield from _flat(each, depth - 1)
        return
    whole = fields(cast("object", value))
    wrapped = next((whole[key] for key in WRAPPERS if isinstance(whole.get(key), dict | list)), None)
    if wrapped is not None and depth and not any(isinstance(whole.get(key), str) for key in NAMES):
        yield from _flat(wrapped, depth - 1)
        return
    inner = whole.get("function")
    # As in the API: {"type": "function", "function": {"name": …, "arguments": …}}
    yield cast("dict[str, Any]", inner) if isinstance(inner, dict) else whole


def _final(whole: dict[str, Any], known: RequestTools) -> str | None:
    name = next((whole[key] for key in NAMES if isinstance(whole.get(key), str)), "")
    if name.lower() not in FINAL or (not known.open and known.find(name)):
        return None
    given = next((whole[key] for key in ARGUMENTS if key in whole), None)
    if len(fields(given)) == 1:
        given = next(iter(fields(given).values()))
    return given if isinstance(given, str) else None


def _call(whole: dict[str, Any], known: RequestTools, source: str, *, inline: bool) -> WrittenCall | None:
    key = next((key for key in NAMES if isinstance(whole.get(key), str)), None)
    if key is None:
        return _keyed(whole, known, source)
    given_at = next((each for each in ARGUMENTS if each in whole), None)
    name = text_of(whole[key])
    rest = {each: whole[each] for each in whole if each not in (key, given_at)}
    if given_at is not None:
        if not rest.keys() <= BESIDE and not known.open:
            return None
        return known.read(name, _given(whole[given_at]), source)
    beside = {each: rest[each] for each in rest if each not in BESIDE or each in known.properties(name)}
    if not beside or (inline and beside.keys() <= known.properties(name)):
        return known.read(name, beside, source)
    return None


def _keyed(whole: dict[str, Any], known: RequestTools, source: str) -> WrittenCall | None:
    """Parse ``{"read_file": {"path": …}}``: a known tool's name as the only key."""
    if len(whole) != 1 or known.open:
        return None
    ((name, given),) = whole.items()
    return (
        known.read(name, cast("dict[str, Any]", given), source)
        if isinstance(given, dict) and known.find(name)
        else None
    )


def _given(value: object) -> Given:
    """Return arguments from their key; a value that is neither an object nor text becomes its JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if items(value) and len(items(value)) == 1 and isinstance(items(value)[0], dict):
        return fields(items(value)[0])
    return json.dumps(value)
