"""What a session may cost, when its goal is said again, and when the model hears that the window fills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.context.compression.gauge import Gauge, PromptSize
from ba_tui.context.reminders import BudgetLimits, NearlyFull, Refocus, SessionSpending
from ba_tui.core.conversation import Conversation, compact
from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
    PromptProgress,
    Steered,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.provider import ASSUMED, ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.results import StateChange, Todo, ToolResult
from tests.context.talk import MODEL, Room, compressions, count, history, told
from tests.script import Memory, Script, collect, conversation, says


def limited(script: Script, model: ModelInfo = MODEL, **limits: Any) -> tuple[Conversation, SessionSpending]:
    spending = SessionSpending()
    limit = BudgetLimits(spending, lambda: model, limits.get("max_cost"), limits.get("max_tokens"))
    talk = conversation(script, interceptors=(limit,))
    return talk, spending


async def spent(talk: Conversation, spending: SessionSpending, prompt: str) -> TurnEnded:
    events = await collect(talk.say(prompt))
    for event in events:
        spending.apply(event)
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


async def test_at_max_cost_the_turn_stops_before_the_next_request() -> None:
    script = Script(told("One.", 1_000_000), says("Two."))
    talk, spending = limited(script, max_cost=1.0)
    assert (await spent(talk, spending, "first")).reason == "done"
    end = await spent(talk, spending, "second")
    assert end.reason == "limit"
    assert end.error is not None
    assert "$1" in end.error.message
    assert len(script.requests) == 1
    assert talk.transcript.messages[-1].text == "second"


async def test_at_max_tokens_too() -> None:
    script = Script(told("One.", 990), says("Two."))
    talk, spending = limited(script, max_tokens=1_000)
    assert (await spent(talk, spending, "first")).reason == "done"
    assert (await spent(talk, spending, "second")).reason == "limit"


async def test_what_has_no_price_counts_its_tokens_and_says_so_once() -> None:
    script = Script(told("One.", 50_000), told("Two.", 60_000), says("Three."))
    talk, spending = limited(script, replace(MODEL, prices=None), max_cost=1.0)
    seen: list[Event] = []
    for prompt in ("first", "second", "third"):
        events = await collect(talk.say(prompt))
        seen += events
        for event in events:
            if isinstance(event, MessageDone):
                event = replace(event, cost=None)
            spending.apply(event)
    (notice,) = [event for event in seen if isinstance(event, Notice)]
    assert "prices" in notice.text
    assert "models.yaml" in notice.hint
    assert [event.reason for event in seen if isinstance(event, TurnEnded)] == ["done", "done", "limit"]
    assert len(script.requests) == 2


def test_summaries_and_sub_agents_count() -> None:
    spending = SessionSpending()
    events: list[Event] = [
        MessageDone(replace(says("x"), usage=Usage(10, 5, 100, 1)), 0.25, agent="main/explore-1"),
        Compressed((), "summarize", 100, 50, 0.5, usage=Usage(40, 4)),
        Compressed((), "extract", 100, 50),
        MessageDone(says("y"), None),
    ]
    for event in events:
        spending.apply(event)
    unpriced = ASSUMED.cost(Usage(100, 10))
    assert spending.cost == pytest.approx(0.75 + unpriced)
    assert spending.tokens == 116 + 44 + 110


def with_todos(*todos: Todo) -> list[Event]:
    change = ToolResult("noted", changes=StateChange(todos=todos))
    return [*history(3), TurnStarted(user("plan it")), MessageDone(says("", ("todo_write", {}))), ToolFinished(
        "todo_write-0-", change
    ), MessageDone(says("Planned.")), TurnEnded("done")]  # fmt: skip


def reminders(events: list[Event], words: str) -> list[str]:
    notes = [event.message for event in events if isinstance(event, Steered)]
    return [note.text for note in notes if words in note.text and note.hidden and note.origin == "reminder"]


async def test_every_fifth_round_goal_and_open_todos_are_said_again() -> None:
    todos = (Todo("1", "read part 4", "in_progress"), Todo("2", "sum up"), Todo("3", "begin", "completed"))
    talk = conversation(
        Script(says("One."), says("Two.")), journal=Memory(with_todos(*todos)), interceptors=(Refocus(5),)
    )
    (note,) = reminders(await collect(talk.say("fifth")), "todo list")
    assert "Look at part 1." in note
    assert "read part 4 (in progress)" in note
    assert "- sum up" in note
    assert "begin" not in note.split("todo list")[1]
    assert not reminders(await collect(talk.say("sixth")), "todo list")


async def test_rounds_that_were_taken_back_do_not_count() -> None:
    script = Script(*(says(f"Answer {number}.") for number in range(4)))
    talk = conversation(script, journal=Memory(with_todos(Todo("1", "read on"))), interceptors=(Refocus(5),))
    assert reminders(await collect(talk.say("fifth")), "todo list")
    await talk.past.rewind(5, "conversation")
    assert reminders(await collect(talk.say("the fifth again")), "todo list")
    assert not reminders(await collect(talk.say("sixth")), "todo list")


async def test_the_goal_is_said_again_when_only_notes_hold_it() -> None:
    goal = "Port   the ledger:\n\t- keep the order\n"
    events = with_todos(Todo("1", "read part 4", "in_progress"))
    first = TurnStarted(replace(user(goal), id="first"))
    room = Room(Script(says("One.")), [first, *events[1:]], strategy="truncate")
    await collect(compact(room.talk))
    assert room.talk.transcript.messages[0].origin == "compaction"
    talk = conversation(Script(says("One.")), journal=room.memory, interceptors=(Refocus(5),))
    (note,) = reminders(await collect(talk.say("fifth")), "todo list")
    assert f"began with this request:\n{goal}" in note


@pytest.mark.parametrize(("rounds", "todos"), [(0, (Todo("1", "x"),)), (5, ()), (5, (Todo("1", "x", "completed"),))])
async def test_without_open_todos_or_when_off_nothing_is_said(rounds: int, todos: tuple[Todo, ...]) -> None:
    talk = conversation(Script(says("One.")), journal=Memory(with_todos(*todos)), interceptors=(Refocus(rounds),))
    assert not reminders(await collect(talk.say("fifth")), "todo list")


async def test_the_model_hears_once_that_the_window_fills() -> None:
    gauge = Gauge(lambda: MODEL, lambda: 1_900, count)
    script = Script(
        told("One.", 6_800), told("Two.", 6_900), told("Three.", 1_000), told("Four.", 6_800), says("Five.")
    )
    talk = conversation(script, interceptors=(NearlyFull(gauge, 0.8, automatic=True),))
    heard = [len(reminders(await collect(talk.say("go on")), "% full")) for _ in range(5)]
    assert heard == [0, 1, 0, 0, 1]


async def test_people_who_wait_are_told_how_large_the_prompt_is() -> None:
    gauge = Gauge(lambda: MODEL, lambda: 1_900, count)
    sized, sizes = asyncio.Event(), list[int]()

    async def slow(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await sized.wait()
        yield told("One.", 6_800)

    def hear(event: Event) -> None:
        if isinstance(event, PromptProgress):
            sizes.append(event.total)
            sized.set()

    talk = conversation(Script(slow, says("Two.")), interceptors=(PromptSize(gauge, soon=0.0),))
    for _ in range(2):
        await collect(talk.say("go on!!!"), hear)
    assert sizes == [gauge.estimate(talk.transcript.messages[:1]), gauge.used(talk.transcript.messages[:3])]


async def test_a_first_prompt_that_is_answered_at_once_is_not_counted() -> None:
    def never(messages: Sequence[Message]) -> int:
        raise AssertionError(messages)

    talk = conversation(
        Script(says("One.")), interceptors=(PromptSize(Gauge(lambda: MODEL, lambda: 1_900, never), soon=60.0),)
    )
    events = await collect(talk.say("hello"))
    assert not [event for event in events if isinstance(event, PromptProgress)]


def test_the_room_keeps_an_answer_free_but_never_more_than_half() -> None:
    model = replace(MODEL, window=8_000, max_output=16_000)
    assert Gauge(lambda: model, lambda: 0, count).room == 4_000
    assert Gauge(lambda: MODEL, lambda: 0, count, lambda: 500).room == 9_500


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("prompt is too long: 10000 tokens > 8,000 maximum", 8_000),
        ("input length and `max_tokens` exceed context limit: 9000 + 3200 > 8000, decrease input length", 8_000),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", 4_096),
        ("the request exceeds the available context size (8192 tokens)", 8_192),
        ("The prompt (token length 9000) is longer than the maximum model length of 8192", 8_192),
        ("The conversation is too long.", 10_000),
        ("status 400, limit 12", 10_000),
    ],
)
def test_a_refusal_may_tell_how_large_the_window_is(words: str, window: int) -> None:
    gauge = Gauge(lambda: MODEL, lambda: 0, count)
    gauge.learn(words)
    assert gauge.room == window - min(1_000, window // 2)


def counted(prompt: int, output: int = 5) -> Message:
    return replace(says("An answer."), usage=Usage(prompt, output))


@pytest.mark.parametrize(
    ("claimed", "least", "most"),
    [(0, 2_120, 2_140), (1, 2_120, 2_140), (-40, 2_120, 2_140), (1_700, 1_705, 1_705), (10**9, 2_120, 2_140)],
)
def test_a_vendor_that_counts_nonsense_is_not_believed(claimed: int, least: int, most: int) -> None:
    gauge = Gauge(lambda: MODEL, lambda: 100, count)
    talk = [user("x" * 8_092), counted(claimed)]
    assert least <= gauge.used(talk) <= most
    more = [*talk, user("y" * 400)]
    assert gauge.used(more) == gauge.used(talk) + count(more[-1:])
    after = [*more, counted(claimed), user("z" * 40_000), counted(claimed)]
    again = Gauge(lambda: MODEL, lambda: 100, count)
    assert gauge.used(after) == again.used(after)


async def test_nonsense_does_not_keep_a_full_window_from_being_compressed_nor_compress_an_empty_one() -> None:
    script = Script(says("One."))
    full = Room(script, [*history(20)[:-2], MessageDone(counted(1)), TurnEnded("done")])
    assert compressions(await collect(full.talk.say("Now?")))
    empty = Room(Script(says("One.")), [*history(2)[:-2], MessageDone(counted(10**9)), TurnEnded("done")])
    assert not compressions(await collect(empty.talk.say("Now?")))
