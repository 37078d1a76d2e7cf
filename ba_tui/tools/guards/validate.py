"""Checks arguments of calls against the tool's JSON Schema, and schemas themselves. Draft 2020-12, no network.

The messages are for a model that has to correct its call.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.text.wording import clipped, did_you_mean, sentence, suggestion
from ba_tui.core.tool import Call, Tool
from ba_tui.settings.document import KeyPath

LARGEST = 10_000_000
DEEPEST = 100
SHOWN = 3


_FLAT = {"type", "properties", "required", "additionalProperties"}
_SIMPLE_TYPES: Mapping[str, tuple[type, str, str]] = {
    "string": (str, "minLength", "maxLength"),
    "integer": (int, "minimum", "maximum"),
    "boolean": (bool, "", ""),
}


class _Bounds(NamedTuple):
    """The range of a value, or of a text's length."""

    kind: type
    least: float
    most: float


class Checker:
    """Checks arguments against one schema. jsonschema is slow to import, so it loads in a thread, and only for
    arguments that a quick check does not accept."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._plain = _plain(schema)
        self._validator: Any = None

    async def complaint(self, args: Mapping[str, Any]) -> str | None:
        """Return what is wrong with ``args``; None if they are valid."""
        size, depth = _measure(args)
        if size > LARGEST:
            return f"The arguments are larger than {LARGEST // 1_000_000} MB."
        if depth > DEEPEST:
            return f"The arguments are nested deeper than {DEEPEST} levels."
        if self._fits(args):
            return None
        if self._validator is None:
            self._validator = await asyncio.to_thread(_validator, self._schema)
        found = list(dict.fromkeys(line for error in self._validator.iter_errors(dict(args)) for line in _lines(error)))
        if not found:
            return None
        more = f" … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return " ".join(found[:SHOWN]) + more

    def _fits(self, args: Mapping[str, Any]) -> bool:
        """Return whether ``args`` are complete and each value is simple and within its bounds, as in most calls."""
        if self._plain is None or not all(name in args for name in self._schema.get("required", ())):
            return False
        for name, value in args.items():
            bounds = self._plain.get(name)
            if bounds is None or type(value) is not bounds.kind:
                return False
            if not bounds.least <= (len(value) if bounds.kind is str else value) <= bounds.most:
                return False
        return True


def validate(tool: Tool) -> Tool:
    checker = Checker(tool.input_schema)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        if complaint := await checker.complaint(args):
            return failure("invalid_parameters", complaint)
        return await tool.run(args, call)

    return replace(tool, run=run)


def _plain(schema: Mapping[str, Any]) -> Mapping[str, _Bounds] | None:
    """Return the bounds of the text, integer and boolean parameters; None for a schema with further rules."""
    properties = schema.get("properties", {})
    if schema.keys() - _FLAT or schema.get("type") != "object" or not isinstance(properties, dict):
        return None
    found: dict[str, _Bounds] = {}
    for name, part in cast("dict[str, Any]", properties).items():
        match part:
            case {"type": "string" | "integer" | "boolean" as named, **more}:
                kind, low, high = _SIMPLE_TYPES[named]
                least, most = more.pop(low, -math.inf), more.pop(high, math.inf)
                more.pop("description", None)
                if not more and isinstance(least, int | float) and isinstance(most, int | float):
                    found[name] = _Bounds(kind, least, most)
            case _:
                pass
    return found


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.15 s, and only when a tool is first called

    return Draft202012Validator(schema)


def _measure(args: Mapping[str, Any]) -> tuple[int, int]:
    """Return the approximate size in bytes and the depth; stops counting at a limit."""
    size, deepest = 0, 0
    todo: list[tuple[Any, int]] = [(args, 1)]
    while todo and size <= LARGEST and deepest <= DEEPEST:
        value, depth = todo.pop()
        deepest = max(deepest, depth)
        match value:
            case str():
                size += len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
            case Mapping():
                items = cast("Mapping[Any, Any]", value).items()
                todo += [(item, depth + 1) for pair in items for item in pair]
            case list() | tuple():
                todo += [(item, depth + 1) for item in cast("list[Any]", value)]
            case _:
                size += 8
    return size, deepest


def _lines(error: Any) -> Iterator[str]:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    leads = {"required": f"{where or 'The call'} ", "type": f"{where or 'The arguments'}: "}
    lead = leads.get(error.validator, f"{where}: " if where else "")
    return (sentence(lead + text) for _, text in violations(error))


Complaint = tuple[KeyPath, str]
_PLAIN = {"type", "required", "additionalProperties", "$defs", "properties"}
"""Keywords that can be checked while some values of the object are unknown."""
_KINDS = {
    "str": "string ",
    "bool": "boolean ",
    "int": "integer ",
    "float": "number ",
    "list": "array ",
    "dict": "object ",
}


def schema_complaint(schema: Mapping[str, Any]) -> Complaint | None:
    """Return the place and reason of the first error in ``schema``."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.15 s, and only where there are workflows

    meta: Any = Draft202012Validator.META_SCHEMA
    found = complaints(dict(schema), meta) or complaints(None, schema, only_broken=True)
    return (found[0][0], f"is not a valid JSON Schema: {found[0][1]}") if found else None


