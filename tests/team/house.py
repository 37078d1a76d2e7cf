"""A session with teams in memory: scripts answer for each member, by the name of its role."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ba_tui.core.agent import Agent
from ba_tui.core.events import Event
from ba_tui.core.teamwork import AgentSpec, Conflict, TeamOrder
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Turn
from ba_tui.features.teams.engine.seating import ConflictEscalation, TeamScope
from ba_tui.features.teams.session import TeamSession
from ba_tui.resources import bundled
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.settings.sections.agents import TeamSettings
from ba_tui.tools.definitions import load_definitions
from tests.delegating.house import AgentHouse, AnyModel, ingress, reported
from tests.script import Memory, collect


class Shown:
    """core.tool.Toolset: the tools of an agent, and those of members once they are listed."""

    def __init__(self, house: TeamHouse, names: Sequence[str] | None) -> None:
        self._house = house
        self._names = names

    def visible(self) -> Sequence[Tool]:
        found = self._house.tools | {
            each.tool.name: reported(self._house.guard(each.tool))
            for each in self._house.teams.sources[0].look().tools
            if each.tool.name in self._house.listed
        }
        return [tool for name, tool in found.items() if self._names is None or name in self._names]

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.visible() if tool.name == name), None)


class TeamHouse(AgentHouse):
    def __init__(self, folder: Path, journal: Memory | None = None, escalate: str = "", **settings: Any) -> None:
        super().__init__(folder, journal, at_once=50)
        from ba_tui.agent_files.catalog import AgentFiles

        files = AgentFiles(self._folders, ingress(folder), AnyModel(lambda: self.tools))
        self.remembered: list[str] = []

        async def history() -> list[Event]:
            return self.journal.read()

        async def remember(draft: Any) -> None:
            self.remembered.append(draft.text)

        scope = TeamScope(
            self.agents, lambda: files, Artifacts(folder / "data"), history,
            ConflictEscalation(escalate, settings.pop("after", 0), folder, {"PATH": "/usr/bin:/bin"}),
            remember=remember, tool=self.tools.get,
        )  # fmt: skip
        self.teams = TeamSession(
            TeamSettings(**settings), scope, load_definitions(bundled("config") / "prompts" / "tools")
        )
        self.guard: Callable[[Tool], Tool] = lambda tool: tool
        """Stands around each tool that only members have."""
        self.turn: Turn | None = None
        self.listed: list[str] = []
        """Tools that were listed for members."""
        self.mind.listeners = (*self.mind.listeners, self.teams.apply)

    def show(self, names: Sequence[str]) -> None:
        """Hears which tools are listed for a member."""
        self.listed = [*self.listed, *names]

    @asynccontextmanager
    async def make(self, spec: AgentSpec, model: str) -> AsyncGenerator[Agent]:
        async with super().make(spec, model) as agent:
            yield Agent(
                agent.provider, Shown(self, spec.tools), agent.system,
                (*agent.interceptors, self.teams.joining(self.show)), spec.ceiling,
            )  # fmt: skip

    def role(self, name: str, text: str) -> None:
        """Write the file of a role of the project."""
        folder = self.folder / ".ba" / "roles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)

    async def team(self, goal: str, *roles: str, react: Any = None, **order: Any) -> list[Event]:
        """All events of a team's turn."""
        work = self.teams.run(TeamOrder(goal, roles, **order))
        self.turn = self.talk.say(goal, work)
        return await collect(self.turn, react)


def settled(events: list[Event]) -> list[Conflict]:
    from ba_tui.core.events import ConflictChanged

    return [event.conflict for event in events if isinstance(event, ConflictChanged) and event.conflict.winner]


def answer(events: list[Event]) -> str:
    from ba_tui.core.events import MessageDone

    said = [event.message.text for event in events if isinstance(event, MessageDone) and event.agent == "main"]
    return said[-1] if said else ""
