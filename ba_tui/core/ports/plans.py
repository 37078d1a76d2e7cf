"""Plans as faces see them: made for a goal, agreed to, carried out. A protocol only."""

from __future__ import annotations

from typing import Protocol

from ba_tui.core.ports.delegation import Work
from ba_tui.core.teamwork.plans import Plan


class Plans(Protocol):
    """The plans of one session, which its events hold."""

    def plan(self, goal: str) -> Work:
        """Work that makes a plan for ``goal``, asks about it (Question ``plan`` with a PlanGraph), carries it out and
        answers. ``Reply.edited`` holds the plan as the person changed it, as JSON."""
        ...

    def resume(self, plan: str) -> Work:
        """Work that goes on with the plan of that id: what was completed is kept. Raises UsageError."""
        ...

    def interrupted(self) -> str:
        """A line that says that the newest plan was interrupted, and how to go on; empty when none was. Known once the
        history is read."""
        ...

    def latest(self) -> Plan | None:
        """The newest plan of the session, as it stands."""
        ...
