"""All that a session has for sub-agents: the port, the tool, what hears of them, and when the tool is listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent import Agent
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, Event, Steered, TurnStarted
from ba_tui.core.events.teamwork import AgentStarted
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.delegation import Delegation
from ba_tui.core.ports.rooms import JoiningTool, ToolsFound, ToolSource
from ba_tui.core.teamwork.copies import AgentCopies
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_every_agent
from ba_tui.features.agents.copies.apply_changes import Applying, apply_changes_tool, judging
from ba_tui.features.agents.copies.copies import Copies
from ba_tui.features.agents.copies.listing import repository
from ba_tui.features.agents.tools.agent_skills import skilled
from ba_tui.features.agents.tools.agent_types import AgentTypes
from ba_tui.features.agents.tools.delegate_task import delegate_task_tool, note_of
from ba_tui.features.agents.tools.sub_agents import Skilled, SubAgents, Surroundings
from ba_tui.settings.sections.agents import AgentSettings
from ba_tui.skills.active import ActiveSkills
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.definitions import Definition
from ba_tui.tools.foreign_calls import DELEGATE
from ba_tui.tools.session_scope import Delegating

_SPOKEN = regex(r"(?i)\b(sub-?agents?|agents?|delegat\w*|in parallel|parallel|side by side)\b|@agent:")


APPLY = "apply_changes"


def unskilled(spec: AgentSpec) -> tuple[AgentSpec, Sequence[str]]:
    """Where no skills are."""
    return spec, [f"{spec.name} works without the skill {name}: there are no skills here." for name in spec.skills]


@frozen
class DelegationScope:
    """The session: the ``files`` that describe agents, what was said, all events, the ``tools`` by name, and whether
    plan mode is on (``reading``). ``attended``: somebody can be asked. ``skills`` puts the instructions of an agent's
    skills into its prompt. Without ``making`` no agent can be started, without ``copies``
    none in a copy of the project."""

    files: Callable[[], AgentFiles] | None
    making: Delegating | None
    transcript: Transcript
    history: ReadHistory
    tools: Callable[[], Mapping[str, Tool]]
    reading: Callable[[], bool]
    attended: bool
    skills: Skilled = unskilled
    copies: AgentCopies | None = None


class AgentSession:
    """core.agent.Interceptor of every agent, and a listener. Made once for a session."""

    def __init__(self, definitions: Mapping[str, Definition], limits: AgentSettings, scope: DelegationScope) -> None:
        making = scope.making or Delegating(str, no_agents)
        self._files = scope.files
        self._types = types = AgentTypes(scope.files or no_files, scope.tools)
        around = Surroundings(
            types,
            making.make,
            making.model,
            scope.history,
            lambda: scope.transcript.turns,
            scope.reading,
            scope.skills,
            scope.copies,
        )
        self.agents = SubAgents(around, limits)
        """What faces, plans and teams see."""
        self.sources: tuple[ToolSource, ...] = (ToolSource("built-in", self._look),) if limits.depth else ()
        self._tool = delegate_task_tool(definitions[DELEGATE], self.agents, types)
        self._found = ToolsFound([JoiningTool(self._tool)])
        self._listed = ""
        self._attended = scope.attended
        self._begun = self._spoken = self._isolated = False

    def needed(self) -> Sequence[str]:
        """The tool, once the person speaks of agents or one was started, or where files of their own describe some; and
        what brings the changes of an isolated agent in, once there was one."""
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
        """Where nobody attends, a turn does not end before its background agents do: their reports join it."""
        if self._attended and branch.name == MAIN:
            return None
        return await self.agents.wait(branch.name) or None

    async def close(self) -> None:
        await self.agents.close()

    def _described(self) -> bool:
        """Whether the person or the project has files that describe agents. Looks at folders, reads no file."""
        return bool(self._files and self._files().own())

    def _look(self) -> ToolsFound:
        """See core.ports.rooms.ToolSource: the tool, which lists the agents once it may be needed."""
        if not self.needed():
            return self._found
        if (listed := self._types.listed()) != self._listed:
            self._listed = listed
            told = replace(self._tool, description=f"{self._tool.description} Types:\n{listed}")
            self._found = ToolsFound([JoiningTool(told)])
        return self._found


def no_agents(spec: AgentSpec, model: str) -> AbstractAsyncContextManager[Agent]:
    """Where no conversation is. Raises UsageError."""
    raise UsageError("Agents can only be started in a conversation.", "Run ba, or ba -p.")


def no_files() -> AgentFiles:
    """Where no agents are known. Raises UsageError."""
    raise UsageError("No agents are known here.")


def open_agents(context: SessionContext) -> OpenFeature:
    """Offer Delegation to faces, plans and teams. Without a kept conversation no agent works in a copy."""
    scope, policy = context.scope, context.permissions.policy
    copies = Copies(scope.folder, repository(scope.cwd), policy.denies_reading) if scope.folder else None
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
        applying = Applying(copies, context.permissions.workspace, context.ahead, session.agents.works)
        tools = (apply_changes_tool(context.definitions[APPLY], applying),)
    return OpenFeature(
        tools,
        session.sources,
        session.needed,
        judging,
        interceptors=((Stage.JOIN, for_every_agent(session)),),
        listeners=(session.apply,),
        ports={Delegation: session.agents},
        close=session.close,
    )
