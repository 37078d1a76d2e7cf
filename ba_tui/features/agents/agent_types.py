"""The types of agents and their strongest effects; an agent's name; agents that can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ba_tui.agent_files.catalog import AgentFiles, agent_called
from ba_tui.core.effects import READ_ONLY, Effect
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, AgentStarted, Event, Rewound, TurnStarted
from ba_tui.core.results import ActiveSkill
from ba_tui.core.teamwork import AgentSpec
from ba_tui.core.text.wording import clipped, nearest, sentence
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.skills.activation import framed
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.content import digest_of, instructions

if TYPE_CHECKING:
    from ba_tui.agent_files.agent_file import AgentFile


LISTED = 3_000
"""Maximum characters of the list of agents in the tool's description."""
DESCRIBED = 200
WORST = (Effect.READ, Effect.NETWORK, Effect.WRITE, Effect.EXECUTE)
"""Effects from the weakest to the strongest."""


class AgentTypes:
    """``files``: the agent files; ``tools``: those of the session by name. Methods read files."""

    def __init__(self, files: Callable[[], AgentFiles], tools: Callable[[], Mapping[str, Tool]]) -> None:
        self._files = files
        self._tools = tools
        self._said: set[str] = set()

    def file(self, name: str) -> AgentFile:
        """Return the file of the agent. Raises UsageError if it is unusable or unknown, with the nearest name."""
        return agent_called(self._files(), name)

    def usable(self) -> Sequence[AgentFile]:
        return [agent for agent in self._files().look() if agent.usable]

    def listed(self) -> str:
        """Return the agents as lines for models, shortened if there are many: agents that are not listed can still be
        named.
        """
        lines, left = list[str](), LISTED
        agents = sorted(self.usable(), key=lambda agent: agent.source != "bundled")
        for agent in agents:
            line = f"- {agent.spec.name}: {clipped(agent.spec.description, DESCRIBED)}"
            left -= len(line)
            if left < 0:
                return "\n".join([*lines, f"- … and {len(agents) - len(lines)} more"])
            lines.append(line)
        return "\n".join(lines)

    def news(self, name: str) -> Sequence[str]:
        """Return the unsupported parts of its file, once per session."""
        found = self._files().find(name)
        if found is None or name in self._said:
            return ()
        self._said.add(name)
        lost = [text for text in found.unsupported if text.startswith("tools ")]
        return [sentence(f"Agent {name}: {'; '.join(lost)}")] if lost else []

    def effect(self, spec: AgentSpec) -> Effect:
        """Return the strongest effect of such an agent without approval."""
        return max((self._effect(tool, spec) for tool in self._of(spec)), key=WORST.index, default=Effect.READ)

    def alone(self, spec: AgentSpec) -> bool:
        """Return whether such an agent can change something that another agent may be working on."""
        # Reading from the web changes nothing.
        return any(
            self._effect(tool, spec) is not Effect.READ and tool.facts.category != "web" for tool in self._of(spec)
        )

    def _of(self, spec: AgentSpec) -> list[Tool]:
        """Return the agent's tools; DELEGATE adds nothing, because child agents never have more tools than their
        parents.
        """
        given = [tool for name, tool in self._tools().items() if spec.tools is None or name in spec.tools]
        return [tool for tool in given if tool.facts.subagents and spec.ceiling.may_call(tool.name)]

    @staticmethod
    def _effect(tool: Tool, spec: AgentSpec) -> Effect:
        if tool.effect in spec.ceiling.effects:
            return tool.effect
        # Above the ceiling only commands can be called, which then run with read-only access.
        return Effect.READ if spec.ceiling.effects >= READ_ONLY.effects else tool.effect


def kind_of(agent_id: str) -> str:
    """Return the type in the last part of the name: ``explore`` for ``main/general-1/explore-2``."""
    last = agent_id.rpartition("/")[2]
    name, _, number = last.rpartition("-")
    return name if number.isdecimal() else last


def depth_of(agent_id: str) -> int:
    """Return the number of agents above it: 0 for main."""
    return agent_id.count("/")


def chain_of(agent_id: str) -> tuple[str, ...]:
    """Return the types of the agent and of all agents above it, without main."""
    return tuple(kind_of(part) for part in agent_id.split("/")[1:])


