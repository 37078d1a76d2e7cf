"""Live and stored conversations give the same records; nothing runs on after the end."""

from __future__ import annotations

from typing import Any

import pytest

from ba_tui.core.events import (
    TRANSIENT,
    Answered,
    Asked,
    Event,
    Judged,
    MessageDone,
    MessageRestarted,
    Notice,
    Retrying,
    Steered,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, Thinking, ToolUse, reminder, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, ToolResult, failure
from ba_tui.faces.tui.transcript.fold import RecordFold, fold
from ba_tui.faces.tui.transcript.records import End, NoticeRecord, Prompt, ProseRecord, Retry, Thought, ToolRow

GREP = ToolUse("1", "grep", {"pattern": "load"})
SHELL = ToolUse("2", "shell", {"command": "make"})

TURN: list[Event] = [
    TurnStarted(user("why?"), at=10.0),
    Steered(reminder("the time is noon")),
    ThinkingDelta("hm"),
    TextDelta("lost"),
    MessageRestarted(),
    Retrying("overloaded", 3.0, 1, 5),
    ThinkingDelta("Let me "),
    ThinkingDelta("see."),
    TextDelta("I "),
    Notice("a file was too long", "warning"),
    TextDelta("look."),
    ToolInputDelta("1", "grep", 12),
    ToolInputDelta("2", "shell", 9),
    MessageDone(Message("assistant", (Thinking("Let me see."), Text("I look."), GREP, SHELL))),
    ToolStarted(GREP, "load", at=11.0),
    ToolProgress("1", "half"),
    ToolFinished("1", ToolResult("a.py", summary="1 match"), 0.2),
    ToolStarted(SHELL, "make", at=12.0),
    Asked("q", Question("permission", "Run?", call_id="2")),
    Answered("q", Reply("once"), at=13.0),
    ToolFinished("2", ToolResult("no", CommandText("make", output="no", exit_code=2), summary="exit 2"), 1.0),
    Steered(user("be quick", origin="steer")),
    TextDelta("Done."),
    MessageDone(Message("assistant", (Text("Done."),))),
    TurnEnded("done", at=20.0),
]


def live(events: list[Event]) -> RecordFold:
    records = RecordFold()
    for event in events:
        records.apply(event)
        records.settle()
    return records


def test_live_and_stored_events_give_the_same_records() -> None:
    stored = [event for event in TURN if not isinstance(event, TRANSIENT)]
    assert live(TURN).items == fold(stored)
    assert fold(stored) == [
        Prompt("why?"),
        NoticeRecord("a file was too long", "warning"),
        Thought("Let me see."),
        ProseRecord("I look."),
        ToolRow(
            "1",
            "grep",
            "load",
            "ok",
            GREP.input,
            11.0,
            0.2,
            summary="1 match",
            result=ToolResult("a.py", summary="1 match"),
        ),
        ToolRow(
            "2",
            "shell",
            "make",
            "failed",
            SHELL.input,
            13.0,
            1.0,
            summary="exit 2",
            result=ToolResult("no", CommandText("make", output="no", exit_code=2), summary="exit 2"),
        ),
        Prompt("be quick", steered=True),
        ProseRecord("Done."),
        End("done", 10.0, 2),
    ]


def test_rows_are_the_same_wherever_a_turn_is_cancelled() -> None:
    for cut in range(1, len(TURN)):
        events = [*TURN[:cut], TurnEnded("cancelled", at=30.0)]
        stored = [event for event in events if not isinstance(event, TRANSIENT)]
        kinds = Prompt | NoticeRecord | ToolRow | Retry | End
        shown = [item for item in live(events).items if isinstance(item, kinds)]
        assert shown == [item for item in fold(stored) if isinstance(item, kinds)], cut


def test_a_stream_shows_what_it_brings() -> None:
    records = live(TURN[:4])
    assert records.items[-2:] == [Thought("hm"), ProseRecord("lost", open=True)]
    records = live(TURN[:6])
    assert isinstance(records.items[-1], Retry)
    assert records.busy
    assert live(TURN[:8]).items == [Prompt("why?"), Thought("Let me see.", open=True)]
    row = live(TURN[:12]).items[-1]
    assert isinstance(row, ToolRow)
    assert (row.name, row.state, row.summary) == ("grep", "queued", "writing 12 characters")


def test_states_of_a_call() -> None:
    def row(upto: int) -> ToolRow:
        found = [item for item in live(TURN[:upto]).items if isinstance(item, ToolRow)]
        return found[0 if upto < 18 else 1]

    assert row(14).state == "queued"
    assert row(14).target == "load"
    assert row(16).state == "running"
    assert row(16).tail == "half"
    assert row(17).tail == ""
    assert row(19).state == "waiting"
    assert row(20).state == "running"


def test_a_call_that_the_person_changed_names_what_runs() -> None:
    call = ToolUse("9", "shell", {"command": "make"})
    records = live(
        [
            TurnStarted(user("go")),
            MessageDone(Message("assistant", (call,))),
            ToolStarted(call, "make"),
            Asked("q", Question("permission", "Run?", call_id="9")),
            Answered("q", Reply("once", edited={"command": "make -n"})),
            ToolFinished("9", ToolResult("ok", summary="exit 0")),
        ]
    )
    row = records.items[-1]
    assert isinstance(row, ToolRow)
    assert (row.target, row.args) == ("make -n", {"command": "make -n"})


def test_a_denial_carries_the_words_of_the_person() -> None:
    records = live(
        [
            *TURN[:19],
            Answered("q", Reply("deny", "use make clean")),
            ToolFinished("2", failure("permission_denied", "no")),
        ]
    )
    row = records.items[-1]
    assert isinstance(row, ToolRow)
    assert (row.state, row.summary) == ("denied", "use make clean")


@pytest.mark.parametrize(
    ("by", "rule", "reason", "note"),
    [
        ("person", "", "", "you said no"),
        ("person", "", "use make clean", "you said: use make clean"),
        ("rule", "shell(rm:*)", "Denied by the rule shell(rm:*) (config.yaml:3).", "rule shell(rm:*)"),
        (
            "rule",
            "*(@secret)",
            "Denied by the rule *(@secret) (x). .env is secret.",
            ".env is secret (rule *(@secret))",
        ),
        ("mode", "", "Plan mode only reads: nothing runs. Read on.", "plan mode only reads: nothing runs"),
        ("hook", "guard.sh", "Not on a Friday.", "hook guard.sh: Not on a Friday"),
        ("sandbox", "", "There is no sandbox.", "there is no sandbox"),
    ],
)
def test_a_denied_row_says_who_denied_it_and_why(by: Any, rule: str, reason: str, note: str) -> None:
    call = ToolUse("9", "shell", {"command": "make"})
    events: list[Event] = [
        TurnStarted(user("go")),
        MessageDone(Message("assistant", (call,))),
        ToolStarted(call, "make"),
        Judged("9", "shell_network", "deny", "rule", "shell_network(domain:x)"),
        Judged("9", "shell", "deny", by, rule, reason),
        ToolFinished("9", failure("permission_denied", "No.")),
    ]
    for row in (live(events).items[-1], fold(events)[-1]):
        assert isinstance(row, ToolRow)
        assert (row.state, row.note) == ("denied", note)


def test_a_denial_that_nobody_recorded_says_what_its_result_says() -> None:
    call = ToolUse("9", "shell", {})
    denied = failure("permission_denied", "The script, or one beside it, has changed. Ask.")
    row = fold([TurnStarted(user("go")), MessageDone(Message("assistant", (call,))), ToolFinished("9", denied)])[-1]
    assert isinstance(row, ToolRow)
    assert row.note == "The script, or one beside it, has changed"


def test_calls_without_a_result_read_as_interrupted() -> None:
    rows = [item for item in fold(TURN[:15]) if isinstance(item, ToolRow)]
    assert [row.state for row in rows] == ["cancelled", "cancelled"]
    assert not any(isinstance(item, Retry) for item in fold(TURN[:6]))


def test_a_partial_answer_is_marked_and_hidden_words_are_not_shown() -> None:
    events: list[Event] = [
        TurnStarted(user("hidden", hidden=True)),
        TextDelta("half an ans"),
        MessageDone(Message("assistant", (Text("half an ans"),), stop="cancelled")),
        TurnEnded("cancelled"),
    ]
    items = live(events).items
    assert isinstance(items[0], ProseRecord)
    assert items[0].text == "half an ans"
    assert "interrupted" in items[0].partial
    assert isinstance(items[1], End)


@pytest.mark.parametrize("began", [ThinkingDelta("hm"), TextDelta(" \n"), ToolInputDelta("1", "grep", 12)])
def test_what_stopped_before_its_first_word_is_shown_live_no_more_than_later(began: Event) -> None:
    events: list[Event] = [TurnStarted(user("why?")), began, TurnEnded("cancelled")]
    assert live(events).items == fold([event for event in events if not isinstance(event, TRANSIENT)])


def test_other_agents_stay_out() -> None:
    assert live([TextDelta("inside", agent="main/explore-1")]).items == []


def test_changes_are_told_once() -> None:
    records = RecordFold()
    records.apply(TurnStarted(user("a")))
    records.apply(TextDelta("b"))
    records.settle()
    assert records.take_changes() == (0, set())
    records.apply(TextDelta("c"))
    records.settle()
    assert records.take_changes() == (2, {1})
    assert records.take_changes() == (2, set())
