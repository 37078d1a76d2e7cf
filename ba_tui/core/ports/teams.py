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

    def resume(self) -> Work:
        """Work that goes on with the newest team of the session, which was interrupted: what was completed is kept, and
        so is what members had stated. The work raises UsageError when there is none."""
        ...

    def pause(self, *, on: bool) -> bool:
        """Let the whole team stand still before its next requests, or go on; False when none is at work."""
        ...

    def paused(self) -> bool:
        """Whether a team is at work and stands still, or is about to."""
        ...

    def roles(self) -> Sequence[Role]:
        """Those that are known, by name. Reads files."""
        ...

    def problems(self) -> Sequence[str]:
        """What is wrong with files of roles, a line each. Reads files."""
        ...

    def latest(self) -> Team | None: ...
