"""Exactly when a conversation is compressed, how often it is tried, and what comes with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from ba_tui.context.compression.compressor import TOOLS
from ba_tui.context.compression.facts import FADING, Importance, weight
from ba_tui.core.conversation import compact
from ba_tui.core.errors import ContextOverflow, ServerOverloaded
from ba_tui.core.events import Compressed, Notice, Steered, TextDelta, TurnEnded
from ba_tui.core.messages import Message, Usage, reminder, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.providers.pipeline import OverflowRetry
from tests.context.talk import FIXED, MODEL, Room, compressions, count, history, told
from tests.context.test_compressor import LONG, NOTES, settled, summarizing
from tests.permissions.toolset import CLOCK
from tests.script import Script, collect, kinds, says


@pytest.mark.parametrize(("more", "expected"), [(0, 0), (-2, 1)])
async def test_a_window_that_is_just_as_full_as_it_may_be_is_not_compressed(more: int, expected: int) -> None:
    before = Room(Script(says("One.")), history(6), window=10**6)
    await collect(before.talk.say("And now?"))
    used = FIXED + count(before.script.requests[0].messages)
    window = 2 * used + MODEL.max_output + more
    room = Room(Script(says("One.")), history(6), window=window, trigger=0.5, target=0.4)
    assert len(compressions(await collect(room.talk.say("And now?")))) == expected


class Refusing:
    """A hook against compressing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, trigger: str, focus: str) -> str | None:
        self.asked.append(trigger)
        return "not now"


async def test_what_was_not_done_is_tried_again_only_when_there_is_more(tmp_path: Path) -> None:
    hook = Refusing()
    room = Room(Script(*[says("Yes.")] * 4), history(LONG), means={"veto": hook})
    notices: list[int] = []
    for words in ("And now?", "So?", "word " * 200, "word " * 800):
        events = await collect(room.talk.say(words))
        notices.append(sum(isinstance(event, Notice) for event in events))
    assert notices[:2] == [1, 0]
    assert notices[3] == 1
    assert len(hook.asked) == sum(notices)


async def test_a_hook_can_refuse_after_a_server_did() -> None:
    hook = Refusing()
    room = Room(Script(ContextOverflow("This model's maximum context length is 4096 tokens.")), history(8))
    refused = Room(Script(*room.script.steps), history(8), means={"veto": hook})
    assert compressions(await collect(room.talk.say("And now?")))
    events = await collect(refused.talk.say("And now?"))
    assert not compressions(events)
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    assert end.error.message.startswith("This model's maximum")
    assert refused.gauge.room == room.gauge.room == 4096 - MODEL.max_output
    assert "message_restarted" not in kinds(events)


async def test_tools_that_read_what_was_compressed_come_with_the_first_notes() -> None:
    listed: list[str] = []

    def tools() -> Sequence[Tool]:
        listed.append("recall")
        return (CLOCK,)

    room = Room(Script(ContextOverflow("too long"), says("Fits.")), history(8), means={"tools": tools})
    await room.talk.history()
    assert listed == []
    events = await collect(room.talk.say("And now?"))
    assert [[tool.name for tool in request.tools] for request in room.script.requests] == [[], ["now"]]
    assert listed
    assert "message_restarted" not in kinds(events)
    # A session that is opened again has notes that name these tools.
    listed.clear()
    again = Room(Script(says("Yes.")), room.memory.read(), means={"tools": tools})
    await collect(again.talk.say("And then?"))
    assert listed == ["recall"]
    plain = Room(Script(says("Yes.")), history(3), means={"tools": tools})
    await collect(plain.talk.say("And then?"))
    assert listed == ["recall"]


async def test_notes_that_a_compression_took_are_said_again_once() -> None:
    said: list[int] = []

    def again(transcript: Transcript) -> Sequence[Message]:
        said.append(len(transcript.messages))
        return (reminder("The folder is /srv."),)

    room = Room(Script(*[says("Yes.")] * 3), history(LONG), means={"again": again})
    told_again = [
        sum(isinstance(event, Steered) and "/srv" in event.message.text for event in events)
        for events in [await collect(room.talk.say(words)) for words in ("And now?", "So?", "Then?")]
    ]
    assert told_again == [1, 0, 0]
    assert len(said) == 1
    assert "/srv" in "".join(message.text for message in room.script.requests[0].messages)


@pytest.mark.parametrize(
    ("writer", "cost"),
    [(told(NOTES, 900), 920 / 1e6), (ServerOverloaded("busy"), None)],
    ids=["written", "failed"],
)
async def test_the_budget_pays_for_what_was_written_or_may_have_been(
    tmp_path: Path, writer: Any, cost: float | None
) -> None:
    room = summarizing(Script(writer), tmp_path)
    await collect(compact(room.talk))
    spent = room.budget.limit - room.budget.left()
    if cost is None:
        # What a failed request cost is not known; it counts as was expected.
        assert spent > 1e-4
    else:
        assert spent == pytest.approx(cost)


