"""Copies of the project in which sub-agents work (``isolation: worktree``). A protocol only."""

from __future__ import annotations

from typing import Protocol

from ba_tui.core.agent_spec import ProjectCopy


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
