"""Agents that are built from a spec work beside the main one, within their own limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ba_tui.assembly.session import AgentBuilder, SessionLine, conversation
from ba_tui.assembly.start import StartOptions, Startup
from ba_tui.assembly.tools import SessionTools
from ba_tui.context.reminders import SessionSpending
from ba_tui.context.system_prompt import NestedInstructions, PendingNotices, PromptNotes, TouchedFiles
from ba_tui.core.agent import Agent, run_child
from ba_tui.core.effects import READ_ONLY, AgentCeiling
from ba_tui.core.errors import ProviderError
from ba_tui.core.events import MAIN, Event, SideRequest, ToolFinished
from ba_tui.core.teamwork import AgentSpec, Budget
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.providers.token_calibration import TokenCalibration
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.sessions.requests import RequestStore
from ba_tui.tools.toolbox import SessionScope

CHILD = """\
steps:
  - calls: [{tool: read_file, args: {path: notes.txt}}]
    usage: {input: 90, output: 10}
  - calls: [{tool: write_file, args: {path: new.txt, content: none}}]
  - say: The notes say hello.
"""
MAIN_SCRIPT = """\
steps:
  - calls: [{tool: write_file, args: {path: mine.txt, content: "yes"}}]
  - say: Written.
"""


async def nobody(system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
    raise ProviderError("no model is there")


class House:
    """The parts of one session, and all events of its agents."""

    def __init__(self, folder: Path, where: Path) -> None:
        self.events: list[Event] = []
        self.start = Startup(folder, StartOptions({"permission_mode": "bypass"}), conversation)
        self.tools = SessionTools(self.start, SessionScope(folder, Artifacts(where / "data")), nobody)
        self.tools.registry.refresh()
        notices = PendingNotices()
        nested = NestedInstructions(TouchedFiles(folder), self.tools.registry.get_tool, tuple)
        notes = PromptNotes(tuple, notices)
        line = SessionLine(
            notes,
            nested,
            notices,
            SessionSpending(),
            self.said,
            TokenCalibration(where / "ratios.json"),
            RequestStore(where),
            "",
        )
        self.builder = AgentBuilder(self.start, self.tools, line)
        self.turn = Turn(self.events.append)
        self.branch = Branch(self.turn, Transcript())

    async def said(self) -> Sequence[Event]:
        return self.events

    def child(self, agent: Agent, spec: AgentSpec) -> Branch:
        """A branch for ``agent`` below the main one."""
        return self.branch.fork(spec.name, agent.ceiling)

    def results(self, agent: str) -> dict[str, bool]:
        """Whether each call of an agent failed, in their order."""
        found = [event for event in self.events if isinstance(event, ToolFinished) and event.agent == agent]
        return {event.call_id: event.result.is_error for event in found}


@pytest.fixture
def house(tmp_path: Path, ba_home: Path) -> House:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("hello\n")
    (folder / "child.yaml").write_text(CHILD)
    (folder / "main.yaml").write_text(MAIN_SCRIPT)
    return House(folder, tmp_path)


async def test_a_child_with_a_lower_ceiling_works_while_main_goes_on(house: House) -> None:
    root = house.start.cwd
    spec = AgentSpec("explore", prompt="You look.", ceiling=READ_ONLY, max_loops=5)
    main = house.builder.parts(AgentSpec(MAIN, prompt="You are ba."))
    agent = house.builder.agent(main, f"scripted:{root}/main.yaml")
    async with house.builder.child(spec, f"scripted:{root}/child.yaml") as child:
        assert child.provider is not agent.provider
        names = {tool.name for tool in child.toolset.visible()}
        assert "read_file" in names
        assert not names & {"write_file", "edit_file", "apply_patch"}
        result, answer = await asyncio.gather(
            run_child(child, house.child(child, spec), "Read."), agent.run(house.branch)
        )
    assert (result.status, result.message.text) == ("done", "The notes say hello.")
    assert answer.text == "Written."
    assert list(house.results(result.agent_id).values()) == [False, True]
    assert list(house.results(MAIN).values()) == [False]
    assert (root / "mine.txt").read_text() == "yes"
    assert not (root / "new.txt").exists()
    await main.window.close()
    await house.tools.close()


async def test_a_child_stops_at_its_own_budget(house: House) -> None:
    spec = AgentSpec("explore", prompt="You look.", budget=Budget(tokens=1))
    async with house.builder.child(spec, f"scripted:{house.start.cwd}/child.yaml") as child:
        result = await run_child(child, house.child(child, spec), "Read.")
    assert result.status == "limit"
    assert result.error is not None
    assert "budget of 1 tokens" in result.error.message
    await house.tools.close()


async def test_a_child_is_judged_by_what_its_answer_must_give(house: House) -> None:
    async def judge(system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        return "MISSING: the number of lines", SideRequest(purpose, "test/small")

    house.tools.ask = judge
    spec = AgentSpec("explore", prompt="You look.", expected_output="The number of lines")
    script = house.start.cwd / "twice.yaml"
    script.write_text("steps:\n  - say: It has words.\n  - say: Many words.\n")
    async with house.builder.child(spec, f"scripted:{script}") as child:
        result = await run_child(child, house.child(child, spec), "Read.")
    assert (result.status, result.error and result.error.message) == (
        "limit",
        "Stopped: 2 answers did not give what was expected. Missing: the number of lines.",
    )
    await house.tools.close()


def test_named_tools_are_all_that_it_is_given(house: House) -> None:
    parts = house.builder.parts(AgentSpec("reader", tools=("read_file", "grep")))
    assert {tool.name for tool in parts.tools.visible()} == {"read_file", "grep"}
    assert parts.tools.find("shell") is None


async def test_the_agents_that_ship_with_ba_can_be_started_as_their_files_say(house: House) -> None:
    found = house.tools.agents.find("explore")
    assert found is not None
    async with house.builder.child(found.spec, f"scripted:{house.start.cwd}/child.yaml") as child:
        names = {tool.name for tool in child.toolset.visible()}
        assert {"read_file", "grep", "read_artifact"} <= names, "also those that join later by themselves"
        assert not names & {"write_file", "web_fetch", "ask_user"}
        result = await run_child(child, house.child(child, found.spec), "Read.")
    assert (result.agent_id, result.status) == ("main/explore-1", "done")
    assert list(house.results(result.agent_id).values()) == [False, True]
    assert not (house.start.cwd / "new.txt").exists()
    await house.tools.close()


async def test_a_tool_that_is_taken_away_stays_away(house: House) -> None:
    spec = AgentSpec("careful", prompt="Look.", ceiling=AgentCeiling(without=frozenset({"write_file"})))
    async with house.builder.child(spec, f"scripted:{house.start.cwd}/child.yaml") as child:
        names = {tool.name for tool in child.toolset.visible()}
        assert "edit_file" in names
        assert "write_file" not in names
        await run_child(child, house.child(child, spec), "Read.")
    assert not (house.start.cwd / "new.txt").exists()
    await house.tools.close()
