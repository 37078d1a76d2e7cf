"""Text that is JSON as values: read exactly, and taken apart into the nodes of a tree. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

LOOK = 200
"""Characters at either end in which a text shows whether it may be JSON."""
GROUP = 100
"""Items of an array that stand side by side; more are put into groups."""
LABEL = 400
_JSON = regex(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
"""Not the time or the tag that begins a line of a log."""


class JsonNumber(str):
    """A number as it was written: 1.10 stays 1.10, and nothing is rounded."""

    __slots__ = ()


@frozen
class JsonSlice:
    """A part of a long array, from item ``start`` on."""

    items: Sequence[Any]
    start: int


@frozen
class JsonNode:
    """``key``: its name or number within what holds it; empty for the whole."""

    key: str
    value: Any

    @property
    def branches(self) -> bool:
        """Whether it has children."""
        match self.value:
            case dict() | list():
                return bool(cast("dict[str, Any] | list[Any]", self.value))
            case str():
                return "\n" in self.value
            case _:
                return isinstance(self.value, JsonSlice)

    @property
    def children(self) -> list[JsonNode]:
        match self.value:
            case dict():
                return [JsonNode(key, item) for key, item in cast("dict[str, Any]", self.value).items()]
            case list():
                return _items(cast("list[Any]", self.value), 0)
            case JsonSlice(items=items, start=start):
                return _items(items, start)
            case str() if "\n" in self.value:
                return [JsonNode("", line) for line in self.value.split("\n")]
            case _:
                return []

    @property
    def label(self) -> tuple[str, str]:
        """Words for the value in one line, and their role among those of a RowView."""
        match self.value:
            case dict():
                return f"{{{count(len(cast('dict[str, Any]', self.value)), 'key')}}}", "muted"
            case list():
                return f"[{count(len(cast('list[Any]', self.value)), 'item')}]", "muted"
            case JsonSlice():
                return "", "muted"
            case JsonNumber():
                return self.value[:LABEL], "number"
            case str():
                text = paintable(self.value[:LABEL], newlines=False)
                return (text + ("…" if len(self.value) > LABEL else "") or '""'), "string"
            case _:
                return json.dumps(self.value), "keyword"


def _items(items: Sequence[Any], start: int) -> list[JsonNode]:
    if len(items) <= GROUP:
        return [JsonNode(str(start + at), item) for at, item in enumerate(items)]
    size = GROUP
    while size * GROUP < len(items):
        size *= GROUP
    groups: list[JsonNode] = []
    for at in range(0, len(items), size):
        part = items[at : at + size]
        groups.append(JsonNode(f"{start + at} … {start + at + len(part) - 1}", JsonSlice(part, start + at)))
    return groups


def looks_like_json(text: str) -> bool:
    """Whether ``text`` begins and ends as an object or array does; cheap, however long it is."""
    return _JSON.match(text) is not None and text[-LOOK:].rstrip()[-1:] in ("}", "]")


def begins_like_json(text: str) -> bool:
    """Whether ``text`` may be an object or array, coloured or not; without a look at the rest."""
    return paintable(text[:LOOK]).lstrip()[:1] in ("{", "[")


Parsed: TypeAlias = "dict[str, Any] | list[Any] | None"


def parsed_json(text: str) -> Parsed:
    """The object or array that ``text`` is, or the list of those on its lines; None when it is neither."""
    if not begins_like_json(text):
        return None
    text = paintable(text) if "\x1b" in text else text
    try:
        return _container(text)
    except (ValueError, RecursionError):
        pass
    lines = text.split("\n")
    try:
        values = [_container(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return None
    return values if values and None not in values else None


def _container(text: str) -> Parsed:
    value: object = json.loads(text, parse_int=JsonNumber, parse_float=JsonNumber)
    return cast("Parsed", value) if isinstance(value, dict | list) else None
