"""What every request of one agent carries beside its conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ba_tui.core.tool import Tool
from ba_tui.providers.tokens.in_use import Tokens


class RequestOverhead:
    """The system prompt and the tools that the model is told of."""

    def __init__(self, system: str, tools: Callable[[], Sequence[Tool]], tokens: Tokens) -> None:
        self._system = system
        self._tools = tools
        self._tokens = tokens

    def tokens(self) -> int:
        return self._tokens.text(self._system) + self._tokens.count_tools(self._tools())

    def size(self) -> int:
        """In bytes."""
        shown = (f"{tool.name}{tool.description}{tool.input_schema}" for tool in self._tools())
        return sum(len(text.encode()) for text in (self._system, *shown))
