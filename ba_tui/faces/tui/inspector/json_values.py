"""JSON in the inspector: exact parsing, indented rows, and a tree whose branches open and close."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible

LOOK = 200
"""Characters at either end in which a text shows whether it may be JSON."""
GROUP = 100
"""Items of an array at one level; more are put into groups."""
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
    """``key``: its name or number in its parent; empty for the root."""

    key: str
    value: Any

    @property
    def branches(self) -> bool:
        """Return whether it has children."""
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
        """Return the value in one line, and its role in a RowView."""
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
    """Return whether ``text`` begins and ends as an object or array does; cheap, however long it is."""
    return _JSON.match(text) is not None and text[-LOOK:].rstrip()[-1:] in ("}", "]")


def begins_like_json(text: str) -> bool:
    """Return whether ``text`` may be an object or array, coloured or not; without a look at the rest."""
    return paintable(text[:LOOK]).lstrip()[:1] in ("{", "[")


Parsed: TypeAlias = "dict[str, Any] | list[Any] | None"


def parsed_json(text: str) -> Parsed:
    """Return the object or array that ``text`` is, or the list of those on its lines; None when it is neither."""
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


INDENT = "  "
PLAIN = {True: "true", False: "false", None: "null"}


def argument_rows(args: Mapping[str, Any]) -> list[GridRow]:
    """Return a row for each argument; longer texts and lists follow below the name."""
    return [row for key, value in args.items() for row in _entry(key + ":", value, 0)]


def json_rows(value: Any) -> list[GridRow]:
    """Return rows of a JSON value."""
    return list(_inside(inside, 0)) if (inside := _tree_container(value)) else [line(_scalar(value))]


def _entry(label: str, value: Any, depth: int) -> Iterator[GridRow]:
    key = (INDENT * depth + visible(label) + " ", "key")
    if isinstance(value, str) and "\n" in value:
        yield line(key)
        for text in value.split("\n"):
            yield line((visible(text), "string"), gutter=INDENT * (depth + 1))
    elif inside := _tree_container(value):
        yield line(key)
        yield from _inside(inside, depth + 1)
    else:
        yield line(key, _scalar(value))


def _tree_container(value: object) -> dict[str, Any] | list[Any] | None:
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


OPENED = 60
"""Rows up to which branches are open at first, the outer ones before the inner ones."""
KEY = 200
ROLES = ("key", "number", "string", "keyword", "muted")


class JsonView(Tree[JsonNode]):
    """Children are made when their branch is first opened. Enter is left to the screen."""

    DEFAULT_CSS = """
    JsonView {
        background: transparent;
        & > .json--key, & > .json--muted { color: $text-muted; }
        & > .json--number { color: $text-warning; }
        & > .json--string { color: $text-success; }
        & > .json--keyword { color: $text-accent; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"json--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "cursor_down", "Down", show=False),
        Binding("k,up", "cursor_up", "Up", show=False),
        Binding("g,home", "line(0)", "Top", show=False),
        Binding("G,end", "line(-1)", "End", show=False),
        Binding("space", "toggle_node", "Open or close", show=False),
        Binding("right", "unfold", "Open", show=False),
        Binding("left", "fold", "Close, or to what holds it", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
    ]

    def __init__(self, value: object, *, id: str | None = None) -> None:
        root = JsonNode("", value)
        super().__init__(Text(root.label[0]), root, id=id)
        self.guide_depth = 3

    def on_mount(self) -> None:
        """Open the outer branches, as many as fit about one screen."""
        waiting, rows = deque([self.root]), 1
        while waiting:
            node = waiting.popleft()
            size = len(node.data.children) if node.data else 0
            if node is not self.root and rows + size > OPENED:
                break
            rows += size
            self._fill(node)
            node.expand()
            waiting += [child for child in node.children if child.allow_expand]

    def _on_tree_node_expanded(self, event: Tree.NodeExpanded[JsonNode]) -> None:
        self._fill(event.node)

    def _fill(self, node: TreeNode[JsonNode]) -> None:
        if node.children or node.data is None:
            return
        for child in node.data.children:
            node.add(Text(child.key), child, allow_expand=child.branches)

    def render_label(self, node: TreeNode[JsonNode], base_style: Style, style: Style) -> Text:
        """Return the key, then the value in the colour of its kind."""
        text = Text(no_wrap=True)
        if node.allow_expand:
            text.append(self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE, base_style)
        if node.data is None:
            return text
        key, (words, role) = paintable(node.data.key[:KEY], newlines=False), node.data.label
        text.append(f"{key}{': ' if words else ''}" if key else "", style + self._ink("key"))
        text.append(words, style + self._ink(role))
        return text

    def _ink(self, role: str) -> Style:
        return self.get_component_rich_style(f"json--{role}", partial=True)

    def action_line(self, number: int) -> None:
        """Put the cursor on the first line (0) or the last (-1)."""
        self.cursor_line = number if number >= 0 else self.last_line
        self.scroll_to_line(self.cursor_line, animate=False)

    def action_unfold(self) -> None:
        """Open the branch at the cursor."""
        if (node := self.cursor_node) and node.allow_expand:
            node.expand()

    def action_fold(self) -> None:
        """Close the branch at the cursor, or go to its parent."""
        node = self.cursor_node
        if node and node.is_expanded and node.allow_expand:
            node.collapse()
        else:
            self.action_cursor_parent()
