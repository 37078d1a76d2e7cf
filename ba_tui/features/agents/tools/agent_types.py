"""The types of agents as those who start them see them: by name, with what they can do at worst."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.agent_files.main_agent import agent_called
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import READ_ONLY, Effect
from ba_tui.core.text.wording import clipped, sentence
from ba_tui.core.tool import Tool

if TYPE_CHECKING:
    from ba_tui.agent_files.agent_file import AgentFile

LISTED = 3_000
"""Characters of the list of agents in the tool's description."""
DESCRIBED = 200
WORST = (Effect.READ, Effect.NETWORK, Effect.WRITE, Effect.EXECUTE)
"""From the least to the most that can happen to files."""


class AgentTypes:
    """``files``: where agents are described; ``tools``: those of the session by name. Methods read files."""

    def __init__(self, files: Callable[[], AgentFiles], tools: Callable[[], Mapping[str, Tool]]) -> None:
        self._files = files
        self._tools = tools
        self._said: set[str] = set()

    def file(self, name: str) -> AgentFile:
        """The file that describes the agent. Raises UsageError, naming the nearest, or saying why it can't be used."""
        return agent_called(self._files(), name)

    def spec(self, name: str) -> AgentSpec:
        """What the agent is made from. Raises UsageError."""
        return self.file(name).spec

    def in_background(self, name: str) -> bool:
        """Whether its file says that it always works in the background. Raises UsageError."""
        return self.file(name).background

    def isolated(self, name: str) -> bool:
        """Whether its file says that it works in a copy of the project. Reads files. Raises UsageError."""
        return self.file(name).isolated

    def usable(self) -> Sequence[AgentFile]:
        return [agent for agent in self._files().look() if agent.usable]

    def listed(self) -> str:
        """The agents in lines for models, shortened when they are many: a name that is not listed is found, too."""
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
        """What of its file is not done, said once a session."""
        found = self._files().find(name)
        if found is None or name in self._said:
            return ()
        self._said.add(name)
        lost = [text for text in found.unsupported if text.startswith("tools ")]
        return [sentence(f"Agent {name}: {'; '.join(lost)}")] if lost else []

    def effect(self, spec: AgentSpec) -> Effect:
        """The worst that such an agent can do by itself."""
        return max((self._effect(tool, spec) for tool in self._of(spec)), key=WORST.index, default=Effect.READ)

    def alone(self, spec: AgentSpec) -> bool:
        """Whether such an agent can change something that another one may be working on."""
        # What is only read from the web changes nothing.
        return any(
            self._effect(tool, spec) is not Effect.READ and tool.facts.category != "web" for tool in self._of(spec)
        )

    def _of(self, spec: AgentSpec) -> list[Tool]:
        """The tools that the agent is given; DELEGATE adds nothing, as agents below have no more than those above."""
        given = [tool for name, tool in self._tools().items() if spec.tools is None or name in spec.tools]
        return [tool for tool in given if tool.facts.subagents and spec.ceiling.may_call(tool.name)]

    @staticmethod
    def _effect(tool: Tool, spec: AgentSpec) -> Effect:
        if tool.effect in spec.ceiling.effects:
            return tool.effect
        # Above the ceiling only commands can be called, and they run as readers then.
        return Effect.READ if spec.ceiling.effects >= READ_ONLY.effects else tool.effect
