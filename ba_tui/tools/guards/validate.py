"""Checks arguments against the tool's schema before anything else happens with them.

The messages are for a model that shall correct its call. How a misfit is worded stands in planning/schemas.py.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Call, Tool

LARGEST = 10_000_000
DEEPEST = 100
SHOWN = 3


_FLAT = {"type", "properties", "required", "additionalProperties"}
_PLAIN: Mapping[str, tuple[type, str, str]] = {
    "string": (str, "minLength", "maxLength"),
    "integer": (int, "minimum", "maximum"),
    "boolean": (bool, "", ""),
}


class _Bounds(NamedTuple):
    """Of a value, or of the length of a text."""

    kind: type
    least: float
    most: float


class Checker:
    """One tool's schema. jsonschema takes long to import, so it is loaded off the loop, and only for a call that does
    not plainly fit."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._plain = _plain(schema)
        self._validator: Any = None

    async def complaint(self, args: Mapping[str, Any]) -> str | None:
        """What is wrong with ``args``; None when nothing is."""
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
        """Whether nothing is missing and all that is there is plain and within its bounds, as in most calls."""
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
    """The parameters that are text, a whole number, or yes and no, within bounds; None where a schema says more than
    which there are."""
    properties = schema.get("properties", {})
    if schema.keys() - _FLAT or schema.get("type") != "object" or not isinstance(properties, dict):
        return None
    found: dict[str, _Bounds] = {}
    for name, part in cast("dict[str, Any]", properties).items():
        match part:
            case {"type": "string" | "integer" | "boolean" as named, **more}:
                kind, low, high = _PLAIN[named]
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
    """About how many bytes, and how many levels deep; stops counting where a limit is passed."""
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
    from ba_tui.tools.schemas import violations  # noqa: PLC0415 - most calls fit

    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    leads = {"required": f"{where or 'The call'} ", "type": f"{where or 'The arguments'}: "}
    lead = leads.get(error.validator, f"{where}: " if where else "")
    return (sentence(lead + text) for _, text in violations(error))
