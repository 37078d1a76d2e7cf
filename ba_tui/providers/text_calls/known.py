"""The tools that a reply may call: which one a name means, and its arguments as its JSON schema wants them.

How calls are written is not known here. What is changed is changed only where nothing of it is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import did_you_mean, sentence
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import Decoder
from ba_tui.providers.wire.shapes import decode, fields, items

Given: TypeAlias = "dict[str, Any] | str | None"
"""Arguments as they were written: by name, as one text, or none at all."""
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
class Written:
    """A call as a reply has it. ``problem`` says why it can't be made, ``source`` is the text it was read from.

    ``arguments`` is text where no schema says which parameter it belongs to. ``unknown``: the problem is that no tool
    has this name, and nothing else.
    """

    name: str
    arguments: dict[str, Any] | str
    problem: str = ""
    source: str = ""
    unknown: bool = False


class Known:
    """``tools`` of the request. None: every name will do, and no arguments are fitted, since nothing is known."""

    def __init__(self, tools: Sequence[Tool] | None) -> None:
        self.open = tools is None
        self.schemas: Mapping[str, Mapping[str, Any]] = {tool.name: tool.input_schema for tool in tools or ()}
        self._plain = {_plain(name): name for name in self.schemas}
        names = "|".join(sorted(map(re.escape, self.schemas), key=len, reverse=True))
        self.tag = re.compile(rf"<(?P<name>{names})>" if names else "(?!)")
        """The tag of a call that is named like its tool."""

    def find(self, name: str) -> str:
        """The tool that ``name`` means: itself, or the one that differs in case, dashes or decoration. Else empty."""
        name = name.strip().strip("`*\"'[]")
        if name in self.schemas:
            return name
        name = _INDEX.sub("", _PREFIX.sub("", name)).removesuffix("()")
        if self.open:
            return name if 0 < len(name) <= LONGEST_NAME and "\n" not in name else ""
        return name if name in self.schemas else self._plain.get(_plain(name), "")

    def read(self, name: str, given: Given, source: str, *, textual: bool = False) -> Written:
        """The call of ``name`` with what was ``given``, or why there can't be one.

        ``textual``: the values stand as text between tags, so that their types are not known from how they are written.
        """
        found = self.find(name)
        if not found:
            shown = name.strip()[:LONGEST_NAME]
            problem = "It names no tool."
            if shown:
                problem = sentence(f"There is no tool {shown!r}{did_you_mean(shown, self.schemas)}")
            named = _NAME.match(shown) is not None
            return Written(shown if named else "", given or {}, problem, source, unknown=named)
        if self.open:
            if textual and isinstance(given, dict):
                given = {key: _untyped(value) for key, value in given.items()}
            return Written(found, {} if given is None else given, source=source)
        arguments, problem = self._fitted(self.schemas[found], given)
        return Written(found, arguments, problem, source)

    def fits(self, call: Written) -> bool:
        """Whether all that the schema requires is there, and nothing that it does not name."""
        schema = self.schemas.get(call.name)
        if call.problem or schema is None or not isinstance(call.arguments, dict):
            return self.open and not call.problem
        named = fields(schema.get("properties"))
        required: set[Any] = set(items(schema.get("required")))
        return required <= call.arguments.keys() and (call.arguments.keys() <= named.keys() or not named)

    def properties(self, name: str) -> frozenset[str]:
        """The parameters of a tool."""
        return frozenset(fields(self.schemas.get(self.find(name), {}).get("properties")))

    def parameter(self, name: str) -> str:
        """The one parameter of a tool that a bare text can only belong to; empty when there are more, or none."""
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
                # Many models write out what they leave away.
                continue
            fitted[key] = _coerced(value, wanted)
        return fitted, ""

    def _from_text(self, schema: Mapping[str, Any], text: str) -> tuple[dict[str, Any], str]:
        """Arguments that were written as one text: JSON, else the one parameter that can only be meant."""
        named = fields(schema.get("properties"))
        if text.lstrip().startswith("{"):
            try:
                found, _ = Decoder().value(text.strip())
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
    """Whether ``text`` can only have been meant as a JSON object, and not as a text that begins with a brace."""
    return _OBJECT_LIKE.match(text.lstrip()) is not None


def _sole(schema: Mapping[str, Any]) -> str:
    named = fields(schema.get("properties"))
    candidates = [each for each in items(schema.get("required")) if each in named] or list(named)
    return candidates[0] if len(candidates) == 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def _types(schema: object) -> frozenset[str]:
    """The JSON types that a schema lets through; empty when it does not say."""
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
    """``value`` as one of the ``wanted`` types, where it says the same in both; else as it is."""
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