def check_lineage(kind: str, parent: str, deepest: int) -> None:
    """Raise UsageError when ``parent`` may not start an agent of that type."""
    if depth_of(parent) >= deepest:
        message = f"Agents may be nested {deepest} deep, and {parent} is at that depth."
        raise UsageError(message, "Do the work yourself. The setting agents.depth is the limit.")
    if kind in chain_of(parent):
        message = f"{kind} is at work above this agent ({parent}), so it can't be started below itself."
        raise UsageError(message, "Do the work yourself, or choose another agent.")


@dataclass
class PastAgent:
    """An earlier agent of the session. ``turn`` of main in which it was started, from 1. ``gone``: that turn was
    rewound. ``worktree``: its copy of the project.
    """

    agent_id: str
    kind: str
    turn: int
    gone: bool = False
    worktree: str = ""
    events: list[Event] = field(default_factory=list[Event])

    def transcript(self) -> Transcript:
        """Return its whole transcript. The time grows with the number of its events."""
        return Transcript(self.agent_id, self.events)


def past_agents(events: Sequence[Event]) -> dict[str, PastAgent]:
    """Return every sub-agent by name. Call it in a thread."""
    found: dict[str, PastAgent] = {}
    turn = last = 0
    # The newest valid turn when each agent started: a rewind may be undone.
    before = {0: -1}
    for event in events:
        name = event.agent
        if name == MAIN:
            match event:
                case TurnStarted():
                    turn += 1
                    before[turn], last = last, turn
                case Rewound(turns=int(kept)):
                    last = kept
                case _:
                    pass
            continue
        if not name.startswith(f"{MAIN}/"):
            continue
        if name not in found:
            if not isinstance(event, AgentStarted | TurnStarted):
                continue
            found[name] = PastAgent(name, kind_of(name), turn)
        agent = found[name]
        if isinstance(event, AgentStarted):
            agent.kind, agent.worktree = event.kind, event.worktree
        agent.events.append(event)
        # The agents that it started count for the names of further ones.
        above = found.get(name.rpartition("/")[0])
        if above and isinstance(event, TurnStarted):
            above.events.append(event)
    standing = set[int]()
    while last in before:
        standing.add(last)
        last = before[last]
    for agent in found.values():
        agent.gone = agent.turn not in standing
    return found


def resumable(events: Sequence[Event], agent_id: str, parent: str) -> PastAgent:
    """Return the agent with that id, which ``parent`` started. Raises UsageError. Call it in a thread."""
    found = past_agents(events)
    known = [name for name, agent in found.items() if name.rpartition("/")[0] == parent and not agent.gone]
    wanted = found.get(agent_id) or found.get(f"{parent}/{agent_id}")
    if wanted is None:
        close = nearest(agent_id, known)
        hint = f"The nearest is {close}." if close else f"There are: {', '.join(known[-8:]) or 'none'}."
        raise UsageError(f"There is no agent {agent_id!r} to resume.", hint)
    if wanted.gone:
        message = f"{wanted.agent_id} can't be resumed: the turn that started it was taken back with /rewind."
        raise UsageError(message, "Start a new agent.")
    if wanted.agent_id.rpartition("/")[0] != parent:
        raise UsageError(f"{wanted.agent_id} was started by another agent.", "Start a new agent.")
    return wanted


def skilled(spec: AgentSpec, skills: ActiveSkills) -> tuple[AgentSpec, Sequence[str]]:
    """Return ``spec`` with the instructions of its skills appended to its prompt, and why some are missing. An agent
    gets only the instructions: neither a skill's tools without approval nor its model. Reads files: call it in a
    thread.
    """
    parts, lost = [spec.prompt.strip()], list[str]()
    for name in spec.skills:
        try:
            parts.append(_told(name, skills))
        except UsageError as error:
            lost.append(f"{spec.name} works without the skill {name}: {error}")
    return replace(spec, prompt="\n\n".join(filter(None, parts))), lost


def _told(name: str, skills: ActiveSkills) -> str:
    """Return the delimited instructions of a skill. Raises UsageError if sub-agents can't use it."""
    skill = skills.found(name)
    if skill.head.hidden:
        raise UsageError("It is started by the user only.")
    if not skills.offered(skill, for_subagent=True):
        raise UsageError("It is switched off for sub-agents.")
    if skills.modifier(skill).exclusive:
        raise UsageError("It allows only tools of its own while it is active.")
    text = instructions(skill, skills.catalog.ingress, skills.place(skill), "")
    return framed(ActiveSkill(skill.id, "file", digest_of(skill), by="file"), text)
