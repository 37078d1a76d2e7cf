"""What a summary stands for and what stays beside it, whether it still fits when it has come, which rules a compressed
conversation keeps, and what an undone compression brings back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.context.compression.facts import Fact
from ba_tui.context.compression.notes import WORDS_SHARE, LeftOut, Notes, read, size_of_texts, written
from ba_tui.context.compression.rounds import Keep, changed, opening
from ba_tui.context.compression.strategies import (
    Split,
    SummaryDraft,
    drafted,
    extract,
    faults,
    placed,
    split,
    truncate,
    uncompressed,
    undone,
    with_summary,
)
from ba_tui.context.compression.summarize import Summary
from ba_tui.context.compression.user_text import UserText
from ba_tui.core.events import Compressed, Event, MessageDone, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, RedactedThinking, Text, Thinking, ToolOutput, ToolUse, user
from ba_tui.core.results import Todo
from ba_tui.core.transcript import Transcript
from tests.context.conversations import answer, count, rounds, step

EIGHT = rounds(8)
"""Of four messages each."""
LARGE = 10**6


def parts(messages: Sequence[Message] = EIGHT, keep: int = 2, target: int = LARGE) -> Split:
    found = split(messages, Keep(keep), target, count)
    assert found
    return found


@pytest.mark.parametrize(("keep", "stays"), [(0, 1), (1, 2), (5, 6), (6, 7), (7, 7), (99, 7)])
def test_the_last_rounds_stay_and_one_at_least_is_summarised(keep: int, stays: int) -> None:
    found = parts(keep=keep)
    assert [*found.source, *found.rest] == EIGHT
    assert (found.keep, len(found.rest)) == (stays - 1, 4 * stays)


def test_of_a_single_round_there_is_nothing_to_summarise() -> None:
    assert split(EIGHT[:4], Keep(2), LARGE, count) is None
    assert split([], Keep(2), LARGE, count) is None
    assert parts(EIGHT[:5], keep=2).rest == (EIGHT[4],)


def test_fewer_rounds_stay_where_they_and_the_users_texts_have_no_room() -> None:
    rest = count(EIGHT[-12:])
    texts = size_of_texts(with_summary(Summary(""), (), EIGHT[:-12], {}), count)
    assert 0 < texts < rest * WORDS_SHARE
    assert parts(target=rest + texts).keep == 2
    assert parts(target=rest + texts - 1).keep == 1
    assert parts(target=1).keep == 2, "where nothing fits, as many as were asked for: results can be cut"


def test_of_the_users_texts_no_more_counts_than_their_share() -> None:
    long = [user("word " * 40_000), answer(Text("Seen.")), *EIGHT]
    rest = count(EIGHT[-12:])
    assert parts(long, target=int(rest / (1 - WORDS_SHARE)) + 2).keep == 2
    assert parts(long, target=int(rest / (1 - WORDS_SHARE)) - 2).keep == 1


def test_a_summary_stands_for_earlier_notes_too() -> None:
    notes = opening(written(Notes((UserText(1, "Count the geese."),))))
    found = parts([*notes, *EIGHT])
    assert found.source[:2] == notes
    assert [text.head for text in with_summary(Summary("It is so."), (), found.source, {}).texts] == [
        "Count the geese.",
        *(f"Request {number}: look at part {number}." for number in range(1, 6)),
    ]


def test_beside_a_summary_stand_the_texts_of_the_user_and_open_todos() -> None:
    todos = (
        Todo("1", "wake the lion", "pending"),
        Todo("2", "feed it", "completed"),
        Todo("3", "sweep", "in_progress"),
    )
    source = EIGHT[:12]
    starts = {source[number * 4].id: number + 5 for number in range(3)}
    made = with_summary(Summary("It is so."), todos, source, starts)
    assert made.summary == "It is so."
    assert [(text.round, text.place) for text in made.texts] == [(5, 0), (6, 1), (7, 2)]
    assert [(fact.kind, fact.round, fact.text) for fact in made.facts] == [
        ("todo", 7, "wake the lion"),
        ("todo", 7, "sweep"),
    ]
    again = read(opening(written(made))[:1])
    assert [text.head for text in again.texts] == [text.head for text in made.texts]
    alone = with_summary(Summary("It is so."), todos[:1], [], {})
    assert [(fact.round, alone.texts) for fact in alone.facts] == [(1, ())]


def test_of_earlier_notes_only_what_the_user_said_stands_beside_a_summary() -> None:
    said = Fact("person", 1, 0, "Never wake the lion.", 5.0)
    facts = (said, Fact("decision", 1, 1, "We keep two piers.", 5.0), Fact("todo", 1, 2, "[ ] sweep", 5.0))
    notes = opening(written(Notes((), facts, LeftOut(1, 9))))
    made = with_summary(Summary("It is so."), (), [*notes, *EIGHT[:4]], {})
    assert [fact.text for fact in made.facts] == [said.text]
    assert made.left_out == LeftOut(1, 9)


def draft(found: Split, messages: Sequence[Message]) -> SummaryDraft:
    stands = drafted(found, messages)
    assert stands is not None
    return SummaryDraft(None, stands, found)  # type: ignore[arg-type]


NOTES = opening((Text("Notes."),))


def test_a_summary_takes_the_place_of_what_rules_kept_while_that_still_opens_the_conversation() -> None:
    found = parts()
    # A result that stays may be cut meanwhile.
    cut = [
        changed(found.rest[2], (ToolOutput("c6", "less"),)) if place == 2 else m for place, m in enumerate(found.rest)
    ]
    kept = [*NOTES, *cut]
    made = draft(found, kept)
    assert made.replaced == (NOTES[0].id, NOTES[1].id)
    more = [*kept, user("And now?")]
    assert placed(made, more) == more[2:]
    other = opening((Text("Other notes."),))
    assert placed(made, [*other, *more[2:]]) is None
    assert placed(made, more[2:]) is None
    assert placed(made, [*NOTES, *more[3:]]) is None, "a rewind took the first of the rounds that stay"
    assert placed(made, []) is None


def test_a_summary_is_not_begun_where_the_rest_did_not_stay() -> None:
    found = parts()
    assert drafted(found, [*NOTES, *found.rest]) is not None
    assert drafted(found, [*NOTES, *found.rest[4:]]) is None
    assert drafted(found, [*NOTES, *found.rest[:-1]]) is None
    assert drafted(found, [*NOTES, *found.rest, user("More.")]) is None
    assert drafted(found, NOTES) is None
    assert drafted(replace(found, rest=()), [user("x")]) is None


CALL = ToolUse("c", "shell", {})


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([user("a"), replace(answer(Text("b")), blocks=())], "message 1 is empty"),
        ([user("a"), answer(ToolOutput("c", "x"))], "message 1, block 0: a tool result from the assistant"),
        ([replace(user("a"), blocks=(Text("a"), CALL))], "message 0, block 1: tool_use from the user"),
        ([replace(user("a"), blocks=(Thinking("a", "s"),))], "message 0, block 0: thinking from the user"),
        ([replace(user("a"), blocks=(RedactedThinking("a"),))], "message 0, block 0: redacted_thinking from the user"),
        ([user("a"), answer(CALL, CALL), Message("user", (ToolOutput("c", "x"),))], "message 2 does not answer"),
        ([Message("user", (ToolOutput("c", "x"),))], "message 0 does not answer exactly the calls before it"),
        ([user("a"), answer(Text("b")), answer(Text("c"))], "messages 1 and 2 are both from the assistant"),
    ],
)
def test_each_rule_that_is_broken_is_named(messages: list[Message], rule: str) -> None:
    assert [each for each in faults(messages) if each.startswith(rule)]


def test_thinking_may_go_and_must_not_change() -> None:
    hidden = [user("a"), answer(RedactedThinking("b"), Text("c"))]
    assert faults(hidden, hidden) == faults([user("a"), answer(Text("c"))], hidden) == []
    assert faults([user("a"), answer(RedactedThinking("B"), Text("c"))], hidden) == ["thinking was changed"]
    signed = [user("a"), answer(Thinking("b", "one"), Text("c"))]
    assert faults(signed, [user("a"), answer(Thinking("b", "two"), Text("c"))]) == ["thinking was changed"]
    assert faults([user("a"), answer(Thinking("b", "one"))]) == []


def said(number: int) -> list[Event]:
    prompt = replace(user(f"p{number}"), id=f"p{number}")
    reply = replace(answer(Text(f"a{number}")), id=f"a{number}")
    return [TurnStarted(prompt), MessageDone(reply), TurnEnded("done")]


def compressed(words: str, agent: str = "main", strategy: Any = "extract") -> Compressed:
    return replace(Compressed(opening((Text(words),)), strategy, 100, 50), agent=agent)


def texts(transcript: Transcript | None) -> list[str]:
    assert transcript
    return [message.text for message in transcript.messages if message.role == "user"]


def test_the_last_compression_that_stands_is_undone() -> None:
    first, second = compressed("first"), compressed("second")
    events = [*said(1), first, *said(2), second, *said(3)]
    assert uncompressed(said(1)) is None
    assert texts(uncompressed(events)) == ["first", "p2", "p3"]
    back = uncompressed(events)
    assert back
    once = [*events, Compressed(tuple(back.messages), "undo", 50, 100)]
    assert texts(uncompressed(once)) == ["p1", "p2", "p3"]
    twice = [*once, Compressed(tuple(Transcript(events=said(1)).messages), "undo", 50, 100)]
    assert uncompressed(twice) is None
    assert texts(uncompressed([*twice, compressed("third")])) == ["p1", "p2", "p3"]


def test_only_compressions_of_the_agent_itself_are_undone() -> None:
    events = [*said(1), compressed("mine"), compressed("theirs", "main/explore-1")]
    assert texts(uncompressed(events)) == ["p1"]
    assert uncompressed(events[:3] + events[4:]) is None
    assert uncompressed([*said(1), compressed("theirs", "main/explore-1")]) is None


def test_what_comes_back_says_where_the_running_turn_begins() -> None:
    events = [*said(1), *said(2), compressed("notes")]
    made = undone(events, Transcript(events=events))
    assert made
    assert [message.text for message in made[0]] == ["p1", "a1", "p2", "a2"]
    assert made[1] == 3, "behind the last prompt"
    assert undone(events, Transcript(events=events[:-1])) is None, "nothing changes"
    assert undone(events[:-1], Transcript(events=events[:-1])) is None


@pytest.mark.parametrize("make", [extract, truncate])
def test_a_compressed_conversation_keeps_every_rule_at_each_size(make: Any) -> None:
    for share in range(5, 100, 10):
        target = count(EIGHT) * share // 100
        made = make(EIGHT, target, count)
        assert not faults(made.messages, EIGHT)
        assert count(made.messages) <= target


@pytest.mark.parametrize(
    ("target", "number", "kept"),
    [(60, 8, "the current round"), (80, 7, "the current round"), (140, 6, "the last 2 rounds")],
)
def test_where_not_even_notes_have_room_it_is_said_up_to_where_nothing_is_shown(
    target: int, number: int, kept: str
) -> None:
    made = truncate(rounds(8, result="short"), target, count)
    assert made.messages[0].text.startswith(f"What came before, up to round {number}, is not shown.")
    assert made.kept == kept
    assert not faults(made.messages)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_of_one_long_round_its_prompt_and_its_newest_steps_stay(share: float) -> None:
    messages = [user("Compare the piers.")]
    for number in range(20):
        messages += step(f"c{number}", f"pier {number} holds {number * 37} tons\n" * 6, path=f"data/h{number}.csv")
    target = int(count(messages) * share)
    made = truncate(messages, target, count)
    steps = made.messages[made.messages.index(messages[0]) + 1 :]
    assert len(steps) % 2 == 0
    assert steps == tuple(messages[-len(steps) :])
    assert 0.6 * target <= count([messages[0], *steps]) <= target
    assert made.messages[0].origin == "compaction"
    assert not faults(made.messages)
