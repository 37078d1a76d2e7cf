"""The fold can't hold a call without an output, whatever comes in whatever order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Rewound,
    SkillsChanged,
    Steered,
    ToolFinished,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.results import ActiveSkill, StateChange, Todo, ToolResult
from ba_tui.core.transcript import INTERRUPTED, UNFINISHED, Transcript
from tests.turns.test_loop import paired

IDS = st.sampled_from(["a", "b", "c"])


def answer(ids: list[str]) -> MessageDone:
    calls = tuple(ToolUse(id, "t", {}) for id in ids)
    return MessageDone(Message("assistant", (Text("x"), *calls), origin="assistant"))


EVENTS = st.one_of(
    st.builds(lambda text: TurnStarted(user(text)), st.just("hi")),
    st.builds(lambda text: Steered(user(text, origin="steer")), st.just("also")),
    st.builds(answer, st.lists(IDS, unique=True, max_size=3)),
    st.builds(lambda id: ToolFinished(id, ToolResult("ok")), IDS),
)


@given(st.lists(EVENTS, max_size=30))
def test_any_stream_folds_to_a_valid_conversation(events: list[Event]):
    transcript = Transcript(events=[TurnStarted(user("first")), *events])
    assert paired(transcript.messages)
    assert transcript.messages == transcript.messages


def test_unfinished_calls_read_as_interrupted_and_reading_changes_nothing():
    transcript = Transcript(events=[TurnStarted(user("go")), answer(["a", "b"]), ToolFinished("b", ToolResult("fine"))])
    outputs = transcript.messages[-1].blocks
    assert outputs == (ToolOutput("a", INTERRUPTED, is_error=True, error=UNFINISHED), ToolOutput("b", "fine"))
    transcript.apply(ToolFinished("a", ToolResult("late but there")))
    assert transcript.messages[-1].blocks[0] == ToolOutput("a", "late but there")


def test_state_changes_ride_on_results():
    todo = Todo("1", "write it")
    change = StateChange(todos=(todo,), cwd="/srv/sub")
    transcript = Transcript(
        events=[TurnStarted(user("go")), answer(["a"]), ToolFinished("a", ToolResult("", changes=change))]
    )
    assert transcript.todos == (todo,)
    assert transcript.cwd == "/srv/sub"


def test_another_agents_events_stay_out():
    transcript = Transcript(
        events=[TurnStarted(user("go")), MessageDone(Message("assistant", (Text("x"),)), agent="main/helper")]
    )
    assert len(transcript.messages) == 1


def test_calls_of_an_interrupted_turn_are_not_those_of_the_next():
    transcript = Transcript(events=[TurnStarted(user("go")), answer(["a"]), TurnStarted(user("again")), answer(["b"])])
    assert [call.id for call in transcript.calls_since_prompt()] == ["b"]


def test_a_compression_stands_for_all_before_it():
    transcript = Transcript(events=[TurnStarted(user("go")), answer(["a"]), ToolFinished("a", ToolResult("fine"))])
    kept = (user("in short"), Message("assistant", (Text("ok"),)), user("go"))
    transcript.apply(Compressed(kept, "extract", 100, 10, turn_start=2))
    assert transcript.messages == kept
    transcript.apply(answer(["b"]))
    assert [call.id for call in transcript.calls_since_prompt()] == ["b"]
    assert transcript.messages[:3] == kept


def test_a_rewind_restores_the_conversation_and_its_state():
    skill = ActiveSkill("pdf", "1", "abc")
    transcript = Transcript(events=[TurnStarted(user("one")), SkillsChanged((skill,)), TurnStarted(user("two"))])
    todo = Todo("1", "count")
    transcript.apply(Rewound((user("one"),), StateChange((todo,), "/w", ()), turns=1))
    assert [message.text for message in transcript.messages] == ["one"]
    assert (transcript.todos, transcript.cwd, transcript.skills) == ((todo,), "/w", ())


def test_rewinding_files_alone_leaves_the_conversation():
    transcript = Transcript(events=[TurnStarted(user("one"))])
    before = transcript.messages
    transcript.apply(Rewound(files="abc", undo="def"))
    assert transcript.messages == before
