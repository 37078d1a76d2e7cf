"""Plans in a whole session: made by a model, agreed to, carried out by agents and tools, answered, gone on with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import (
    AgentPaused,
    AgentStarted,
    Asked,
    Event,
    MessageDone,
    Notice,
    PlanChanged,
    Steered,
    SubTaskChanged,
    ToolStarted,
    TurnEnded,
)
from ba_tui.core.ports.agents import Work
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import PlanGraph
from ba_tui.core.teamwork import Plan
from ba_tui.features.plans.session import PlanSession
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.plotting.plan_exports import as_json
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.remembering.world import Model, of, opened, playing

YES = Reply("once")
React = Callable[[Question], Reply | None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("the train leaves at nine\n")
    trust_folder(work)
    return work


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with playing(monkeypatch) as steps:
        yield steps


def planned(*steps: dict[str, Any], **more: Any) -> Step:
    return Step(calls=(ScriptedCall("submit_plan", {"goal": "A trip", "subtasks": list(steps), **more}),))


def step(id: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "description": f"find out about {id} in detail", "dependencies": list(after), **more}


READ = step("times", tool_name="read_file", tool_args={"path": "a.txt"})


def session(folder: Path, resume: Any = "", **flags: Any) -> Conversation:
    return opened(folder, resume, **{"memory.summaries": False, **flags})


def plans_of(talk: Conversation) -> PlanSession:
    assert talk.inventory.feature(PlanSession)
    return cast("PlanSession", talk.inventory.feature(PlanSession))


async def done(
    talk: Conversation, prompt: str, work: Work | None = None, react: React = lambda question: YES, ends: str = "done"
) -> list[Event]:
    turn = talk.say(prompt, work)
    events: list[Event] = []
    async with asyncio.timeout(30):
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked) and (reply := react(event.question)):
                turn.answer(event.ask_id, reply)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == ends, events[-1]
    return events


async def by_plan(talk: Conversation, goal: str, **more: Any) -> list[Event]:
    return await done(talk, goal, plans_of(talk).plan(goal), **more)


def answer(events: list[Event]) -> str:
    return [event.message.text for event in of(MessageDone, events) if event.agent == "main"][-1]


def latest(talk: Conversation) -> Plan:
    plan = plans_of(talk).latest()
    assert plan
    return plan


async def test_a_goal_becomes_a_plan_that_is_approved_carried_out_and_answered(folder: Path, model: Model):
    model += [planned(READ, step("meal", "times")), Step(say="A salad."), Step(say="Take the train; eat a salad.")]
    talk = session(folder)
    asked: list[Question] = []

    def react(question: Question) -> Reply:
        asked.append(question)
        return YES

    events = await by_plan(talk, "Plan my trip", react=react)
    assert [question.kind for question in asked] == ["plan"]
    assert isinstance(asked[0].preview, PlanGraph)
    assert answer(events) == "Take the train; eat a salad."
    plan = latest(talk)
    assert [(each.id, each.status) for each in plan.subtasks] == [("times", "completed"), ("meal", "completed")]
    assert (plan.state, plan.task.original_query) == ("completed", "Plan my trip")
    assert of(AgentStarted, events)[0].call_id == plan.id
    assert of(ToolStarted, events)[0].call.id == f"{plan.id}.times.1"
    # The agent was told what the tool gave, and so was the model that answered.
    assert all("the train leaves at nine" in request.body.decode() for request in model.server.requests[1:])
    await talk.close()


async def test_the_request_itself_is_nothing_that_was_said_before(folder: Path, model: Model):
    model += [Step(say="Noted."), planned(READ), Step(say="At nine.")]
    talk = session(folder)
    await done(talk, "I get up late.")
    await done(talk, "/plan my trip", plans_of(talk).plan("my trip"))
    assert latest(talk).task.context == "The user said: I get up late."
    await talk.close()


async def test_what_the_person_changes_counts(folder: Path, model: Model):
    model += [planned(READ), planned(READ, step("b", "times")), Step(say="Done b.")]
    talk = session(folder)
    asked: list[Plan] = []

    def react(question: Question) -> Reply:
        assert isinstance(question.preview, PlanGraph)
        plan = question.preview.plan
        asked.append(plan)
        if len(asked) == 1:
            return Reply("deny", "Think of food, too.")
        if len(asked) == 2:
            edited = json.loads(json.dumps(as_json(plan)))
            edited["subtasks"][1]["dependencies"] = ["nowhere"]
            return Reply("once", edited=edited)
        assert "there is no step nowhere" in question.preview.notes[0]
        edited = json.loads(json.dumps(as_json(plan)))
        edited["subtasks"][1] |= {"dependencies": ["times"], "description": "write a poem"}
        return Reply("once", edited=edited)

    events = await by_plan(talk, "Plan my trip", react=react)
    assert "Think of food, too." in model.server.requests[1].body.decode()
    assert len(asked) == 3
    assert latest(talk).subtasks[1].description == "write a poem"
    assert latest(talk).replans == 0
    assert of(TurnEnded, events)
    await talk.close()


async def test_a_rejected_plan_does_nothing(folder: Path, model: Model):
    model += [planned(READ)]
    talk = session(folder)
    events = await by_plan(talk, "Plan my trip", react=lambda question: Reply("deny"))
    assert latest(talk).state == "rejected"
    assert of(SubTaskChanged, events) == []
    assert "Nothing was carried out" in answer(events)
    assert plans_of(talk).interrupted() == ""
    with pytest.raises(UsageError, match="rejected"):
        plans_of(talk).resume(latest(talk).id)
    await talk.close()


async def test_an_unclear_goal_is_asked_about_once(folder: Path, model: Model):
    model += [planned(READ, question="Which month?"), planned(READ, question="And the day?"), Step(say="In May.")]
    talk = session(folder)
    asked: list[str] = []

    def react(question: Question) -> Reply:
        asked.append(question.text)
        return Reply("text", "In May") if question.kind == "choice" else YES

    await by_plan(talk, "Plan my trip", react=react)
    assert asked == ["Which month?", "Carry out this plan?"]
    assert "Asked: Which month? Answer: In May" in latest(talk).task.context
    await talk.close()


async def test_without_anybody_to_ask_it_states_what_it_assumes_and_changed(folder: Path, model: Model):
    circle = planned(step("times", "meal"), step("meal", "times"), assumptions=["You start in Rome"])
    model += [circle, circle, Step(say="Nine."), Step(say="A salad."), Step(say="From Rome.")]
    talk = _alone(folder)
    events = await by_plan(talk, "Plan my trip")
    assert of(Asked, events) == []
    assert any("times" in notice.text and "meal" in notice.text for notice in of(Notice, events))
    assert latest(talk).state == "completed"
    assert "You start in Rome" in model.server.requests[-1].body.decode()
    await talk.close()


async def test_plan_mode_without_anybody_gives_the_plan(folder: Path, model: Model):
    model += [planned(READ)]
    talk = _alone(folder, permission_mode="plan")
    events = await by_plan(talk, "Plan my trip")
    assert "1. times: find out about times" in answer(events)
    assert of(SubTaskChanged, events) == []
    await talk.close()


async def test_a_yes_leaves_plan_mode(folder: Path, model: Model):
    model += [planned(READ), Step(say="Done.")]
    talk = session(folder, permission_mode="plan")
    await by_plan(talk, "Plan my trip", react=lambda question: Reply("session"))
    assert talk.transcript.mode == "accept-edits"
    assert latest(talk).state == "completed"
    await talk.close()


async def test_a_critical_failure_is_planned_around(folder: Path, model: Model):
    gone = step("hotel", tool_name="read_file", tool_args={"path": "none.txt"}, critical=True)
    model += [planned(READ, gone), planned(step("inn", "times")), Step(say="An inn."), Step(say="You stay at an inn.")]
    talk = session(folder)
    events = await by_plan(talk, "Plan my trip")
    plan = latest(talk)
    assert [(each.id, each.status) for each in plan.subtasks] == [("times", "completed"), ("inn", "completed")]
    assert (plan.state, plan.replans) == ("completed", 1)
    assert [call.call.name for call in of(ToolStarted, events)].count("read_file") == 2
    await talk.close()


async def test_what_is_said_meanwhile_reaches_later_steps(folder: Path, model: Model):
    model += [planned(step("a"), step("b", "a")), Step(say="A."), Step(say="B."), Step(say="All.")]
    talk = session(folder)
    goal = "Plan my trip"
    turn = talk.say(goal, plans_of(talk).plan(goal))
    async with asyncio.timeout(30):
        async for event in turn:
            match event:
                case Asked():
                    turn.answer(event.ask_id, YES)
                case SubTaskChanged(subtask=now) if now.id == "a" and now.status == "executing":
                    assert turn.steer("I am vegetarian.")
                case _:
                    pass
    bodies = [request.body.decode() for request in model.server.requests]
    assert "vegetarian" not in bodies[1]
    assert "- I am vegetarian." in bodies[2]
    assert "vegetarian" in latest(talk).task.context
    assert any("vegetarian" in message.text for message in talk.transcript.messages)
    await talk.close()


async def test_what_a_step_must_give_is_checked(folder: Path, model: Model):
    model += [
        planned(step("a", expected_output="Three prices"), READ),
        Step(say="Two: 1 and 2."),
        Step(say="MISSING: the third price"),
        Step(say="1, 2 and 3."),
        Step(say="OK"),
        Step(say="All three."),
    ]
    talk = session(folder)
    await by_plan(talk, "Plan my trip")
    first = latest(talk).find("a")
    assert first
    assert (first.status, first.result, first.attempts) == ("completed", "1, 2 and 3.", 1)
    await talk.close()


async def test_a_paused_plan_begins_no_step_until_it_goes_on(folder: Path, model: Model):
    model += [planned(step("a"), step("b", "a")), Step(say="A."), Step(say="B."), Step(say="All.")]
    talk = session(folder)
    goal = "Plan my trip"
    turn = talk.say(goal, plans_of(talk).plan(goal))
    seen: list[str] = []
    async with asyncio.timeout(30):
        async for event in turn:
            match event:
                case Asked():
                    turn.answer(event.ask_id, YES)
                case SubTaskChanged(subtask=now):
                    seen.append(f"{now.id} {now.status}")
                    if now.status == "executing" and now.id == "a":
                        assert turn.pause()
                case AgentPaused(paused=True):
                    assert not any(each.startswith("b") for each in seen)
                    seen.append("paused")
                    turn.resume()
                case _:
                    pass
    assert "paused" in seen
    assert [each for each in seen if each.startswith("b")] == ["b executing", "b completed"]
    assert latest(talk).state == "completed"
    await talk.close()


async def test_an_interrupted_plan_goes_on_in_a_later_run(folder: Path, model: Model):
    write = step("note", "times", tool_name="write_file", tool_args={"path": "b.txt", "content": "{times}"})
    model += [planned(READ, write, step("c", "note")), Step(say="C."), Step(say="All of it.")]
    talk = session(folder)
    goal = "Plan my trip"
    turn = talk.say(goal, plans_of(talk).plan(goal))
    async with asyncio.timeout(30):
        async for event in turn:
            if isinstance(event, Asked) and event.question.kind == "plan":
                turn.answer(event.ask_id, YES)
            elif isinstance(event, Asked):
                turn.cancel()
    assert latest(talk).state == "cancelled"
    id = talk.id
    await talk.close()

    talk = session(folder, id)
    await talk.history()
    assert "was interrupted: 1 of 3 steps are completed. Go on with it: /plan resume" in plans_of(talk).interrupted()
    asked: list[Question] = []

    def react(question: Question) -> Reply:
        asked.append(question)
        return Reply("text", "Run it again") if question.kind == "choice" else YES

    events = await done(talk, "Go on", plans_of(talk).resume(latest(talk).id), react)
    # The call had not run: only its permission was asked for.
    assert [question.kind for question in asked] == ["permission"]
    assert answer(events) == "All of it."
    assert [each.status for each in latest(talk).subtasks] == ["completed"] * 3
    assert "the train leaves at nine" in (folder / "b.txt").read_text()
    assert [call.call.name for call in of(ToolStarted, events)] == ["write_file"]
    await talk.close()


async def test_the_model_plans_within_a_call(folder: Path, model: Model):
    model += [
        Step(calls=(ScriptedCall("plan", {"goal": "A trip to Rome", "reason": "many steps"}),)),
        planned(READ),
        Step(say="At nine."),
    ]
    talk = session(folder)
    events = await done(talk, "Make a plan for my trip and carry it out")
    assert [question.question.kind for question in of(Asked, events)] == ["plan"]
    assert answer(events) == "At nine."
    first, *_, last = model.server.requests
    assert "plan" in [tool["function"]["name"] for tool in first.json["tools"]]
    assert "1 of 1 step completed" in last.body.decode()
    assert of(PlanChanged, events)[-1].plan.state == "completed"
    await talk.close()


async def test_a_first_request_is_told_of_no_plan(folder: Path, model: Model):
    model += [Step(say="Hello.")]
    talk = session(folder)
    await done(talk, "Hello")
    tools = [tool["function"]["name"] for tool in model.server.requests[0].json["tools"]]
    assert "plan" not in tools
    await talk.close()


async def test_the_outcome_is_remembered_and_told_to_the_next_planner(folder: Path, model: Model):
    model += [planned(READ), Step(say="Done."), planned(READ), Step(say="Again.")]
    talk = session(folder)
    await by_plan(talk, "Plan my train trip to Rome")
    await by_plan(talk, "Plan my train trip to Rome and back")
    request = model.server.requests[2].body.decode()
    assert "Outcomes of similar plans" in request
    assert "Worked: find out about times in detail." in request
    await talk.close()
    talk = session(folder, **{"memory.private": True})
    model += [planned(READ), Step(say="Private.")]
    await by_plan(talk, "Plan my train trip to Rome once more")
    assert "Outcomes of similar plans" not in model.server.requests[-2].body.decode()
    await talk.close()


async def test_a_session_that_goes_on_is_told_of_its_plan(folder: Path, model: Model):
    model += [planned(READ, step("b", "times")), Step(say="Hm.")]
    talk = session(folder)
    turn = talk.say("Plan my trip", plans_of(talk).plan("Plan my trip"))
    async with asyncio.timeout(30):
        async for event in turn:
            if isinstance(event, Asked):
                turn.cancel()
    id = talk.id
    await talk.close()
    talk = session(folder, id)
    events = await done(talk, "Hello again")
    (note,) = [event.message.text for event in of(Steered, events) if "was not approved yet" in event.message.text]
    assert "Only the user can go on with it." in note
    await talk.close()


def _alone(folder: Path, **flags: Any) -> Conversation:
    given = {"model": "openai/any", "memory.embedder": "off", "memory.summaries": False, **flags}
    return connect(given, folder, strict=True).library.create()
