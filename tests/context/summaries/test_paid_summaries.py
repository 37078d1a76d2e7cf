"""Summaries that come to nothing are paid for with the next compression, and whatever a way of compressing returns,
what goes out is sound and fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.compression import strategies
from ba_tui.context.compression.compressor import LEAST, WORTH
from ba_tui.context.compression.rounds import Compression
from ba_tui.core.conversation import compact, undo_compact
from ba_tui.core.errors import ContextOverflow, ServerOverloaded
from ba_tui.core.events import Compressed, Event, Steered, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Usage, reminder, user
from ba_tui.core.transcript import Transcript
from tests.context.talk import FIXED, Room, compressions, count, history, told
from tests.context.test_compressor import LONG, NOTES, settled, summarizing
from tests.script import Script, collect, says

PAID = Usage(900, 10)


def used(events: Sequence[Event]) -> list[tuple[str, Usage | None]]:
    return [(event.strategy, event.usage) for event in compressions(events)]


def refusal(events: Sequence[Event]) -> str:
    """Why the work ended."""
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert end.error is not None
    return f"{end.error.message} {end.error.hint}"


async def test_a_summary_that_made_nothing_smaller_is_paid_for_later(tmp_path: Path) -> None:
    script, writer = Script(says("Seen.")), Script(told("It is so. " * 200, 900))
    room = Room(script, history(8, result=14), writer=writer, folder=tmp_path, strategy="summarize")
    await room.talk.history()
    assert count(room.talk.transcript.messages) < LEAST
    assert "Nothing to compress yet" in refusal(await collect(compact(room.talk)))
    assert len(writer.requests) == 1
    await collect(room.talk.say("word " * 2_000))
    writer.steps.append(ServerOverloaded("busy"))
    (done,) = used(await collect(compact(room.talk)))
    assert done == ("extract", PAID)


async def test_a_late_summary_of_what_was_rewound_is_paid_for(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900), ServerOverloaded("busy")), tmp_path)
    await collect(room.talk.say("And now?"))
    await settled(room)
    await room.talk.past.rewind(LONG - 1, "conversation")
    assert compressions(await collect(room.talk.say("Then?")))[-1:] == []
    assert used(await collect(compact(room.talk))) == [("extract", PAID)]


async def test_a_late_summary_for_which_there_is_no_room_any_more_is_paid_for(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path)
    await collect(room.talk.say("And now?"))
    await settled(room)
    room.writer.steps += [ServerOverloaded("busy"), ServerOverloaded("busy")]
    events = await collect(room.talk.say("word " * 3_600))
    events += await collect(compact(room.talk))
    paid = [each for each in used(events) if each[1]]
    assert paid == [("extract", PAID)]


@pytest.mark.parametrize("waits", [True, False])
async def test_what_was_no_summary_is_paid_for(tmp_path: Path, waits: bool) -> None:
    """Whether its turn finds out, or a compression of the user's."""
    room = summarizing(Script(replace(says("", ("look", {})), usage=PAID), told(NOTES, 300)), tmp_path)
    await collect(room.talk.say("And now?"))
    await settled(room)
    if waits:
        assert not compressions(await collect(room.talk.say("Then?")))
    assert used(await collect(compact(room.talk))) == [("summarize", Usage(1_200, 20))]
    assert used(await collect(undo_compact(room.talk))) == [("undo", None)]


async def test_an_undone_compression_says_how_much_came_back() -> None:
    room = Room(Script(), history(12))
    (done,) = compressions(await collect(compact(room.talk)))
    (back,) = compressions(await collect(undo_compact(room.talk)))
    assert (back.before, back.after) == (done.after, done.before)
    assert (back.kept, back.cost, back.usage) == ("everything before it and since", 0.0, None)


@pytest.mark.parametrize(("rounds", "words"), [(0, "and the running round word"), (1, "and the last 2 rounds word")])
async def test_how_much_stays_beside_a_summary_is_said(tmp_path: Path, rounds: int, words: str) -> None:
    notes = f"{NOTES} src/part_2.py src/part_3.py " + " ".join(f"src/part_{number}.py" for number in range(4, 30))
    for text, facts in ((notes, "a summary, "), (notes.replace("src/part_4.py", ""), "a summary with 1 fact added, ")):
        room = summarizing(Script(told(text, 900)), tmp_path / facts, keep_rounds=rounds)
        (done,) = compressions(await collect(compact(room.talk)))
        assert done.strategy == "summarize"
        assert done.kept.startswith(f"{facts}{words} for word")


async def test_a_hook_that_agrees_is_asked_once_where_nothing_can_be_made_smaller() -> None:
    asked: list[str] = []

    async def agrees(trigger: str, focus: str) -> str | None:
        asked.append(trigger)
        return None

    room = Room(Script(*[says("x")] * 3), history(1, result=14), window=1_040, means={"veto": agrees})
    await room.talk.history()
    fill = LEAST - count(room.talk.transcript.messages) - 30
    for words in ("x" * 4 * fill, "y"):
        assert not compressions(await collect(room.talk.say(words)))
    assert room.size() > 0.8 * room.gauge.room
    assert asked == ["auto"]
    assert compressions(await collect(room.talk.say("word " * 100)))
    assert asked == ["auto", "auto"]


