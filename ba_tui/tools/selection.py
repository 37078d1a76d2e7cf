"""The tools of an agent that is not given all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ba_tui.core.effects import Ceiling, Effect
from ba_tui.core.tool import Tool, Toolset


class SelectedTools:
    """core.tool.Toolset: those of ``all_tools`` that ``names`` has, None for all, and that ``ceiling`` lets it call."""

    def __init__(self, all_tools: Toolset, names: Collection[str] | None, ceiling: Ceiling) -> None:
        self._all = all_tools
        self._names = names
        self._ceiling = ceiling
        self._read: tuple[Sequence[Tool], tuple[Tool, ...]] = ((), ())

    def visible(self) -> Sequence[Tool]:
        """The same tuple until one joins it."""
        if (now := self._all.visible()) is not self._read[0]:
            self._read = (now, tuple(tool for tool in now if self._has(tool)))
        return self._read[1]

    def find(self, name: str) -> Tool | None:
        tool = self._all.find(name)
        return tool if tool and self._has(tool) else None

    def _has(self, tool: Tool) -> bool:
        named = self._ceiling.may_call(tool.name) and (self._names is None or tool.name in self._names)
        # Commands stay: under a ceiling without their effect they run as readers.
        return named and (tool.effect is Effect.EXECUTE or tool.effect in self._ceiling.effects)
