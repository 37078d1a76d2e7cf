"""Copies of the project in which sub-agents work (``isolation: worktree``), and what a copy lacks in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ba_tui.core.agent_spec import ProjectCopy

SHOWN = 8
"""Files that are named."""


class AgentCopies(Protocol):
    """The copies of one session, one for each isolated agent. An agent is called as in events."""

    async def make(self, agent_id: str) -> ProjectCopy:
        """Copy the project. Raises BaError, saying why there can be no copy."""
        ...

    async def find(self, agent_id: str) -> ProjectCopy:
        """The copy that the agent worked in. Raises UsageError when it is gone."""
        ...

    async def told(self, agent_id: str) -> str:
        """One line for the report of an agent that ended: what it changed, and how that comes into the project. Removes
        a copy without changes. Raises nothing but cancellation."""
        ...


def not_copied(left: Sequence[str]) -> str:
    """Return a sentence that names what is not in a copy; empty when all is."""
    if not left:
        return ""
    more = f"; and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
    return f"Not in its copy: {'; '.join(left[:SHOWN])}{more}."
