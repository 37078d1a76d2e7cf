"""For any events and any damage: what was written is read, and the transcript is valid."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.events import (
    TRANSIENT,
    Answered,
    Event,
    MessageDone,
    MessageRestarted,
    ModeChanged,
    ModelChanged,
    Notice,
    Retrying,
    Steered,
    TextDelta,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, Thinking, ToolOutput, ToolUse, Usage, user
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, Diff, ToolResult
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import TORN, Header, backwards, forwards
from tests.sessions.shelf import turn

ID = "20261121-120000-ab12"

texts = st.text(max_size=20)
lines = texts.filter(str.strip)
numbers = st.floats(min_value=0, max_value=2e9, allow_nan=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.dictionaries(texts, inner, max_size=3),
)
calls = st.builds(ToolUse, id=st.sampled_from(["a", "b", "c"]), name=texts, input=st.dictionaries(texts, json_values))
blocks = st.builds(Text, lines) | st.builds(Thinking, texts, texts)
answers = st.builds(
    lambda said, uses, usage: Message("assistant", (*said, *{use.id: use for use in uses}.values()), usage=usage),
    st.lists(blocks, min_size=1, max_size=2),
    st.lists(calls, max_size=3),
    st.none() | st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6)),
)
displays = st.none() | st.builds(Diff, texts, st.none() | texts, texts) | st.builds(CommandText, texts, output=texts)
results = st.builds(ToolResult, texts, displays, st.booleans(), meta=st.dictionaries(texts, json_values, max_size=2))
agents = st.sampled_from(["main", "main", "main/explore-1"])
signed = {"agent": agents, "at": numbers}
events = st.one_of(
    st.builds(TurnStarted, st.builds(user, lines), **signed),
    st.builds(Steered, st.builds(user, lines), **signed),
    st.builds(MessageDone, answers, st.none() | numbers, **signed),
    st.builds(ToolStarted, calls, texts, **signed),
    st.builds(ToolFinished, st.sampled_from(["a", "b", "c"]), results, numbers, **signed),
    st.builds(Answered, texts, st.builds(Reply, st.sampled_from(["once", "deny"]), texts), **signed),
    st.builds(Notice, texts.filter(lambda text: text != TORN), **signed),
    st.builds(ModeChanged, st.sampled_from(["default", "plan"]), **signed),
    st.builds(ModelChanged, texts, **signed),
    st.builds(Titled, texts, **signed),
    st.builds(TurnEnded, st.sampled_from(["done", "cancelled", "error"]), **signed),
    st.builds(TextDelta, texts, **signed),
    st.builds(Retrying, texts, numbers, st.just(1), st.just(4), **signed),
    st.builds(MessageRestarted, **signed),
)


def valid(messages: Sequence[Message]) -> bool:
    """Roles alternate, and every call is answered once, in the message after it."""
    for index, message in enumerate(messages):
        if index and message.role == messages[index - 1].role:
            return False
        if message.role == "assistant":
            after = messages[index + 1].blocks if index + 1 < len(messages) else ()
            answered = [block.tool_use_id for block in after if isinstance(block, ToolOutput)]
            if [call.id for call in message.calls] != answered:
                return False
    return True


@given(st.lists(events, max_size=25))
def test_any_events_are_read_as_they_were_appended(happened: list[Event]) -> None:
    lasting = [event for event in happened if not isinstance(event, TRANSIENT)]
    with tempfile.TemporaryDirectory() as home:
        journal = JournalFile(Path(home) / "sessions" / "work" / ID, Header(ID, "/srv", 1.0))
        for event in happened:
            journal.append(event)
        assert journal.read() == lasting
        journal.close()
        if not journal.path.exists():
            assert all(isinstance(event, ModeChanged | ModelChanged | Notice | Titled) for event in lasting)
            return
        again = JournalFile.open(journal.path.parent)
        read = again.read()
        again.close()
        assert read[: len(lasting)] == lasting
        assert [event.type for event in read[len(lasting) :]] in ([], ["turn_ended"])
        assert valid(Transcript(events=read).messages)


@given(st.data())
def test_cut_anywhere_it_keeps_every_whole_line_and_goes_on(data: st.DataObject) -> None:
    happened = [*turn("one"), *turn("two"), *turn("three", ended=False)]
    with tempfile.TemporaryDirectory() as home:
        journal = JournalFile(Path(home) / "sessions" / "work" / ID, Header(ID, "/srv", 1.0))
        for event in happened:
            journal.append(event)
        journal.close()
        whole = journal.path.read_bytes()
        cut = data.draw(st.integers(1, len(whole)), label="cut")
        journal.path.write_bytes(whole[:cut])
        # A line that lacks nothing but its end counts as whole; the header is no event.
        kept = max(0, whole[: cut + 1].count(b"\n") - 1)
        again = JournalFile.open(journal.path.parent)
        read = again.read()
        assert read[:kept] == happened[:kept]
        assert {event.type for event in read[kept:]} <= {"notice", "turn_ended"}
        assert valid(Transcript(events=read).messages)
        more = turn("four")
        for event in more:
            again.append(event)
        again.close()
        later = JournalFile.peek(journal.path.parent)
        assert later.read() == [*read, *more]
        assert later.tail(7) == more
        assert valid(Transcript(events=later.read()).messages)


@given(st.binary(max_size=400), st.integers(0, 3))
def test_any_bytes_between_the_lines_cost_no_event(garbage: bytes, place: int) -> None:
    happened = turn("one", tool=False)
    with tempfile.TemporaryDirectory() as home:
        journal = JournalFile(Path(home) / "sessions" / "work" / ID, Header(ID, "/srv", 1.0))
        for event in happened:
            journal.append(event)
        journal.close()
        stored = journal.path.read_bytes().splitlines(keepends=True)
        stored[place + 1 : place + 1] = [garbage + b"\n"]
        journal.path.write_bytes(b"".join(stored))
        again = JournalFile.open(journal.path.parent)
        read = again.read()
        again.close()
        assert [event for event in read if not isinstance(event, Notice)] == happened
        assert journal.path.read_bytes() == b"".join(stored)


@given(st.lists(st.integers(0, 150_000), max_size=5), st.booleans())
@settings(max_examples=30, deadline=None)
def test_backwards_is_forwards_reversed(lengths: list[int], ended: bool) -> None:
    body = b"\n".join(bytes([65 + index]) * length for index, length in enumerate(lengths)) + b"\n" * ended
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        path.write_bytes(body)
        assert list(backwards(path)) == list(forwards(path))[::-1]
