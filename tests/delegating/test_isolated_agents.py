"""Agents that work in a copy: how they are asked for, what their reports say, and how they go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ba_tui.core.effects import Effect
from ba_tui.core.errors import UsageError
from ba_tui.core.events import AgentStarted, Event, ToolFinished
from ba_tui.core.teamwork import ProjectCopy
from tests.delegating.house import AgentHouse, delegates
from tests.script import collect, says

APART = {"description": "change", "agent_type": "general", "prompt": "Change it.", "isolation": "worktree"}


class Copies:
    """core.ports.agents.AgentCopies over empty folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[str] = []

    async def make(self, agent_id: str) -> ProjectCopy:
        if self.folder.name == "full":
            raise UsageError("The project can't be copied: it has 60,000 files.")
        self.made.append(agent_id)
        return ProjectCopy(self.folder, self.folder / agent_id)

    async def find(self, agent_id: str) -> ProjectCopy:
        if self.folder.name == "gone":
            raise UsageError(f"The copy of {agent_id} is gone.")
        return ProjectCopy(self.folder, self.folder / agent_id)

    async def told(self, agent_id: str) -> str:
        return f"It changed a.py (+1 -0) in its copy; apply_changes({agent_id}) brings that in."


def texts(events: list[Event]) -> list[str]:
    return [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main"]


async def test_two_that_write_have_a_copy_each_and_may_run_side_by_side(tmp_path: Path, ba_home: Path) -> None:
    copies = Copies(tmp_path)
    house = AgentHouse(tmp_path, copies=copies)
    assert house.tool.reach(APART) is Effect.READ
    assert house.tool.reach({**APART, "isolation": ""}) is Effect.WRITE
    house.main.steps = [delegates(APART, APART), says("Done.")]
    events = await collect(house.talk.say("Use two agents."))
    started = {each.agent: each.worktree for each in events if isinstance(each, AgentStarted)}
    assert started == {name: str(tmp_path / name) for name in ("main/general-1", "main/general-2")}
    assert all("apply_changes(main/general-" in text for text in texts(events))
    spec, _ = house.made[0]
    assert spec.copy == ProjectCopy(tmp_path, tmp_path / "main/general-1")
    assert "You work in a copy of the project." in spec.prompt
    assert house.room.needed() == ("delegate_task", "apply_changes")


async def test_the_file_of_an_agent_asks_for_a_copy(tmp_path: Path, ba_home: Path) -> None:
    house = AgentHouse(tmp_path, copies=Copies(tmp_path))
    house.describe("mender", "---\nname: mender\ndescription: Mends.\nisolation: worktree\n---\nYou mend.\n")
    assert house.tool.reach({**APART, "agent_type": "mender", "isolation": ""}) is Effect.READ
    house.main.steps = [delegates(("mender", "Go.")), says("Done.")]
    events = await collect(house.talk.say("go"))
    assert [each.worktree for each in events if isinstance(each, AgentStarted)] == [str(tmp_path / "main/mender-1")]


async def test_one_that_goes_on_after_a_restart_is_in_its_copy_again(tmp_path: Path, ba_home: Path) -> None:
    first = AgentHouse(tmp_path, copies=Copies(tmp_path))
    first.main.steps = [delegates(APART), delegates(("general", "In the project.")), says("Done.")]
    await collect(first.talk.say("go"))
    copies = Copies(tmp_path)
    again = AgentHouse(tmp_path, first.journal, copies=copies)
    resumed: dict[str, Any] = {"description": "more", "agent_type": "general", "prompt": "More."}
    again.main.steps = [delegates({**resumed, "resume": "main/general-1"}), says("Done.")]
    events = await collect(again.talk.say("go"))
    assert [each.worktree for each in events if isinstance(each, AgentStarted)] == [str(tmp_path / "main/general-1")]
    assert copies.made == [], "its copy is found, not made anew"
    plainly = {**resumed, "resume": "main/general-2", "isolation": "worktree"}
    again.main.steps = [delegates(plainly), says("Done.")]
    assert "works in the project itself" in texts(await collect(again.talk.say("go")))[0]


async def test_where_there_can_be_no_copy_nothing_is_started_in_the_project(tmp_path: Path, ba_home: Path) -> None:
    for name, copies, words in (
        ("none", None, "can't work in a copy of the project here"),
        ("full", Copies(tmp_path / "full"), "it has 60,000 files"),
    ):
        house = AgentHouse(tmp_path / name, copies=copies)
        house.main.steps = [delegates(APART), says("Done.")]
        assert words in texts(await collect(house.talk.say("go")))[0]
        assert house.made == []
    house = AgentHouse(tmp_path, copies=Copies(tmp_path / "gone"))
    house.main.steps = [delegates(APART), delegates({**APART, "resume": "main/general-1"}), says("Done.")]
    assert "is gone" in texts(await collect(house.talk.say("go")))[1]
