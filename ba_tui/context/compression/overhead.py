"""What every request of one agent carries beside its conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ba_tui.core.tool import Tool
from ba_tui.providers.tokens.in_use import Tokens


class RequestOverhead:
    """The system prompt and the tools that the model is told of, as ``head`` has them now."""

    def __init__(self, head: Callable[[], tuple[str, Sequence[Tool]]], tokens: Tokens) -> None:
        self._head = head
        self._tokens = tokens

    def tokens(self) -> int:
        system, tools = self._head()
        return self._tokens.text(system) + self._tokens.count_tools(tools)

    def size(self) -> int:
        """In bytes."""
        system, tools = self._head()
        shown = (f"{tool.name}{tool.description}{tool.input_schema}" for tool in tools)
        return sum(len(text.encode()) for text in (system, *shown))
