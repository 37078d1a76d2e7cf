"""What agents are doing follows from the other events: live and from the journal, by the table of states."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.activity import ENDINGS, activities
from ba_tui.core.agent import Agent, CutAnswers, StepLimit, run_child
from ba_tui.core.errors import ConnectionLost, StopTurn
from ba_tui.core.events import (
    MAIN,
    ActivityChanged,
    AgentPaused,
    Answered,
    Asked,
    Event,
    MessageDone,
    ModeChanged,
    PlanChanged,
    Steered,
    SubTaskChanged,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.teamwork import AgentActivity, Plan, PlanState, PlanTask, SubTask
from ba_tui.core.tool import Call
from ba_tui.core.turn import Branch, Turn
from tests.script import Memory, Script, collect, conversation, says
from tests.turns.test_loop import tool

ENDED_ACTIVITIES: frozenset[AgentActivity] = frozenset({"finished", "error", "cancelled"})


def _states(*states: AgentActivity) -> frozenset[AgentActivity]:
    return frozenset(states)


_BEGUN = _states("thinking", "planning")
_WORKING = _states("planning", "thinking", "acting", "observing", "replanning")
_LEFT = _states("awaiting_approval", "paused") | ENDED_ACTIVITIES
TRANSITIONS: Mapping[AgentActivity, frozenset[AgentActivity]] = {
    "idle": _BEGUN,
    "planning": _states("thinking", "acting", "observing", "replanning") | _LEFT,
    "thinking": _states("planning", "acting", "replanning") | _LEFT,
    "acting": _states("planning", "thinking", "observing", "replanning") | _LEFT,
    "observing": _states("planning", "thinking", "acting", "replanning") | _LEFT,
    "replanning": _states("planning", "thinking", "acting", "observing") | _LEFT,
    "awaiting_approval": _WORKING | _states("paused") | ENDED_ACTIVITIES,
    "paused": _WORKING | _states("awaiting_approval") | ENDED_ACTIVITIES,
    "finished": _BEGUN,
    "error": _BEGUN,
    "cancelled": _BEGUN,
}
"""The allowed next states of each state.

``thinking``: the model works on its answer; ``acting``: calls or subtasks run; ``observing``: their results were sent
to the model, and its answer has not begun; ``planning`` and ``replanning``: a plan is made, or the mode is plan and the
model thinks. A new turn starts again after the end of the last one.
"""


def states(events: Sequence[Event], agent: str = MAIN) -> list[AgentActivity]:
    return [event.activity for event in events if isinstance(event, ActivityChanged) and event.agent == agent]


def assert_legal(events: Sequence[Event], journal: Memory) -> None:
    """Every agent moves by the table, ends when its turn does, and its journal tells the same."""
    changes = [event for event in events if isinstance(event, ActivityChanged)]
    for agent in {change.agent for change in changes}:
        own = [change for change in changes if change.agent == agent]
        assert own[0].before == "idle"
        assert all(one.activity == other.before for one, other in itertools.pairwise(own))
        assert all(change.activity in TRANSITIONS[change.before] for change in own)
        (ending,) = [event for event in events if isinstance(event, TurnEnded) and event.agent == agent]
        assert own[-1].activity == ENDINGS[ending.reason]
        assert sum(change.activity in ENDED_ACTIVITIES for change in own) == 1
    assert {event.agent for event in events if isinstance(event, TurnStarted)} == {each.agent for each in changes}
    assert activities(journal.read()) == [(each.at, each.agent, each.activity) for each in changes]


class Acts:
    """Tools that do what their arguments say; ``turn`` is the one that runs."""

    turn: Turn

    async def act(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        match args["do"]:
            case "ask":
                await call.ask(Question("choice", "Which?", call_id=call.id))
            case "fail":
                return failure("execution_error", "It broke.")
            case "bug":
                raise ZeroDivisionError("a bug")
            case "stop":
                raise StopTurn("Enough.", closing="Enough.")
            case "cancel":
                self.turn.cancel(call.branch.name)
                await asyncio.Event().wait()
            case "child":
                steps = [step_of(each) for each in args["steps"]]
                tools = (tool("act", self.act),)
                agent = Agent(Script(*steps), tools, "", (StepLimit(9), CutAnswers()))
                await run_child(agent, call.branch.fork("child", agent.ceiling), "go")
            case _:
                await asyncio.sleep(0)
        return ToolResult("done")


Do = str | tuple[str, tuple[Any, ...]]


def step_of(calls: Sequence[Do] | None) -> Any:
    """A step of a script: an answer that makes ``calls``, or None for a model that can't be reached."""
    if calls is None:
        return ConnectionLost("The connection was lost.")
    args = [{"do": each} if isinstance(each, str) else {"do": each[0], "steps": each[1]} for each in calls]
    return says("", *(("act", each) for each in args)) if args else says("An answer.")


