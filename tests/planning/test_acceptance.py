"""What plans are for, each in a whole session with a scripted model: a trip, a full hotel, a wish said early, three
roles, a task that only memory solves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ba_tui.core.conversation import Conversation
from ba_tui.core.events import AgentStarted, Asked, Event, MessageDone, PlanChanged, SubTaskChanged, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.teamwork import Plan
from ba_tui.features.plans.session import PlanSession
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.plotting.plan_graph import depths
from tests.remembering.world import of, opened

TRIP = Path(__file__).parent / "trip.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    trust_folder(work)
    return work


def scripted(folder: Path, *alternatives: dict[str, Any]) -> Path:
    """A model that finds its answer by what it is told; the first alternative that fits."""
    path = folder.parent / f"script-{len(list(folder.parent.glob('*.yaml')))}.yaml"
    path.write_text(yaml.safe_dump({"steps": [[{**each, "stays": True} for each in alternatives]]}))
    return path


def session(folder: Path, script: Path, **flags: Any) -> Conversation:
    return opened(folder, **{"model": f"scripted:{script}", "memory.summaries": False, **flags})


async def done(talk: Conversation, prompt: str, *, plan: bool = False) -> Sequence[Event]:
    """All events of a turn in which the user agrees to everything."""
    plans = talk.inventory.feature(PlanSession)
    assert plans
    turn = talk.say(prompt, plans.plan(prompt) if plan else None)
    events: list[Event] = []
    async with asyncio.timeout(30):
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply("once"))
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done", events[-1]
    return events


def latest(talk: Conversation) -> Plan:
    plans = talk.inventory.feature(PlanSession)
    plan = plans.latest() if plans else None
    assert plan
    return plan


def answer(events: Sequence[Event]) -> str:
    return [event.message.text for event in of(MessageDone, list(events)) if event.agent == "main"][-1]


def submit(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"calls": [{"tool": "submit_plan", "args": {"goal": "The goal", "subtasks": list(steps)}}]}


def fast(script: Path, folder: Path) -> Path:
    """The demo without its pauses."""
    found = yaml.safe_load(script.read_text())
    path = folder.parent / script.name
    path.write_text(yaml.safe_dump({**found, "delay": 0}))
    return path


async def test_a_trip_becomes_steps_that_wait_for_each_other_and_a_full_hotel_costs_no_finished_work(folder: Path):
    talk = session(folder, fast(TRIP, folder))
    events = await done(talk, "three days in Lisbon", plan=True)
    proposed = next(event.plan for event in of(PlanChanged, list(events)) if event.plan.subtasks)
    # A graph, not a list: three days side by side, and what they need before them.
    deep = depths(proposed)
    assert deep["flights"] == deep["food"] == 0
    assert deep["day1"] == deep["day2"] == deep["day3"] == deep["hotel"] + 1
    assert proposed.execution_order[-1] == "write"
    plan = latest(talk)
    assert (plan.state, plan.replans) == ("completed", 1)
    assert all(step.status == "completed" for step in plan.subtasks)
    assert "inn" in plan.dag
    assert "hotel" not in plan.dag
    begun = [event.subtask.id for event in of(SubTaskChanged, list(events)) if event.subtask.status == "executing"]
    assert begun.count("flights") == begun.count("food") == 1
    assert plan.find("flights").result.startswith("TP 571")  # type: ignore[union-attr]
    assert "full" in " ".join(event.reason for event in of(PlanChanged, list(events)))
    assert "Casa Bela" in answer(events)
    await talk.close()


@pytest.mark.parametrize(("said", "found"), [("I'm vegetarian.", "all vegetarian"), ("Hello.", "grill house")])
async def test_what_is_said_early_is_honoured_late(folder: Path, said: str, found: str):
    talk = session(folder, fast(TRIP, folder))
    await done(talk, said)
    await done(talk, "three days in Lisbon", plan=True)
    food = latest(talk).find("food")
    assert food
    assert found in food.result
    await talk.close()


async def test_three_roles_research_write_and_edit(folder: Path):
    for name, what in (("researcher", "finds facts"), ("writer", "writes"), ("editor", "edits")):
        agents = folder / ".ba" / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        (agents / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: {what}\ntools: read_file\n---\nYou {what}.\n"
        )
    trust_folder(folder)
    steps = [
        {"id": "facts", "description": "Find the facts about tides", "role": "researcher"},
        {"id": "draft", "description": "Write an article from {facts}", "role": "writer", "dependencies": ["facts"]},
        {"id": "final", "description": "Shorten and correct: {draft}", "role": "editor", "dependencies": ["draft"]},
    ]
    script = scripted(
        folder,
        {"when": {"said": "Your step (facts)"}, "say": "The moon causes two tides a day."},
        {"when": {"said": "Your step (draft): Write an article from The moon causes"}, "say": "Tides, a long draft."},
        {"when": {"said": "Your step (final): Shorten and correct: Tides, a long draft."}, "say": "Tides, in short."},
        {"when": {"said": "Your step"}, "say": "The result of the step before is missing."},
        {"when": {"said": "The request, in the user's own words"}, **submit(*steps)},
        {"say": "Tides, in short."},
    )
    talk = session(folder, script)
    events = await done(talk, "an article about tides", plan=True)
    assert [event.kind for event in of(AgentStarted, list(events))] == ["researcher", "writer", "editor"]
    assert [step.result for step in latest(talk).subtasks][1:] == ["Tides, a long draft.", "Tides, in short."]
    await talk.close()


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_task_that_succeeds_with_memory_and_fails_without(folder: Path, remembers: bool):
    (folder / "codes.csv").write_text("door,4711\n")

    def look(path: str) -> dict[str, Any]:
        read = {"tool_name": "read_file", "tool_args": {"path": path}, "critical": True}
        return submit({"id": "code", "description": f"Read the door code from {path}", **read})

    script = scripted(
        folder,
        {"when": {"said": "The plan must be made anew"}, **look("codes.txt")},
        {"when": {"said": "Outcomes of similar plans"}, **look("codes.csv")},
        {"when": {"said": "The request, in the user's own words"}, **look("codes.txt")},
        {"say": "That is all I know."},
    )
    memory: dict[str, Any] = {} if remembers else {"memory.private": True}
    for place in range(2):
        talk = session(folder, script, **memory)
        await done(talk, "find the door code of the archive", plan=True)
        plan = latest(talk)
        solved = place == 1 and remembers
        assert plan.state == ("completed" if solved else "partial")
        assert ("4711" in plan.subtasks[0].result) == solved
        await talk.close()
