"""A session with sub-agents in memory: scripts answer, by the type of the agent, and files describe the types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ba_tui.agent_files.catalog import AgentFiles, AgentFolder
from ba_tui.agent_files.means import AgentMeans
from ba_tui.core.agent import Agent, BudgetLimit, CutAnswers, Interceptor, StepLimit
from ba_tui.core.conversation import Conversation
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError
from ba_tui.core.events import Event
from ba_tui.core.ports.agents import AgentCopies, Delegation
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import AgentSpec
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.features.agents.session import AgentSession
from ba_tui.features.agents.sub_agents import DelegationScope
from ba_tui.ingress import Ingress
from ba_tui.resources import bundled
from ba_tui.settings.sections.agents import AgentSettings
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.failures import failed_result
from ba_tui.tools.toolbox import AgentSource
from tests.script import Memory, Mind, Script, says, thinking


def plain(name: str, effect: Effect, run: Any = None) -> Tool:
    async def done(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("done")

    facts = ToolFacts("web" if effect is Effect.NETWORK else "files")
    return Tool(name, name, {"type": "object"}, run or done, effect, facts=facts)


class AgentHouse:
    """``scripts``: the steps of each agent by its type; each agent that is started takes the next list."""

    def __init__(
        self,
        folder: Path,
        journal: Memory | None = None,
        *,
        attended: bool = True,
        copies: AgentCopies | None = None,
        **limits: Any,
    ) -> None:
        self.scripts: dict[str, list[list[Any]]] = {}
        self.made: list[tuple[AgentSpec, str]] = []
        self.providers: list[Script] = []
        self.folder = folder
        self.journal = journal or Memory()
        self.reading = False
        self.tools: dict[str, Tool] = {
            "read_file": plain("read_file", Effect.READ),
            "write_file": plain("write_file", Effect.WRITE),
            "web_fetch": plain("web_fetch", Effect.NETWORK),
        }
        files = AgentFiles(self._folders, ingress(folder), AnyModel(lambda: self.tools))
        self.main = Script()
        self.mind = Mind(self.main)
        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        self.talk: Conversation = thinking(self.mind, self.journal)

        async def history() -> Sequence[Event]:
            return self.journal.read()

        scope = DelegationScope(
            lambda: files, AgentSource(lambda: "test/main", self.make), self.talk.transcript, history,
            lambda: self.tools, lambda: self.reading, attended, copies=(lambda: copies) if copies else None,
        )  # fmt: skip
        self.room = AgentSession(definitions, AgentSettings(**limits), scope)
        self.agents = self.room.agents
        (found,) = self.room.sources[0].look().tools
        self.tool = reported(found.tool)
        self.tools["delegate_task"] = self.tool
        loop: tuple[Interceptor, ...] = (StepLimit(50), CutAnswers(), self.room)
        self.mind._agent = Agent(self.main, (self.tool, self.tools["read_file"]), "Main.", loop)
        self.mind.inventory = Inventory(features={Delegation: self.agents})
        self.mind.listeners = (self.room.apply,)

    def _folders(self) -> Sequence[AgentFolder]:
        shipped = AgentFolder(bundled("config") / "agents", "bundled")
        return (shipped, AgentFolder(self.folder / ".ba" / "agents", "project"))

    def describe(self, name: str, text: str) -> None:
        """Write the file of an agent."""
        folder = self.folder / ".ba" / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)

    @asynccontextmanager
    async def make(self, spec: AgentSpec, model: str) -> AsyncGenerator[Agent]:
        self.made.append((spec, model))
        lists = self.scripts.get(spec.name)
        provider = Script(*(lists.pop(0) if lists else [says(f"Report of {spec.name}.")]))
        self.providers.append(provider)
        budget = (BudgetLimit(spec.budget),) if spec.budget else ()
        tools = [tool for name, tool in self.tools.items() if spec.tools is None or name in spec.tools]
        yield Agent(provider, tools, spec.prompt, (StepLimit(spec.max_loops), CutAnswers(), *budget, self.room))

    def plays(self, **scripts: list[list[Any]]) -> None:
        self.scripts |= scripts


def delegates(*orders: tuple[str, str] | dict[str, Any], text: str = "") -> Any:
    """An answer of a model that starts agents: pairs of type and prompt, or whole arguments."""
    args = [
        order if isinstance(order, dict) else {"description": "a task", "agent_type": order[0], "prompt": order[1]}
        for order in orders
    ]
    return says(text, *(("delegate_task", each) for each in args))


def ingress(folder: Path) -> Ingress:
    from ba_tui.permissions.secrets.sharing import ingress_for
    from ba_tui.resources import open_places

    return ingress_for(open_places(), folder)


class AnyModel(AgentMeans):
    """Every model can be used, and no slot is set."""

    def __init__(self, tools: Callable[[], Collection[str]]) -> None:
        self.tools = tools

    def missing(self, model: str) -> str:
        return ""

    def model(self, name: str) -> ModelInfo:
        return ModelInfo(name, "test", name)

    def slot(self, slot: str) -> str:
        return ""


def reported(tool: Tool) -> Tool:
    """What the tool refuses becomes a result, as its guards make it."""
    from dataclasses import replace

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        except BaError as error:
            return failed_result(error)

    return replace(tool, run=run)