@pytest.mark.parametrize(("more", "way"), [(0, "summarize"), (1, "extract")])
async def test_a_conversation_of_just_the_least_length_is_summarised(tmp_path: Path, more: int, way: str) -> None:
    events = history(12)
    length = 4 * 12 + more
    writer = Script(replace(says(NOTES), usage=Usage(900, 0)))
    room = Room(Script(), events, writer=writer, folder=tmp_path, summarize_from=length, extract_below=length)
    (done,) = compressions(await collect(compact(room.talk)))
    assert (done.strategy, done.usage) == (way, None if more else Usage(900, 0))


@pytest.mark.parametrize(("less", "way"), [(0, "extract"), (1, "summarize")])
async def test_a_turn_waits_for_a_summary_only_where_more_than_all_room_is_taken(
    tmp_path: Path, less: int, way: str
) -> None:
    before = Room(Script(says("One.")), history(LONG), window=10**6)
    await collect(before.talk.say("And now?"))
    window = FIXED + count(before.script.requests[0].messages) + MODEL.max_output - less
    writer = Script(told(NOTES, 900))
    room = Room(Script(says("One.")), history(LONG), window=window, writer=writer, folder=tmp_path, summary_tokens=500)
    (done,) = compressions(await collect(room.talk.say("And now?")))
    assert done.strategy == way
    await room.compressor.close()


async def test_a_summary_that_is_being_written_is_dropped_when_the_user_compresses(tmp_path: Path) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        yield says("late")

    room = summarizing(Script(never, told(NOTES, 900)), tmp_path)
    await collect(room.talk.say("And now?"))
    async with asyncio.timeout(30):
        await begun.wait()
    (done,) = compressions(await collect(compact(room.talk)))
    assert done.strategy == "summarize"
    async with asyncio.timeout(10):
        await stopped.wait()


async def test_a_summary_that_no_longer_makes_room_is_not_taken(tmp_path: Path) -> None:
    for words, ways in (("Then?", ["summarize"]), ("word " * 3_600, [])):
        room = summarizing(Script(told(NOTES, 900)), tmp_path / words[:4])
        await collect(room.talk.say("And now?"))
        await settled(room)
        events = await collect(room.talk.say(words))
        assert [event.strategy for event in compressions(events) if event.strategy == "summarize"] == ways


async def test_beside_a_summary_long_results_are_cut_where_there_is_no_room_for_them(tmp_path: Path) -> None:
    events = [*history(LONG, result=900), *history(1, result=20_000)]
    room = Room(Script(), events, writer=Script(told(NOTES, 900)), folder=tmp_path, summary_tokens=500)
    (done,) = compressions(await collect(compact(room.talk)))
    assert done.strategy == "summarize"
    assert done.kept.endswith("; long results of these were shortened")
    assert done.after <= 0.5 * 9_000


async def test_room_is_kept_for_the_tools_that_come_with_the_notes() -> None:
    after: list[int] = []
    for means in ({}, {"tools": lambda: (CLOCK,)}):
        room = Room(Script(), history(30, words="word " * 90), means=means)
        for second in (False, True):
            (done,) = compressions(await collect(compact(room.talk)))
            after.append(done.after)
            # The second time they are counted with all else.
            assert not second or done.after > done.before / 2 - TOOLS / 2
    # The first time they are not counted yet.
    assert after[0] - after[2] >= TOOLS * 0.8


class Endless(Script):
    """Refuses as it is told, then answers without an end; ``ended`` has the length of each request that was closed."""

    def __init__(self, *refusals: Exception) -> None:
        super().__init__(*refusals)
        self.ended: list[int] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        if self.steps:
            raise cast("Exception", self.steps.pop())
        try:
            while True:
                yield TextDelta("on ")
        finally:
            self.ended.append(len(request.messages))


async def test_who_reads_no_further_closes_the_stream_within() -> None:
    for refusals in ((), (ContextOverflow("too long"),)):
        script = Endless(*refusals)
        room = Room(script, history(8))
        await room.talk.history()
        messages = (*room.talk.transcript.messages, user("And now?"))
        stream = OverflowRetry(script, room.compressor.shorten).stream(ModelRequest("", messages, ()))
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", stream)) as chunks:
            if refusals:
                assert isinstance(await anext(chunks), Compressed)
            assert isinstance(await anext(chunks), TextDelta)
        assert len(script.ended) == 1
        assert (script.ended[0] < len(messages)) == bool(refusals)


def test_what_counts_more_is_in_order_and_fades_with_age_and_size() -> None:
    assert sorted(Importance) == [Importance.LOW, Importance.MEDIUM, Importance.HIGH, Importance.CRITICAL]
    for level in Importance:
        assert weight(level, 0, 0) == weight(level, 0, 1) == level
        assert weight(level, 1, 1) == pytest.approx(level * (1 - FADING))
        assert weight(level, 0, 4) == pytest.approx(level / 2)
