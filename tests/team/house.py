"""A session with teams in memory: scripts answer for each member, by the name of its role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ba_tui.core.events import Event
from ba_tui.core.ports.teams import TeamOrder
from ba_tui.core.teamwork.teams import Conflict
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.settings.sections.team import TeamSettings
from ba_tui.tools.teams.scope import Escalation, TeamScope
from ba_tui.tools.teams.session_room import TeamRoom
from tests.delegating.house import AgentHouse, ingress, means
from tests.script import Memory, collect


class TeamHouse(AgentHouse):
    def __init__(self, folder: Path, journal: Memory | None = None, escalate: str = "", **settings: Any) -> None:
        super().__init__(folder, journal, at_once=50)
        from ba_tui.team.catalog import AgentFiles

        files = AgentFiles(self._folders, ingress(folder), means(self.tools))
        self.remembered: list[str] = []

        async def history() -> list[Event]:
            return self.journal.read()

        async def remember(draft: Any) -> None:
            self.remembered.append(draft.text)

        scope = TeamScope(
            self.agents, lambda: files, Artifacts(folder / "data"), history,
            Escalation(escalate, settings.pop("after", 0), folder, {"PATH": "/usr/bin:/bin"}), remember=remember,
        )  # fmt: skip
        self.teams = TeamRoom(TeamSettings(**settings), scope)
        self.mind.listeners = (*self.mind.listeners, self.teams.apply)

    def role(self, name: str, text: str) -> None:
        """Write the file of a role of the project."""
        folder = self.folder / ".ba" / "roles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)

    async def team(self, goal: str, *roles: str, react: Any = None, **order: Any) -> list[Event]:
        """All events of a team's turn."""
        work = self.teams.run(TeamOrder(goal, roles, **order))
        return await collect(self.talk.say(goal, work), react)


def settled(events: list[Event]) -> list[Conflict]:
    from ba_tui.core.events import ConflictChanged

    return [event.conflict for event in events if isinstance(event, ConflictChanged) and event.conflict.winner]


def answer(events: list[Event]) -> str:
    from ba_tui.core.events import MessageDone

    said = [event.message.text for event in events if isinstance(event, MessageDone) and event.agent == "main"]
    return said[-1] if said else ""
