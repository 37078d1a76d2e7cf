"""Plans that a team carries out: large ones, ones that fail, and who may go on with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import ConnectionLost, UsageError
from ba_tui.core.events import ConflictChanged, Event, PlanChanged, SubTaskChanged
from ba_tui.core.teamwork import TEAM_PLAN, SubTask
from ba_tui.features.plans.engine.plan_mode import PlanScope
from ba_tui.features.plans.session import PlanSession
from ba_tui.resources import bundled
from ba_tui.settings.sections.agents import PlanSettings
from ba_tui.tools.definitions import load_definitions
from tests.script import says
from tests.team.house import TeamHouse, answer
from tests.team.test_running import ending, forever, plan_of, told


@pytest.mark.timeout(180)
async def test_a_thousand_subtasks_are_carried_out(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    steps = [SubTask(f"s{number}", "x", role="researcher") for number in range(1_000)]
    house.teams._scope = replace(house.teams._scope, plan=plan_of(*steps))
    events = await house.team("Find", "researcher*8")
    assert ending(events).reason == "done"
    assert not [event for event in events if isinstance(event, ConflictChanged)]
    assert len(told(house, -1)) < 100_000


class Planning:
    """What asks the session's model; it answers plans."""

    def __init__(self, *plans: dict[str, Any]) -> None:
        self._plans = list(plans)
        self.told: list[str] = []

    async def ask(self, branch: Any, system: str, messages: Any, tools: Any) -> Any:
        self.told.append(messages[0].text)
        return says("", ("submit_plan", self._plans.pop(0)))


def with_planning(house: TeamHouse, *plans: dict[str, Any]) -> Planning:
    planning = Planning(*plans)
    house.teams._scope = replace(house.teams._scope, requests=planning)  # type: ignore[arg-type]
    return planning


def planned_step(id: str, role: str, words: str, *after: str) -> dict[str, Any]:
    return {"id": id, "description": words, "role": role, "dependencies": list(after)}


async def test_a_subtask_that_failed_has_the_plan_made_anew_and_finished_work_is_kept(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path, attempts=1)
    planning = with_planning(
        house,
        {
            "goal": "Count",
            "subtasks": [
                planned_step("find", "researcher", "Find the orders of March in the list"),
                planned_step("count", "analyst", "Count the orders that were found", "find"),
            ],
        },
        {"goal": "Count", "subtasks": [planned_step("sum", "writer", "Add up what was found by hand", "find")]},
    )
    house.plays(analyst=[[ConnectionLost("lost")]], writer=[[says("412 in all.")]])
    events = await house.team("Count the orders of March", "researcher", "analyst", "writer")
    assert answer(events) == "412 in all."
    assert [spec.name for spec, _ in house.made] == ["researcher", "analyst", "writer"]
    assert len(planning.told) == 2
    plan = next(event.plan for event in reversed(events) if isinstance(event, PlanChanged))
    assert [(each.id, each.status) for each in plan.subtasks] == [("find", "completed"), ("sum", "completed")]
    assert (plan.replans, plan.id.startswith(TEAM_PLAN)) == (1, True)


async def test_a_plan_of_a_team_goes_on_with_the_team_alone(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(writer=[[forever]])
    rooms = PlanSession(
        load_definitions(bundled("config") / "prompts" / "tools")["plan"],
        PlanSettings(),
        PlanScope(house.talk.transcript, dict, house.agents, None, None, None, None, attended=True),  # type: ignore[arg-type]
    )

    def stop(event: Event) -> None:
        if isinstance(event, SubTaskChanged) and (event.subtask.id, event.subtask.status) == ("writer", "executing"):
            house.talk._turn.cancel()  # type: ignore[union-attr]

    events = await house.team("Write", "researcher", "writer", react=stop)
    assert ending(events).reason == "cancelled"
    plan = rooms.latest()
    assert plan
    with pytest.raises(UsageError, match="belongs to a team"):
        rooms.resume(plan.id)
    assert "1 of 2 steps are completed. Go on with it: /team resume." in rooms.interrupted()


async def test_a_plan_with_more_than_a_thousand_subtasks_is_refused(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    steps = [SubTask(f"s{number}", "x", role="researcher") for number in range(1_001)]
    house.teams._scope = replace(house.teams._scope, plan=plan_of(*steps))
    ended = ending(await house.team("Find", "researcher"))
    assert ended.error
    assert "1,001 subtasks; at most 1,000" in ended.error.message
    assert not house.made
