"""The sub-agents of a session: the port, the tool, the listener, and when the tool is listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, AgentStarted, Event, Steered, TurnStarted
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.contributions import SourceTool, ToolsFound, ToolSource
from ba_tui.core.text.patterns import regex
from ba_tui.core.turn import Branch
from ba_tui.core.values import Once, late
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_every_agent
from ba_tui.features.agents.agent_types import AgentTypes, skilled
from ba_tui.features.agents.sub_agents import DelegationScope, SubAgents
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement
from ba_tui.settings.sections.agents import AgentSettings
from ba_tui.skills.active import ActiveSkills
from ba_tui.tools.definitions import Definition
from ba_tui.tools.visible import DELEGATE

if TYPE_CHECKING:
    from ba_tui.features.agents.copies import Copies
    from ba_tui.tools.guards.permission import CallJudge

_SPOKEN = regex(r"(?i)\b(sub-?agents?|agents?|delegat\w*|in parallel|parallel|side by side)\b|@agent:")


APPLY = "apply_changes"
EDITORS = ("edit_file", "write_file", "apply_patch")
note_of = late("ba_tui.features.agents.sub_agents:note_of")


class AgentSession:
    """core.agent.Interceptor of every agent, and a listener. One per session."""

    def __init__(self, definitions: Mapping[str, Definition], limits: AgentSettings, scope: DelegationScope) -> None:
        self._files = scope.files
        self._types = types = AgentTypes(scope.files or no_files, scope.tools)
        self.agents = SubAgents(types, scope, limits)
        """What faces, plans and teams see."""
        self.sources: tuple[ToolSource, ...] = (ToolSource("built-in", self._look),) if limits.depth else ()
        self._tool = definitions[DELEGATE].late(self.agents, types)
        self._found = ToolsFound([SourceTool(self._tool)])
        self._listed = ""
        self._attended = scope.attended
        self._begun = self._spoken = self._isolated = False

    def needed(self) -> Sequence[str]:
        """Return the tool delegate_task once the user mentions agents, an agent was started, or the user or project has
        agent files; and apply_changes once there was an isolated agent.
        """
        needed = self.sources and self._begun and (self._spoken or self._described())
        return (*((DELEGATE,) if needed else ()), *((APPLY,) if self._isolated else ()))

    def apply(self, event: Event) -> None:
        match event:
            case (
                TurnStarted(agent="main", prompt=message)
                | Steered(agent="main", message=Message(origin="steer") as message)
            ):
                self._begun = True
                self._spoken = self._spoken or bool(_SPOKEN.search(message.said))
            case AgentStarted(worktree=worktree):
                self._spoken, self._isolated = True, self._isolated or bool(worktree)
            case _:
                pass
        self.agents.apply(event)

    async def before(self, branch: Branch) -> None:
        """Tell the agent which of its background agents have ended."""
        for child in self.agents.news(branch.name):
            if child.result:
                branch.emit(Steered(reminder(note_of(child.description, child.result))))

    async def after(self, reply: Message, branch: Branch) -> bool | None:
        """Without a user, continue the turn until its background agents have ended: their reports join it."""
        if self._attended and branch.name == MAIN:
            return None
        return await self.agents.wait(branch.name) or None

    async def close(self) -> None:
        await self.agents.close()

    def _described(self) -> bool:
        """Return whether the user or the project has agent files. Lists folders, reads no file."""
        return bool(self._files and self._files().own())

    def _look(self) -> ToolsFound:
        """core.ports.contributions.ToolSource: the tool, which lists the agents once it may be needed."""
        if not self.needed():
            return self._found
        if (listed := self._types.listed()) != self._listed:
            self._listed = listed
            told = replace(self._tool, description=f"{self._tool.description} Types:\n{listed}")
            self._found = ToolsFound([SourceTool(told)])
        return self._found


def judging(judge: CallJudge) -> CallJudge:
    """Return ``judge`` extended so that a call of apply_changes is judged like every tool that edits files: their
    denials and questions apply to it as well.
    """

    def judged(request: JudgedCall) -> Judgement:
        verdict = judge(request)
        if request.tool.name != APPLY:
            return verdict
        for name in EDITORS:
            other = judge(replace(request, tool=replace(request.tool, name=name)))
            if isinstance(other, Deny):
                return other
            if isinstance(other, Ask) and other.by and isinstance(verdict, Allow):
                verdict = replace(other, rule=None, session_rule=None)
        return verdict

    return judged


def no_files() -> AgentFiles:
    """Refuse to find agents: none are known. Raises UsageError."""
    raise UsageError("No agents are known here.")


def open_agents(context: SessionContext) -> OpenFeature:
    """Offer Delegation to faces, plans and teams. Without a stored conversation no agent can work in a copy."""
    scope, policy = context.scope, context.permissions.policy
    made = late("ba_tui.features.agents.copies:session_copies")
    copies: Once[Copies] | None = None
    if scope.folder:
        copies = Once(lambda: made(scope.folder, scope.cwd, policy.denies_reading))
    session = AgentSession(
        context.definitions,
        context.loaded.settings.agents,
        DelegationScope(
            context.agent_files,
            scope.delegating,
            scope.transcript,
            scope.history,
            lambda: context.registry().tools(),
            lambda: policy.mode == "plan",
            context.attended,
            partial(skilled, skills=context.offered(ActiveSkills)),
            copies,
        ),
    )
    tools = ()
    if copies is not None:
        place = context.permissions.workspace
        tools = (context.definitions[APPLY].late(copies, place, context.ahead, session.agents.works),)
    return OpenFeature(
        tools,
        session.sources,
        session.needed,
        judging,
        interceptors=((Stage.JOIN, for_every_agent(session)),),
        listeners=(session.apply,),
        ports={"ba_tui.core.ports.agents:Delegation": lambda: session.agents},
        close=session.close,
    )
