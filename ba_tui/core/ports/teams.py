"""Teams as faces see them. A protocol and a value only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ba_tui.core.ports.delegation import Work
from ba_tui.core.teamwork.teams import Pattern, Role, Strategy, Team
from ba_tui.core.values import frozen


@frozen
class TeamOrder:
    """``roles``: names of roles, or of agents; empty: the orchestrator chooses. None: as the settings say."""

    goal: str
    roles: tuple[str, ...] = ()
    pattern: Pattern | None = None
    conflicts: Strategy | None = None
    deadline: float | None = None


class Teams(Protocol):
    """The teams of one session."""

    def run(self, order: TeamOrder) -> Work:
        """Work that forms a team for the goal and answers with what it found. Raises UsageError for unknown roles."""
        ...

    def roles(self) -> Sequence[Role]:
        """Those that are known, by name. Reads files."""
        ...

    def latest(self) -> Team | None: ...