SIMPLE = st.sampled_from(["ok", "ok", "ask", "fail", "bug", "stop", "cancel"])
STEPS = st.lists(st.none() | st.lists(SIMPLE, max_size=3).map(tuple), max_size=3).map(tuple)
CHILD = st.tuples(st.just("child"), STEPS)
TURN = st.lists(st.none() | st.lists(SIMPLE | CHILD, max_size=3), max_size=4)


@given(TURN)
@settings(max_examples=60, deadline=None)
async def test_any_turn_moves_by_the_table_and_ends_in_an_end(script: list[Sequence[Do] | None]):
    acts, journal = Acts(), Memory()
    talk = conversation(Script(*map(step_of, script)), tool("act", acts.act), journal=journal, max_loops=9)
    acts.turn = talk.say("go")

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            acts.turn.answer(event.ask_id, Reply("text", "this one"))

    assert_legal(await collect(acts.turn, react), journal)


async def test_a_step_is_thinking_acting_and_observing():
    steps = (says("", ("act", {"do": "ask"})), says("", ("act", {"do": "ok"}), ("act", {"do": "ok"})), says("Done."))
    talk = conversation(Script(*steps), tool("act", Acts().act))
    turn = talk.say("go")

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    step = ["thinking", "acting", "awaiting_approval", "acting", "observing"]
    assert states(events) == [*step, "thinking", "acting", "observing", "thinking", "finished"]
    assert [event.type for event in events[-2:]] == ["activity_changed", "turn_ended"]


