"""A JSON value as a tree whose branches open and close. Reading the text is json_values.py's business."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.inspector.json_values import JsonNode

OPENED = 60
"""Rows up to which branches are open at first, the outer ones before the inner ones."""
KEY = 200
ROLES = ("key", "number", "string", "keyword", "muted")


class JsonView(Tree[JsonNode]):
    """Children are made when their branch is first opened. Enter belongs to whoever shows it."""

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
        """The key, then the value in the colour of its kind."""
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
        """Close the branch at the cursor, or go to the one that holds it."""
        node = self.cursor_node
        if node and node.is_expanded and node.allow_expand:
            node.collapse()
        else:
            self.action_cursor_parent()