async def test_a_compression_that_helped_does_not_put_off_the_next_one() -> None:
    room = Room(Script(*[says("Yes.")] * 9), history(LONG))
    done: list[Compressed] = []
    for _ in range(8):
        done += compressions(await collect(room.talk.say("word " * 900)))
        assert room.size() < room.gauge.room
    assert len(done) > 2
    assert all(each.after < WORTH * each.before for each in done)


async def test_after_a_refusal_the_notes_that_it_took_are_said_again() -> None:
    def again(transcript: Transcript) -> Sequence[Message]:
        return (reminder("The folder is /srv."),)

    script = Script(ContextOverflow("too long"), says("Fits."), says("Yes."), says("Yes."))
    room = Room(script, history(8), means={"again": again})
    told_again = []
    for words in ("And now?", "So?", "Then?"):
        events = await collect(room.talk.say(words))
        told_again.append(sum(isinstance(event, Steered) for event in events))
    assert told_again == [0, 1, 0]


def broken(messages: Sequence[Message], *_: Any) -> Compression:
    """What opens with an answer and holds results without their calls."""
    return Compression(tuple(messages[2:]), 0, "what broke a rule")


def endless(messages: Sequence[Message], *_: Any) -> Compression:
    return Compression(tuple(messages), 1, "all of it", ("a stub",))


@pytest.mark.parametrize(
    ("ways", "kept"),
    [
        ({"extract": broken}, "the last"),
        ({"extract": broken, "truncate": broken}, "the last words of the user"),
        ({"extract": endless}, "all of it"),
    ],
)
async def test_whatever_a_way_returns_the_request_is_sound_and_fits(
    monkeypatch: pytest.MonkeyPatch, ways: dict[str, Any], kept: str
) -> None:
    for name, way in ways.items():
        monkeypatch.setattr(strategies, name, way)
    room = Room(Script(says("Yes.")), history(LONG))
    (done,) = compressions(await collect(room.talk.say("And now?")))
    sent = room.script.requests[0].messages
    assert not strategies.faults(sent)
    assert FIXED + count(sent) <= 0.5 * room.gauge.room
    assert sent[-1].text == "And now?"
    assert done.turn_start == len(sent)
    assert done.kept.startswith(kept)
    assert ("rounds" in done.kept) == (kept == "the last")
    assert room.talk.transcript.messages[-1].text == "Yes."


async def test_what_is_a_little_too_large_but_below_the_trigger_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A way that misses its aim is not made worse while there is room."""
    room = Room(Script(says("Yes.")), history(LONG))
    await room.talk.history()
    stay = room.talk.transcript.messages[-4 * 12 :]
    assert 0.5 * 9_000 < FIXED + count(stay) < 0.75 * 9_000

    def close(messages: Sequence[Message], *_: Any) -> Compression:
        return Compression(tuple(messages[-len(stay) - 1 :]), len(stay) + 1, "the last 12 rounds")

    monkeypatch.setattr(strategies, "extract", close)
    await collect(room.talk.say("And now?"))
    assert room.script.requests[0].messages[:-1] == tuple(stay)


async def test_of_one_long_round_there_is_nothing_to_summarise(tmp_path: Path) -> None:
    events = [event for event in history(40) if not isinstance(event, TurnEnded | TurnStarted)]
    events = [TurnStarted(user("Look at all parts.")), *events, TurnEnded("done")]
    writer = Script(told(NOTES, 900))
    room = Room(Script(), events, writer=writer, folder=tmp_path, strategy="auto", summarize_from=10, extract_below=5)
    (done,) = compressions(await collect(compact(room.talk)))
    assert (done.strategy, writer.requests) == ("extract", [])


@pytest.mark.parametrize(("more", "times"), [(0, 1), (1, 2)])
async def test_what_a_hook_refused_is_tried_again_when_there_is_a_fiftieth_more(more: int, times: int) -> None:
    asked: list[int] = []

    async def refuses(trigger: str, focus: str) -> str | None:
        asked.append(room.gauge.used(room.talk.transcript.messages))
        return "not now"

    room = Room(Script(says("Yes."), says("Yes.")), history(LONG), means={"veto": refuses})
    await collect(room.talk.say("And now?"))
    messages, size = room.talk.transcript.messages, asked[0] + asked[0] // 50 + more
    words = next("x" * length for length in range(1, 4_000) if room.gauge.used([*messages, user("x" * length)]) == size)
    await collect(room.talk.say(words))
    assert len(asked) == times


async def test_a_summary_whose_price_is_not_known_takes_nothing_of_the_budget(tmp_path: Path) -> None:
    room = summarizing(Script(told(NOTES, 900)), tmp_path, strategy="summarize")
    room.script.model = replace(room.script.model, prices=None)
    (done,) = compressions(await collect(compact(room.talk)))
    assert (done.strategy, done.cost, done.usage) == ("summarize", None, PAID)
    assert room.budget.left() == room.budget.limit


async def test_after_a_late_summary_the_notes_that_it_took_are_said_again(tmp_path: Path) -> None:
    def again(transcript: Transcript) -> Sequence[Message]:
        return (reminder("The folder is /srv."),)

    script, writer = Script(*[says("Yes.")] * 3), Script(told(NOTES, 900))
    room = Room(script, history(LONG), writer=writer, folder=tmp_path, means={"again": again}, summary_tokens=500)
    told_again: list[int] = []
    for words in ("And now?", "Then?", "So?"):
        events = await collect(room.talk.say(words))
        told_again.append(sum(isinstance(event, Steered) for event in events))
        await settled(room)
    assert told_again == [1, 1, 0]