def complaints(value: Any, schema: Mapping[str, Any], *, only_broken: bool = False) -> list[Complaint]:
    """Return where ``value`` violates ``schema``, with the expected value and the nearest name.

    ``only_broken``: report only errors in the schema itself.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - see above
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    nothing_else: Any = Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    validator: Any = Draft202012Validator(dict(schema), registry=nothing_else)
    try:
        found = [line for error in validator.iter_errors(value) for line in violations(error)]
    except Unresolvable as error:
        return [((), f"the schema refers to {error.ref}, which is not in it")]
    except (re.error, RecursionError) as error:
        return [((), f"the schema has a pattern or a reference that can't be used: {error}")]
    return [] if only_broken else found


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return ``value`` with the defaults of ``schema`` for missing fields, in nested objects too."""
    properties: Any = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return cast("Any", value)
    found = {**cast("dict[str, Any]", value)}
    for name, part in cast("dict[str, Any]", properties).items():
        inner = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        if name in found:
            found[name] = with_defaults(found[name], inner)
        elif "default" in inner:
            found[name] = inner["default"]
    return found


def literal_complaints(args: Mapping[str, Any], schema: Mapping[str, Any], unsure: Sequence[str]) -> list[Complaint]:
    """Return the complaints about arguments of which those in ``unsure`` are unknown before the run."""
    properties: Any = schema.get("properties", {})
    known = {name: True if name in unsure else part for name, part in dict(properties).items()}
    kept = {key: part for key, part in schema.items() if not unsure or key in _PLAIN}
    return complaints(dict(args), {**kept, "properties": known})


def violations(error: Any) -> Iterator[Complaint]:
    """Yield the complaints that a ValidationError of jsonschema contains."""
    at: KeyPath = tuple(error.absolute_path)
    schema, got, expected = error.schema, error.instance, error.validator_value
    match error.validator:
        case "required":
            for name in (name for name in expected if name not in got):
                part = schema.get("properties", {}).get(name)
                kind = f" ({part['type']})" if isinstance(part, dict) and "type" in part else ""
                yield at, f"lacks {name!r}{kind}"
        case "additionalProperties" if expected is False:
            known = list(schema.get("properties", {}))
            for name in sorted(set(got) - set(known)):
                yield (*at, name), f"unknown parameter {str(name)[:100]!r}; {suggestion(str(name), known)}"
        case "type":
            kinds = expected if isinstance(expected, str) else " or ".join(expected)
            yield at, f"expected {kinds}, got {_KINDS.get(got.__class__.__name__, '')}{as_json(got)}"
        case "enum":
            choices = [str(each) for each in expected]
            close = did_you_mean(str(got)[:100], choices)
            yield at, f"expected one of {', '.join(choices)}, got {as_json(got)}{close}"
        case "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "exclusiveMinimum":
            yield at, f"expected {error.validator} {expected}, got {as_json(got)}"
        case "anyOf" | "oneOf" if error.context:
            yield at, next(violations(error.context[0]))[1]
        case _:
            yield at, error.message[:300]


def as_json(value: Any) -> str:
    """Return ``value`` as JSON for a message, cut at 80 characters."""
    return clipped(json.dumps(value, ensure_ascii=False, default=str), 80)
