"""Arguments and other JSON values as indented ``key: value`` rows, text shown whole. Exact, never shortened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ba_tui.faces.tui.inspector.rows import GridRow, line, visible

INDENT = "  "
PLAIN = {True: "true", False: "false", None: "null"}


def argument_rows(args: Mapping[str, Any]) -> list[GridRow]:
    """Every argument; text of several lines stands below its name, one list item a row."""
    return [row for key, value in args.items() for row in _entry(key + ":", value, 0)]


def json_rows(value: Any) -> list[GridRow]:
    """Any JSON value."""
    return list(_inside(inside, 0)) if (inside := _container(value)) else [line(_scalar(value))]


def _entry(label: str, value: Any, depth: int) -> Iterator[GridRow]:
    key = (INDENT * depth + visible(label) + " ", "key")
    if isinstance(value, str) and "\n" in value:
        yield line(key)
        for text in value.split("\n"):
            yield line((visible(text), "string"), gutter=INDENT * (depth + 1))
    elif inside := _container(value):
        yield line(key)
        yield from _inside(inside, depth + 1)
    else:
        yield line(key, _scalar(value))


def _container(value: object) -> dict[str, Any] | list[Any] | None:
    return cast("dict[str, Any] | list[Any]", value) if isinstance(value, dict | list) else None


def _inside(value: dict[str, Any] | list[Any], depth: int) -> Iterator[GridRow]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{key}:", item, depth)
    else:
        for item in value:
            if isinstance(item, dict) and item:
                for index, (key, part) in enumerate(cast("dict[str, Any]", item).items()):
                    yield from _entry(f"{'  ' if index else '- '}{key}:", part, depth)
            else:
                yield from _entry("-", item, depth)


def _scalar(value: Any) -> tuple[str, str]:
    match value:
        case str():
            return (visible(value), "string") if value else ('""', "muted")
        case bool() | None:
            return PLAIN[value], "keyword"
        case int() | float():
            return repr(value), "number"
        case Mapping() | Sequence():
            return ("{}" if isinstance(value, Mapping) else "[]"), "muted"
        case _:
            return visible(str(cast("object", value))), ""
