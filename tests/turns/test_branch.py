"""What an agent holds: what it spends, whom it asks, and who hears it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ba_tui.core.events import (
    ActivityChanged,
    AgentPaused,
    Answered,
    Asked,
    Compressed,
    Event,
    MessageDone,
    ModeChanged,
    Notice,
    SideRequest,
    Steered,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, Usage, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn

USAGE = Usage(100, 10)


def answered(cost: float | None, usage: Usage | None = USAGE) -> MessageDone:
    return MessageDone(Message("assistant", (Text("Yes."),), usage=usage, origin="assistant"), cost)


class Asking:
    """A branch that asks one question, and what is heard of it."""

    def __init__(self, name: str = "main", **question: Any) -> None:
        self.events: list[Event] = []
        self.turn = Turn(self.events.append)
        self.branch = Branch(self.turn, Transcript(name))
        self.question = Question("permission", "Write it?", **question)

    def begin(self, meanwhile: Any = None) -> asyncio.Task[Reply]:
        return asyncio.create_task(self.branch.ask(self.question, meanwhile))

    async def asked(self) -> str:
        while not (found := [event.ask_id for event in self.events if isinstance(event, Asked)]):  # noqa: ASYNC110
            await asyncio.sleep(0)
        return found[0]

    def replies(self) -> list[Reply]:
        return [event.reply for event in self.events if isinstance(event, Answered)]


def test_what_an_agent_spends_counts_for_all_above_it() -> None:
    main = Branch(Turn(), Transcript())
    child = main.fork("explore")
    below, beside = child.fork("deep"), main.fork("other")
    below.emit(answered(0.5))
    child.emit(answered(0.25))
    for branch, cost, requests in ((below, 0.5, 1), (child, 0.75, 2), (main, 0.75, 2), (beside, 0.0, 0)):
        assert (branch.account.cost, branch.account.requests) == (cost, requests)
        assert branch.account.usage.input == 100 * requests


@pytest.mark.parametrize(
    ("event", "cost", "requests"),
    [
        (answered(0.5), 1.5, 2),
        (answered(None), None, 2),
        (answered(None, None), 1.0, 1),
        (SideRequest("title", "small", USAGE, 0.5), 1.5, 2),
        (SideRequest("title", "small", USAGE, None), 1.0, 2),
        (Compressed((), "summarize", 10, 5, 0.5, usage=USAGE), 1.5, 2),
        (Compressed((), "truncate", 10, 5), 1.0, 2),
        (Compressed((), "summarize", 10, 5, usage=USAGE), None, 2),
        (Notice("hello"), 1.0, 1),
    ],
)
def test_what_has_no_price_makes_the_cost_unknown_where_it_is_the_agents_own(
    event: Event, cost: float | None, requests: int
) -> None:
    branch = Branch(Turn(), Transcript())
    branch.emit(answered(1.0))
    branch.emit(event)
    assert (branch.account.cost, branch.account.requests) == (cost, requests)


async def test_the_first_answer_wins_and_ends_the_other() -> None:
    asking = Asking()
    ended = asyncio.Event()

    async def never() -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    task = asking.begin(never)
    id = await asking.asked()
    await asyncio.sleep(0)
    assert asking.turn.answer(id, Reply("once"))
    assert await task == Reply("once")
    assert ended.is_set()
    assert not asking.turn.answer(id, Reply("deny"))
    assert asking.replies() == [Reply("once")]


async def test_what_answers_meanwhile_counts_when_it_comes_first() -> None:
    asking = Asking()

    async def mode() -> Reply:
        return Reply("once", by="mode")

    assert await asking.begin(mode) == Reply("once", by="mode")
    assert not asking.turn.answer(await asking.asked(), Reply("deny"))


async def test_what_fails_meanwhile_leaves_the_question_to_the_user() -> None:
    asking = Asking()

    async def fails() -> Reply:
        raise ValueError("broken")

    task = asking.begin(fails)
    id = await asking.asked()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    assert asking.turn.answer(id, Reply("once"))
    assert await task == Reply("once")


@pytest.mark.parametrize(
    ("settled", "choice", "notices"), [("deny", "deny", 0), ("allow", "once", 0), ("escalate", "deny", 1)]
)
async def test_a_question_that_nobody_answers_is_settled(settled: Any, choice: str, notices: int) -> None:
    asking = Asking(timeout=0.01, on_timeout=settled)
    reply = await asking.begin()
    assert (reply.choice, reply.by) == (choice, "nobody")
    assert asking.replies() == [reply]
    assert len([event for event in asking.events if isinstance(event, Notice)]) == notices


async def test_an_answer_in_time_is_the_users() -> None:
    asking = Asking(timeout=60.0, on_timeout="deny")
    task = asking.begin()
    asking.turn.answer(await asking.asked(), Reply("once"))
    assert (await task).by == "person"


@pytest.mark.parametrize("name", ["main", "main/explore-1"])
async def test_a_question_that_is_withdrawn_is_told_where_the_turn_goes_on(name: str) -> None:
    asking = Asking(name)
    task = asking.begin()
    await asking.asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [reply.by for reply in asking.replies()] == ([] if name == "main" else ["nobody"])


async def test_what_a_face_has_heard() -> None:
    turn = Turn()
    branch = Branch(turn, Transcript())
    assert turn.heard
    branch.emit(TextDelta("on"))
    assert not turn.heard
    branch.emit(TurnEnded("done"))
    heard = [event async for event in turn]
    assert turn.heard
    assert isinstance(heard[-1], TurnEnded)


def test_words_join_no_turn_that_has_ended_or_hears_none() -> None:
    turn = Turn()
    assert turn.steer("more")
    turn.listens = False
    assert not turn.steer("more")
    turn.listens = True
    Branch(turn, Transcript()).emit(TurnEnded("done"))
    assert not turn.steer("more")
    assert [message.text for message in turn.inbox] == ["more"]


def test_what_would_come_between_calls_and_results_waits() -> None:
    branch = Branch(Turn(), Transcript())
    assert not branch.drain()
    with branch.calling():
        with branch.calling():
            branch.emit(Steered(user("one", origin="steer")))
        branch.emit(Steered(user("two", origin="steer")))
        assert branch.waiting
        assert branch.drain()
        assert branch.waiting
    assert not branch.transcript.messages
    assert branch.drain()
    assert not branch.waiting
    said = " ".join(message.text for message in branch.transcript.messages)
    assert said.index("one") < said.index("two")


async def test_a_turn_that_is_closed_says_so_and_ends_its_work() -> None:
    turn = Turn()
    branch = Branch(turn, Transcript())
    task = asyncio.create_task(asyncio.Event().wait())
    branch.runs(task)
    assert not branch.closed
    turn.close()
    assert branch.closed
    await turn.wait()
    assert task.cancelled()


async def test_a_stop_ends_the_work_of_its_agent_alone() -> None:
    turn = Turn()
    main = Branch(turn, Transcript())
    child = main.fork("explore")
    tasks = {branch: asyncio.create_task(asyncio.Event().wait()) for branch in (main, child)}
    for branch, task in tasks.items():
        branch.runs(task)
    child.stop()
    await asyncio.wait([tasks[child]])
    assert tasks[child].cancelled()
    assert not tasks[main].done()
    main.stop()
    await turn.wait()
    assert tasks[main].cancelled()
    main.stop()
    assert not main.pause("main", on=True), "it has no work any more"


@pytest.mark.parametrize(("mode", "activity"), [("default", "thinking"), ("plan", "planning")])
def test_an_agent_in_mode_plan_is_planning(mode: Any, activity: str) -> None:
    events: list[Event] = []
    branch = Branch(Turn(events.append), Transcript())
    branch.emit(ModeChanged(mode))
    branch.emit(TurnStarted(user("go")))
    assert [each.activity for each in events if isinstance(each, ActivityChanged)] == [activity]


def test_a_turn_that_was_just_made_has_not_opened_or_ended() -> None:
    turn = Turn()
    assert (turn.opened, turn.ended, turn.closed, turn.listens) == (False, False, False, True)
    child = TurnEnded("done", agent="main/explore-1")
    turn.publish(child)
    assert not turn.ended
    turn.publish(TurnEnded("done"))
    assert turn.ended


async def test_an_agent_that_is_paused_says_when_it_stands_and_when_it_goes_on() -> None:
    events: list[Event] = []
    turn = Turn(events.append)
    main = Branch(turn, Transcript())
    child = main.fork("explore")
    for branch in (main, child):
        branch.runs(asyncio.create_task(asyncio.Event().wait()))
    await child.unpaused()
    assert [event for event in events if isinstance(event, AgentPaused)] == []
    assert main.pause(child.name, on=True)
    waiting = asyncio.create_task(child.unpaused())
    await asyncio.sleep(0)
    assert [(event.agent, event.paused) for event in events if isinstance(event, AgentPaused)] == [(child.name, True)]
    await main.unpaused()
    assert not waiting.done()
    assert main.pause(child.name, on=False)
    await waiting
    assert [event.paused for event in events if isinstance(event, AgentPaused)] == [True, False]
    assert not main.pause(child.name, on=False)
    child.stop()
    main.stop()
    await turn.wait()


async def test_an_agent_that_goes_on_later_does_not_begin_paused() -> None:
    turn = Turn()
    branch = Branch(turn, Transcript())
    tasks = [asyncio.create_task(asyncio.Event().wait()) for _ in range(2)]
    branch.runs(tasks[0])
    assert turn.pause()
    assert branch.pauses.now(branch.name)
    branch.runs(tasks[1])
    assert not branch.pauses.now(branch.name)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def test_work_that_says_nothing_of_its_mode_is_not_planning() -> None:
    events: list[Event] = []
    Turn(events.append).publish(TurnStarted(user("go")))
    assert [each.activity for each in events if isinstance(each, ActivityChanged)] == ["thinking"]
