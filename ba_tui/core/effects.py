"""What a call can do at worst, and what the calls of an agent may do at most. Who enforces it is elsewhere."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from ba_tui.core.values import frozen


class Effect(StrEnum):
    """The worst a tool can do; drives permission and parallel running."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"


@frozen
class Ceiling:
    """The most that an agent may do, whatever rules, modes and answers allow besides.

    ``effects``: those that its calls may have. ``tools``: the names of the tools that it may call; None: all of them.
    ``without``: the names of tools that it may not call all the same. ``outside``: whether its commands may run outside
    the sandbox.
    """

    effects: frozenset[Effect] = frozenset(Effect)
    tools: frozenset[str] | None = None
    outside: bool = True
    without: frozenset[str] = frozenset()

    def within(self, other: Ceiling) -> Ceiling:
        """Return the ceiling that allows only what both allow."""
        mine, theirs = self.tools, other.tools
        tools = theirs if mine is None else mine if theirs is None else mine & theirs
        outside, without = self.outside and other.outside, self.without | other.without
        return Ceiling(self.effects & other.effects, tools, outside, without)

    def may_call(self, tool: str) -> bool:
        """Return whether the tool of that name may be called, as far as names go."""
        return tool not in self.without and (self.tools is None or tool in self.tools)

    def of_any_tool(self) -> Ceiling:
        """Return the ceiling for what a tool that may be called does by the way, such as reaching a host."""
        return replace(self, tools=None, without=frozenset())


UNLIMITED = Ceiling()
READ_ONLY = Ceiling(frozenset({Effect.READ}), outside=False)
