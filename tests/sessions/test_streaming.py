"""Exports of a session of any size: written piece by piece, and the same as if all of it had been held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.events import Event, MessageDone, Steered, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.exports.transcripts import FORMATS, exporter
from ba_tui.sessions.journal import JournalFile
from tests.sessions.shelf import folder_of, library, stored, turn

INFO = SessionInfo("20261121-120000-ab12", "Fix the parser", Path("/srv/project"), 0.0, 60.0, 1, 1.0, "test/model")
CALLS = ("a", "b", "c")
ONE_PIECE = {"workflow", "mermaid", "plan-json"}
"""Formats for one thing of the session, not for all that was said."""


class Counted:
    """Events that know how many of them were taken."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.taken = 0

    def __iter__(self) -> Iterator[Event]:
        for event in self.events:
            self.taken += 1
            yield event


def message(role: str, *words: str) -> Message:
    return Message("user" if role == "user" else "assistant", tuple(map(Text, words)))


EVENTS = st.one_of(
    st.sampled_from(["", "go on"]).map(lambda words: TurnStarted(message("user", *words.split()))),
    st.sampled_from(["main", "main/explore-1"]).map(
        lambda agent: MessageDone(message("assistant", "Well."), agent=agent)
    ),
    st.just(Steered(user("and this", origin="steer"))),
    st.sets(st.sampled_from(CALLS)).map(
        lambda ids: MessageDone(Message("assistant", tuple(ToolUse(id, "cat", {}) for id in sorted(ids))))
    ),
    st.sampled_from(CALLS).map(lambda id: ToolStarted(ToolUse(id, "cat", {}), "x")),
    st.sampled_from(CALLS).map(lambda id: ToolFinished(id, ToolResult(f"of {id}"))),
    st.just(TurnEnded("cancelled")),
)


@given(st.lists(EVENTS, max_size=12))
def test_messages_are_those_that_a_transcript_has(events: list[Event]) -> None:
    document = json.loads("".join(exporter("json")(INFO, events)))
    said = [(one["role"], [block["type"] for block in one["content"]]) for one in document["messages"]]
    whole = Transcript(events=events).messages
    assert said == [(one.role, [block.type for block in one.blocks]) for one in whole]
    assert [one["id"] for one in document["messages"]] == [one.id for one in whole]


def test_calls_stand_in_the_order_in_which_they_began() -> None:
    def began(id: str) -> Event:
        return ToolStarted(ToolUse(id, "cat", {}), id)

    def ended(id: str) -> Event:
        return ToolFinished(id, ToolResult("text", summary="1 line"))

    events = [TurnStarted(user("one")), began("lost"), began("slow"), began("quick"), ended("quick"), ended("slow")]
    events += [TurnStarted(user("two")), began("last"), ended("last"), ended("lost"), ended("unknown")]
    document = json.loads("".join(exporter("json")(INFO, events)))
    calls = [(call["id"], call["ok"], call["summary"]) for call in document["tool_calls"]]
    assert calls == [
        ("lost", False, "interrupted"),
        ("slow", True, "1 line"),
        ("quick", True, "1 line"),
        ("last", True, "1 line"),
    ]
    assert [turn["tool_calls"] for turn in document["turns"]] == [3, 1]


@pytest.mark.parametrize("format", [format for format in FORMATS if format not in ONE_PIECE])
def test_no_more_is_read_than_was_written(format: str) -> None:
    events = Counted([event for number in range(50) for event in turn(f"number {number}")])
    pieces = exporter(format)(INFO, events)
    before = 0 if format == "jsonl" else len(events.events)
    for piece in pieces:
        if "number 3" in piece and events.taken > before:
            break
    assert events.taken < before + len(events.events) // 2


def test_a_journal_is_read_as_it_stood_when_reading_began(tmp_path: Path) -> None:
    stored(tmp_path, INFO.id, turn("one"))
    journal = JournalFile.open(folder_of(tmp_path, INFO.id))
    reading = iter(journal)
    first = next(reading)
    journal.append(TurnStarted(user("two")))
    assert isinstance(first, TurnStarted)
    assert [event.type for event in reading][-1] == "turn_ended"
    assert journal.read()[-1].type == "turn_started"
    journal.close()


def test_an_outline_leaves_keys_out(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    stored(tmp_path, INFO.id, [*turn(f"Use {secret}"), *turn("Go on", ended=False)])
    outline = library(tmp_path).outline(INFO.id)
    assert [(line.number, line.prompt, line.calls, line.ended) for line in outline.turns] == [
        (1, "Use [redacted]", 1, "done"),
        (2, "Go on", 1, "interrupted"),
    ]
    assert outline.usage.input == 40
