"""A team's members and messages as events, at a limited rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from ba_tui.core.events import ConflictChanged, Notice, TeamChanged, TeamMessage
from ba_tui.core.teamwork import AgentMessage, Conflict, Member, Team
from ba_tui.core.text.wording import clipped
from ba_tui.core.turn import Branch

TeamState: TypeAlias = Literal["forming", "working", "synthesizing", "completed", "partial", "failed", "cancelled"]
PAUSE = 0.25
"""Minimum seconds between two events with the whole team; the last state is always sent."""
LONGEST = 2_000
"""Maximum characters of a message text in its event; the member's transcript has the whole text."""
MOST_EVENTS = 5_000
"""Maximum messages of one team that become events."""


class TeamWatch:
    """The current state of the team, sent as events on ``branch``. For use in one event loop only."""

    def __init__(self, team: Team, branch: Branch) -> None:
        self.team = team
        self._branch = branch
        self._told = 0.0
        self._later: asyncio.TimerHandle | None = None
        self._messages = 0
        self.counts: dict[str, int] = {}
        """Messages by type; heartbeats are not among them."""

    def state(self, state: TeamState) -> None:
        self.team = replace(self.team, state=state)
        self._tell()

    def members(self, members: Sequence[Member]) -> None:
        self.team = replace(self.team, members=tuple(members))
        self._tell()

    def stood(self) -> float:
        """Return the seconds for which the team has been paused so far."""
        return self._branch.pauses.seconds(self._branch.name)

    def find(self, name: str) -> Member | None:
        return next((each for each in self.team.members if each.name == name), None)

    def join(self, member: Member) -> None:
        """Add a new member, such as a worker of another machine."""
        if self.find(member.name) is None:
            self.members((*self.team.members, member))

    def member(self, name: str, **changes: Any) -> None:
        """Change one member. A change of ``heard`` alone sends no event."""
        before = self.find(name)
        if before is None:
            return
        after = replace(before, **changes)
        members = tuple(after if each.name == name else each for each in self.team.members)
        self.team = replace(self.team, members=members)
        if replace(after, heard=before.heard) != before:
            self._soon()

    def message(self, message: AgentMessage) -> None:
        if message.type == "heartbeat":
            return
        self.counts[message.type] = self.counts.get(message.type, 0) + 1
        self._messages += 1
        if self._messages <= MOST_EVENTS:
            self._branch.emit(TeamMessage(replace(message, content=_brief(message.content))))

    def say(self, text: str) -> None:
        """Show a line to the user."""
        self._branch.emit(Notice(text, "warning"))

    def conflict(self, conflict: Conflict) -> None:
        self._branch.emit(ConflictChanged(self.team.id, conflict))

    def _soon(self) -> None:
        wait = self._told + PAUSE - time.monotonic()
        if wait <= 0:
            self._tell()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(wait, self._tell)

    def _tell(self) -> None:
        if self._later:
            self._later.cancel()
            self._later = None
        self._told = time.monotonic()
        self._branch.emit(TeamChanged(self.team))

    def close(self, state: TeamState) -> None:
        """Send the final state, in which no member works."""
        still = {"thinking", "acting", "observing", "planning", "replanning", "paused", "awaiting_approval"}
        ended = "cancelled" if state == "cancelled" else "finished"
        members = (replace(each, activity=ended, doing="") if each.activity in still else each
                   for each in self.team.members)  # fmt: skip
        self.team = replace(self.team, members=tuple(members))
        self.state(state)


def _brief(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: clipped(value, LONGEST) if isinstance(value, str) else value for key, value in content.items()}
