"""When a conversation is compressed, which way, and what holds afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.compression.strategies import faults
from ba_tui.core.conversation import compact, undo_compact
from ba_tui.core.errors import ContextOverflow, ServerOverloaded, UsageError
from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
    Steered,
    TextDelta,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, Usage, reminder, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from tests.context.talk import MODEL, Room, compressions, history, told
from tests.script import Script, collect, kinds, says

LONG = 19
"""Rounds that take between 80 % and all of the window of 10 000 tokens, less 1 000 for the answer."""
NOTES = "## Goal\nLook at all parts.\n## Files\nsrc/part_1.py and the others."


async def test_a_conversation_that_fits_is_left_alone() -> None:
    room = Room(Script(says("Done.")), history(4))
    events = await collect(room.talk.say("And now?"))
    assert not compressions(events)


async def test_above_the_trigger_it_is_compressed_before_the_request() -> None:
    room = Room(Script(says("Done.")), history(LONG))
    events = await collect(room.talk.say("And now?"))
    (done,) = compressions(events)
    sent = room.script.requests[0].messages
    assert done.strategy == "extract"
    assert done.before > 0.8 * 9_000
    assert done.after <= 0.5 * 9_000
    assert not faults(sent)
    assert "And now?" in sent[-1].text
    assert tuple(sent) == done.messages
    assert kinds(events).index("compressed") < kinds(events).index("message_done")


async def test_the_last_rounds_stay_word_for_word() -> None:
    room = Room(Script(says("Done.")), history(LONG, result=1_200), keep_rounds=3)
    await room.talk.history()
    before = room.talk.transcript.messages
    await collect(room.talk.say("And now?"))
    sent = {message.id: message for message in room.script.requests[0].messages}
    assert all(sent[message.id].blocks == message.blocks for message in before[-12:])


async def test_what_the_vendor_counted_decides_not_the_estimate() -> None:
    room = Room(Script(told("One.", 8_000), says("Two.")), history(8))
    first = await collect(room.talk.say("How full is it?"))
    second = await collect(room.talk.say("And now?"))
    assert not compressions(first)
    (done,) = compressions(second)
    assert done.before >= 8_000
    assert done.after <= 0.5 * 9_000


async def test_what_was_counted_before_does_not_count_afterwards() -> None:
    room = Room(Script(told("One.", 8_000), told("Two."), says("Three.")), history(8))
    for prompt in ("How full is it?", "And now?"):
        await collect(room.talk.say(prompt))
    assert not compressions(await collect(room.talk.say("Once more?")))


async def test_the_log_tells_what_was_sent(tmp_path: Path) -> None:
    room = Room(Script(says("One."), says("Two.")), history(LONG))
    for prompt in ("And now?", "Then?"):
        await collect(room.talk.say(prompt))
    again = Transcript(events=room.memory.read())
    assert [message.blocks for message in again.messages] == [m.blocks for m in room.talk.transcript.messages]
    assert [m.blocks for m in room.script.requests[1].messages] == [m.blocks for m in again.messages[:-1]]


async def test_a_refused_prompt_is_compressed_and_sent_once_more() -> None:
    room = Room(Script(ContextOverflow("too long"), says("Fits.")), history(8))
    events = await collect(room.talk.say("And now?"))
    (done,) = compressions(events)
    assert len(room.script.requests) == 2
    assert tuple(room.script.requests[1].messages) == done.messages
    assert done.after <= done.before // 2
    assert events[-1] == TurnEnded("done", at=events[-1].at)


async def test_a_prompt_that_is_refused_twice_is_an_error() -> None:
    room = Room(Script(ContextOverflow("too long"), ContextOverflow("still too long")), history(8))
    events = await collect(room.talk.say("And now?"))
    end = events[-1]
    assert len(room.script.requests) == 2
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    assert end.error.kind == "context_overflow"


async def test_words_of_the_refused_answer_are_void() -> None:
    async def breaks(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half a ")
        raise ContextOverflow("too long")

    room = Room(Script(breaks, says("Whole.")), history(8))
    events = await collect(room.talk.say("And now?"))
    assert kinds(events).index("compressed") < kinds(events).index("message_restarted")
    assert room.talk.transcript.messages[-1].text == "Whole."


async def test_a_refused_request_of_one_agent_concerns_no_other() -> None:
    room = Room(Script(), means={"again": lambda transcript: [reminder("The task stays.")]})
    emitted: list[tuple[str, Event]] = []

    def agent(name: str) -> Branch:
        turn = Turn(lambda event: emitted.append((name, event)))
        return Branch(turn, Transcript(name, events=[replace(event, agent=name) for event in history(8)]))

    agents = [agent(name) for name in ("main", "main/explore-1")]
    for each in agents:
        await room.compressor.before(each)
    assert await room.compressor.rescue(agents[1].transcript.messages, "It is too long.")
    for each in agents:
        await room.compressor.before(each)
    assert [name for name, event in emitted if isinstance(event, Steered)] == ["main/explore-1"]


async def test_the_window_that_a_server_tells_counts_from_then_on() -> None:
    refusal = ContextOverflow("This model's maximum context length is 4096 tokens. However, you requested 5,120 tokens")
    room = Room(Script(refusal, says("Fits.")), history(12))
    await collect(room.talk.say("And now?"))
    assert room.gauge.room == 4096 - 1_000


@pytest.mark.parametrize(("before", "hint"), [(3, "short"), (0, "short")])
async def test_compact_says_when_there_is_nothing_to_do(before: int, hint: str) -> None:
    room = Room(Script(), history(before, result=20))
    end = (await collect(compact(room.talk)))[-1]
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    assert hint in end.error.message


async def test_compact_needs_no_full_window_and_leaves_no_turn() -> None:
    room = Room(Script(says("Two.")), history(12))
    events = await collect(compact(room.talk, "part 3"))
    (done,) = compressions(events)
    assert done.after < 0.6 * done.before
    assert not [event for event in room.memory.read()[-1:] if isinstance(event, TurnEnded)]
    assert room.script.requests == []


@pytest.mark.parametrize("strategy", ["truncate", "extract", "summarize"])
async def test_a_reminder_of_a_full_window_does_not_outlive_the_compression(tmp_path: Path, strategy: str) -> None:
    told_full = Steered(reminder("The context window is 76% full. Soon its older part is replaced by notes."))
    turns = [history(1) for _ in range(20)]
    events = [event for opened, *rest in turns for event in (opened, told_full, *rest)]
    writer = Script(told(NOTES, 900))
    room = Room(Script(says("Done.")), events, writer=writer, folder=tmp_path, strategy=strategy)
    await collect(compact(room.talk))
    await collect(room.talk.say("And now?"))
    sent = "".join(message.text for message in room.script.requests[0].messages)
    assert "Look at part 1." in sent
    assert "context window" not in sent
    asked = "".join(message.text for request in writer.requests for message in request.messages)
    assert "context window" not in asked


async def test_undo_brings_back_what_was_before_with_what_came_since() -> None:
    room = Room(Script(says("Two.")), history(12))
    await room.talk.history()
    before = [message.id for message in room.talk.transcript.messages]
    await collect(compact(room.talk))
    await collect(room.talk.say("And now?"))
    (back,) = compressions(await collect(undo_compact(room.talk)))
    ids = [message.id for message in room.talk.transcript.messages]
    assert back.strategy == "undo"
    assert ids[: len(before)] == before
    assert [message.text for message in room.talk.transcript.messages[-2:]] == ["And now?", "Two."]
    again = Transcript(events=room.memory.read())
    assert [message.id for message in again.messages] == ids


async def test_undo_goes_back_one_compression_at_a_time() -> None:
    room = Room(Script(), history(20))
    await room.talk.history()
    states = [[message.id for message in room.talk.transcript.messages]]
    for _ in range(2):
        await collect(compact(room.talk))
        states.append([message.id for message in room.talk.transcript.messages])
    for state in (states[1], states[0]):
        await collect(undo_compact(room.talk))
        assert [message.id for message in room.talk.transcript.messages] == state
    end = (await collect(undo_compact(room.talk)))[-1]
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    assert "no compression" in end.error.message


async def test_a_hook_can_refuse(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    async def veto(trigger: str, focus: str) -> str | None:
        asked.append((trigger, focus))
        return "not now"

    room = Room(Script(says("One."), says("Two.")), history(LONG), means={"veto": veto})
    events = await collect(room.talk.say("And now?"))
    assert [event.text for event in events if isinstance(event, Notice) and "not now" in event.text]
    assert not compressions(events)
    end = (await collect(compact(room.talk, "the parts")))[-1]
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    assert "not now" in end.error.message
    assert asked == [("auto", ""), ("manual", "the parts")]


async def test_switched_off_only_the_person_and_a_refusal_compress() -> None:
    room = Room(Script(says("One.")), history(LONG), enabled=False)
    assert not compressions(await collect(room.talk.say("And now?")))
    assert compressions(await collect(compact(room.talk)))


async def test_words_cannot_join_a_compression() -> None:
    room = Room(Script(says("Two.")), history(12))
    turn = compact(room.talk)
    assert turn.steer("wait") is False
    with pytest.raises(UsageError):
        compact(room.talk)
    await collect(turn)


async def test_one_enormous_prompt_is_made_to_fit() -> None:
    room = Room(Script(says("One.")))
    await collect(room.talk.say("word " * 20_000))
    assert room.size() <= 9_000


async def test_five_thousand_tiny_messages_are_made_to_fit() -> None:
    room = Room(Script(says("One.")), history(1_250, result=14))
    await collect(room.talk.say("And now?"))
    assert room.size() <= 0.8 * 9_000
    assert not faults(room.script.requests[0].messages)


async def test_a_prompt_after_an_interrupted_call_keeps_call_and_result_together() -> None:
    call = ToolUse("cut", "shell", {"command": "make"})
    asked = MessageDone(Message("assistant", (Text("I run it."), call), origin="assistant"))
    events = [*history(LONG), TurnStarted(user("Run it.")), asked, ToolStarted(call), TurnEnded("cancelled")]
    room = Room(Script(says("Done.")), events)
    assert compressions(await collect(room.talk.say("And now?")))
    assert not faults(room.script.requests[0].messages)
    assert room.script.requests[0].messages[-1].text == "And now?"


# Summaries


def summarizing(writer: Script, folder: Path, **settings: Any) -> Room:
    script = Script(says("One."), says("Two."))
    chosen: dict[str, Any] = {"summary_tokens": 500, **settings}
    return Room(script, history(LONG), writer=writer, folder=folder, **chosen)


async def test_a_summary_comes_in_the_background_and_takes_the_place(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path)
    (first,) = compressions(await collect(room.talk.say("And now?")))
    await settled(room)
    (second,) = compressions(await collect(room.talk.say("Then?")))
    assert (first.strategy, second.strategy) == ("extract", "summarize")
    sent = room.script.requests[1].messages
    assert NOTES.splitlines()[1] in sent[0].text
    assert "## Round 1\nThe user wrote:\nLook at part 1." in sent[0].text
    assert not faults(sent)
    assert [message.text for message in sent[-3:]] == ["And now?", "One.", "Then?"]
    assert second.cost == pytest.approx((900 * 1 + 10 * 2) / 1e6)
    assert (first.usage, second.usage) == (None, Usage(900, 10))


async def settled(room: Room) -> None:
    """Until the summary is there."""
    tasks = [task for task in asyncio.all_tasks() if "Compressor._summary" in repr(task.get_coro())]
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_where_no_room_is_left_the_turn_waits_for_the_summary(tmp_path: Path) -> None:
    room = Room(Script(says("One.")), history(30), writer=Script(told(NOTES, 900)), folder=tmp_path)
    (done,) = compressions(await collect(room.talk.say("And now?")))
    assert done.strategy == "summarize"
    assert done.after <= 0.5 * 9_000


async def test_a_failing_summariser_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    room = summarizing(Script(ServerOverloaded("busy"), ServerOverloaded("busy")), tmp_path)
    (first,) = compressions(await collect(room.talk.say("And now?")))
    await settled(room)
    events = await collect(room.talk.say("Then?"))
    assert not compressions(events)
    assert events[-1] == TurnEnded("done", at=events[-1].at)
    assert first.strategy == "extract"


async def test_a_summary_that_no_longer_applies_is_dropped(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path)
    await collect(room.talk.say("And now?"))
    await settled(room)
    (undone,) = compressions(await collect(undo_compact(room.talk)))
    assert undone.usage == Usage(900, 10)
    done = compressions(await collect(room.talk.say("Then?")))
    assert "summarize" not in [event.strategy for event in done]
    assert not any(event.usage for event in done)


async def test_the_person_waits_for_the_summary(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path)
    (done,) = compressions(await collect(compact(room.talk, "the parts")))
    assert done.strategy == "summarize"
    assert "the parts" in room.writer.requests[0].system
    assert "the last 6 rounds word for word" in done.kept


async def test_without_a_summary_rules_are_enough_and_say_so(tmp_path: Path) -> None:
    room = summarizing(Script(ServerOverloaded("The model is busy.")), tmp_path)
    (done,) = compressions(await collect(compact(room.talk)))
    assert done.strategy == "extract"
    assert "The model is busy" in done.kept


async def test_what_came_to_nothing_was_paid_for_all_the_same(tmp_path: Path) -> None:
    room = summarizing(Script(replace(says("", ("look", {})), usage=Usage(900, 10)), told(NOTES, 300)), tmp_path)
    (done,) = compressions(await collect(compact(room.talk)))
    assert (done.strategy, done.usage, done.cost) == ("extract", Usage(900, 10), pytest.approx(920 / 1e6))
    await collect(undo_compact(room.talk))
    (again,) = compressions(await collect(compact(room.talk)))
    assert (again.strategy, again.usage) == ("summarize", Usage(300, 10))


async def test_a_summary_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await asyncio.Event().wait()
        yield says("late")

    room = summarizing(Script(never), tmp_path, summary_timeout=0.01)
    (done,) = compressions(await collect(compact(room.talk)))
    assert done.strategy == "extract"


async def test_cancelling_leaves_everything_as_it_was(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        begun.set()
        await asyncio.Event().wait()
        yield says("late")

    room = summarizing(Script(never), tmp_path)
    turn = compact(room.talk)
    await begun.wait()
    before = room.talk.transcript.messages
    turn.cancel()
    end = (await collect(turn))[-1]
    assert isinstance(end, TurnEnded)
    assert end.reason == "cancelled"
    assert room.talk.transcript.messages == before


async def test_the_hourly_budget_keeps_a_model_from_being_asked(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path, budget=0.0001)
    (done,) = compressions(await collect(compact(room.talk)))
    assert done.strategy == "extract"
    assert room.writer.requests == []


async def test_the_same_summary_is_not_paid_twice(tmp_path: Path) -> None:
    for cost in (True, False):
        room = summarizing(Script(told(NOTES, 900)), tmp_path)
        (done,) = compressions(await collect(compact(room.talk)))
        assert done.strategy == "summarize"
        assert bool(done.cost) is bool(done.usage) is cost
        assert bool(room.writer.requests) is cost


async def test_a_second_compression_keeps_the_first_summary_in_what_is_summarised(tmp_path: Path) -> None:
    room = summarizing(
        Script(told(NOTES, 900), told("## Goal\nAll of it.", 900)), tmp_path, summarize_from=10, extract_below=0
    )
    await collect(compact(room.talk))
    await collect(compact(room.talk))
    assert "Look at all parts." in room.writer.requests[1].messages[0].text
    assert room.talk.transcript.messages[0].text.count("The user wrote:\nLook at part 1.") == 1


async def test_closing_ends_a_summary_that_is_being_written(tmp_path: Path) -> None:
    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await asyncio.Event().wait()
        yield says("late")

    room = summarizing(Script(never), tmp_path)
    await collect(room.talk.say("And now?"))
    await room.compressor.close()
    await room.compressor.close()
    assert not [task for task in asyncio.all_tasks() if "Compressor._summary" in repr(task.get_coro())]


def test_the_test_model_has_a_price() -> None:
    assert MODEL.prices is not None
    assert Compressed((), "extract", 1, 1).cost is None
    assert MessageDone(says("x")).cost is None