async def test_the_first_words_of_an_answer_end_observing():
    async def words(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("D")
        yield TextDelta("one.")
        yield says("Done.")

    talk = conversation(Script(says("", ("act", {"do": "ok"})), words), tool("act", Acts().act))
    events = await collect(talk.say("go"))
    first = next(at for at, event in enumerate(events) if isinstance(event, TextDelta))
    assert events[first + 1] == ActivityChanged("thinking", "observing", at=events[first].at)
    assert states(events[first + 2 :]) == ["finished"]


def test_what_a_dead_process_left_was_cancelled():
    prompt = user("go")
    left = [
        TurnStarted(prompt),
        MessageDone(says("", ("act", {}))),
        TurnStarted(prompt, agent="main/explore-1"),
        TurnEnded("interrupted"),
        TurnStarted(prompt),
        TurnEnded("limit"),
    ]
    assert [(agent, state) for _, agent, state in activities(left)] == [
        (MAIN, "thinking"),
        ("main/explore-1", "thinking"),
        (MAIN, "cancelled"),
        ("main/explore-1", "cancelled"),
        (MAIN, "thinking"),
        (MAIN, "error"),
    ]


def test_plans_are_planning_replanning_and_acting():
    task, step = PlanTask("t", "Go"), SubTask("s1", "Look", status="executing")

    def plan(state: PlanState, replans: int = 0) -> PlanChanged:
        return PlanChanged(Plan("p", task, state=state, replans=replans))

    events = [
        *(TurnStarted(user("go")), plan("proposed"), Asked("q", Question("plan", "Carry it out?"))),
        *(
            Answered("q", Reply("once")),
            plan("approved"),
            plan("running"),
            SubTaskChanged("p", step),
            plan("running", 1),
            SubTaskChanged("p", step),
        ),
        *(plan("partial", 1), TurnEnded("done"), ModeChanged("plan"), TurnStarted(user("more"))),
    ]
    assert [state for _, _, state in activities(events)] == [
        *("thinking", "planning", "awaiting_approval", "planning", "acting", "replanning", "acting"),
        *("thinking", "finished", "planning"),
    ]


async def test_in_plan_mode_thinking_is_planning():
    talk = conversation(Script(says("", ("act", {"do": "ok"})), says("1. Look\n2. Go")), tool("act", Acts().act))
    talk.set_mode("plan")
    assert states(await collect(talk.say("go"))) == ["planning", "acting", "observing", "planning", "finished"]


class Held:
    """A main agent with a child, either of which can be held while the child acts."""

    def __init__(self, deadline: float | None = None) -> None:
        self.acting, self.go_on = asyncio.Event(), asyncio.Event()
        self.branches: list[Branch] = []
        self.deadline = deadline
        self.provider = Script(says("", ("act", {})), says("The child is done."))
        self.journal = Memory()
        talk = conversation(
            Script(says("", ("start", {})), says("Done.")), tool("start", self.start), journal=self.journal
        )
        self.talk, self.turn = talk, talk.say("go")

    async def start(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        child = Agent(self.provider, (tool("act", self.act),), "", (StepLimit(9),))
        done = await run_child(child, call.branch.fork("child", child.ceiling), "go", deadline=self.deadline)
        return ToolResult(f"{done.status}: {done.message.text}")

    async def act(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.branches.append(call.branch)
        self.acting.set()
        await self.go_on.wait()
        return ToolResult("acted")


@pytest.mark.parametrize("paused", [MAIN, "main/child-1"])
async def test_a_paused_agent_and_those_below_stand_still_before_the_next_request(paused: str):
    held, standing = Held(), asyncio.Event()

    def react(event: Event) -> None:
        if isinstance(event, AgentPaused) and event.paused:
            standing.set()

    reading = asyncio.create_task(collect(held.turn, react))
    await held.acting.wait()
    assert held.branches[0].pause(paused, on=True)
    assert not held.turn.pause("main/nobody-1")
    held.go_on.set()
    await standing.wait()
    assert len(held.provider.requests) == 1
    assert held.turn.steer("And look there.")
    assert not held.turn.resume("main/nobody-1")
    assert held.branches[0].pause(paused, on=False)
    events = await reading
    child = "main/child-1"
    assert [event.paused for event in events if isinstance(event, AgentPaused) and event.agent == child] == [
        True,
        False,
    ]
    assert states(events, child) == [
        *("thinking", "acting", "observing", "paused", "observing", "thinking", "finished")
    ]
    assert any("And look there." in event.message.text for event in events if isinstance(event, Steered))
    assert_legal(events, held.journal)


@pytest.mark.parametrize("end", ["cancel", "cancel child", "close"])
async def test_a_paused_agent_can_be_cancelled_and_closed(end: str):
    held, standing = Held(), asyncio.Event()

    def react(event: Event) -> None:
        if isinstance(event, AgentPaused):
            standing.set()

    reading = asyncio.create_task(collect(held.turn, react))
    await held.acting.wait()
    held.turn.pause("main/child-1")
    held.go_on.set()
    await standing.wait()
    if end == "close":
        await held.talk.close()
    else:
        held.turn.cancel(MAIN if end == "cancel" else "main/child-1")
    events = await reading
    assert states(events, "main/child-1")[-2:] == ["paused", "cancelled"]
    assert states(events)[-1] == ("finished" if end == "cancel child" else "cancelled")
    assert any(isinstance(event, MessageDone) and event.message.calls for event in held.journal.read())
    assert_legal(events, held.journal)


async def test_a_paused_main_asks_nothing_until_it_goes_on():
    provider = Script(says("", ("act", {"do": "ok"})), says("Done."))
    talk = conversation(provider, tool("act", Acts().act))
    turn = talk.say("go")
    assert turn.pause()
    asked: list[int] = []

    def react(event: Event) -> None:
        if isinstance(event, AgentPaused) and event.paused:
            asked.append(len(provider.requests))
            turn.resume()

    events = await collect(turn, react)
    assert asked == [0]
    assert states(events)[:3] == ["thinking", "paused", "thinking"]
    assert events[-1].type == "turn_ended"
    assert not turn.pause()


async def test_a_deadline_does_not_run_while_an_agent_is_paused():
    late, held = asyncio.Event(), Held(deadline=0.5)

    def react(event: Event) -> None:
        if isinstance(event, TurnStarted) and event.agent != MAIN:
            held.turn.pause()
            asyncio.get_running_loop().call_later(0.6, late.set)

    reading = asyncio.create_task(collect(held.turn, react))
    await late.wait()
    assert not held.acting.is_set()
    held.go_on.set()
    held.turn.resume()
    assert states(await reading, "main/child-1")[-1] == "finished"
