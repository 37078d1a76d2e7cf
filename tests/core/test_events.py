"""Every event survives the journal; the union is closed."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ba_tui.core import events
from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import Event, MemoryLine, event_from_json, event_to_json
from ba_tui.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
    clean_json,
    clean_text,
)
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.results import (
    ActiveSkill,
    CommandText,
    Diff,
    Diffs,
    Prose,
    Source,
    StateChange,
    Table,
    Todo,
    Todos,
    ToolResult,
    failure,
)
from ba_tui.core.teamwork import AgentMessage, Claim, Conflict, Member, Plan, PlanTask, SubTask, Team
from ba_tui.core.text.figures import FigureReport, FigureSource, FigureVerdict, SourceFile

UNION = typing.get_args(typing.get_args(Event)[0])
MEMORY = MemoryLine("m1", "數字 🎉", "preference", 1.5, "words: a", "before")
TODO = Todo("1", "count rows", "in_progress", "high")
DISPLAYS = (
    Diff("a.py", None, "x\n"),
    Diffs((Diff("a.py", "y\n", "x\n"), Diff("b.py", None, ""))),
    CommandText("ls", "/w", "\x1b[31mred\x1b[0m", 0),
    Source("a.py", "x", 7),
    Table(("a", "b"), ((1, None), ("x", 2.5))),
    Prose("**b**", markdown=True),
    Todos((TODO,)),
)
MESSAGE = Message(
    "assistant",
    (
        Thinking("hm", "sig=="),
        RedactedThinking("enc"),
        Text("數字 🎉 [b]", ({"url": "u"},)),
        Image("image/png", "aGk="),
        Document("application/pdf", "aGk=", "t"),
        ToolUse("1", "grep", {"pattern": "x", "n": [1, {"y": None}]}, malformed="{"),
        ToolOutput("1", "out", True, (Image("image/png", url="https://x"),)),
        Opaque({"type": "new_kind", "v": [1]}, "anthropic"),
    ),
    Usage(1, 2, 3, 4),
    "tool_use",
    "test/model",
    "assistant",
    True,
)
RESULT = ToolResult("ok", DISPLAYS[0], changes=StateChange((TODO,), "/w"), meta={"a": [1]})
QUESTION = Question(
    "permission",
    "Run?",
    "1",
    "shell",
    {"command": "ls"},
    DISPLAYS[1],
    "why",
    ("writes",),
    "shell(ls)",
    (Option("a", "b"),),
    True,
    ("A hidden character.",),
    "a hook",
    300.0,
    "escalate",
)
SKILL = ActiveSkill("pdf", "1", "abc", "x.pdf", ("read_file",), True, "test/small")
SUBTASK = SubTask(
    "s2",
    "Sum {s1}",
    "A number",
    "query_sql",
    {"sql": "select {s1.rows}", "n": [1, {"y": None}]},
    ("s1",),
    ("s1",),
    "analyst",
    critical=True,
    status="failed",
    result="數字 🎉",
    value={"rows": [1, None]},
    artifact="a1",
    error="Timed out.",
    attempts=3,
    agent_id="main/analyst-1",
)
PLAN = Plan(
    "p1", PlanTask("t1", "數字?", "Sum it", "EUR", ("All of 2026",)), (SubTask("s1", "Read"), SUBTASK), "running", 1
)
CONFLICT = Conflict(
    "c1", "total", (Claim("a", 1.5, 0.9), Claim("b", {"x": None})), "verifier", Claim("a", 1.5, 0.9), "w"
)
TEAM = Team("t1", "Sum it", "market", (Member("a-1", "analyst", "acting", "Reads", "main/a-1", 1.5, "h:1"),), "working")
SAMPLES: tuple[Event, ...] = (
    events.TurnStarted(MESSAGE),
    events.TurnResumed(("1", "2"), checkpointed=True),
    events.Steered(MESSAGE),
    events.TextDelta("x"),
    events.ThinkingDelta("x"),
    events.ToolInputDelta("1", "grep", 10),
    events.PromptProgress(12_000, 2_048, 14.5),
    events.MemoriesUsed((MEMORY,)),
    events.MemoryChanged((MEMORY,), ("m2",), private=True),
    events.MemoryProposed((MEMORY,)),
    events.WorkingChanged("plan-1", {"a": [1, {"b": None}]}),
    events.Retrying("Overloaded.", 1.5, 1, 5),
    events.MessageRestarted(),
    events.MessageDone(MESSAGE, 0.25),
    events.ToolStarted(ToolUse("1", "grep", {}), "x"),
    events.ToolProgress("1", "line"),
    *(events.ToolFinished("1", ToolResult("x", display), 0.5, agent="main/a", at=1.5) for display in DISPLAYS),
    events.ToolFinished("1", RESULT),
    events.ToolFinished("1", failure("timeout", "too slow")),
    events.Asked("q", QUESTION),
    events.Answered("q", Reply("deny", "no", "shell(ls)", {"a": 1})),
    events.Judged("1", "shell", "ask", "rule", "shell(ls)", "why", "abc"),
    events.SkillsChanged((SKILL,)),
    events.SideRequest("hook", "claude-haiku-4-5", Usage(1, 2), 0.1),
    events.Compressed((MESSAGE,), "extract", 10, 5, 0.1, "the goal", 1),
    events.MediaLeftOut(("4-ab12",), "Could not process image."),
    events.Checkpointed("abc", 1),
    events.Rewound((MESSAGE,), StateChange((TODO,), "/w", (SKILL,)), 2, "abc", "def"),
    events.FiguresChecked(
        "0" * 32,
        FigureReport(
            (
                FigureVerdict(
                    "42 %", 3, 7, "sourced", 42.0, "%", (FigureSource("R1", 0.42, "call", line=7),), files=(0,)
                ),
                FigureVerdict("1e999", 9, 14, "unsourced"),
            ),
            ("shell#2",),
            3,
            (SourceFile("/data/sales.csv", 12, 1_700_000_000_000_000_000),),
            ("/data/sales.csv",),
        ),
    ),
    events.Notice("x", "warning", "y"),
    events.AgentStarted("explore", "Find it", "1", "test/small", background=True, resumed=True),
    events.ActivityChanged("acting", "thinking", agent="main/a"),
    events.AgentPaused(paused=True, agent="main/a"),
    events.PlanChanged(PLAN, "The hotel is full."),
    events.SubTaskChanged("p1", SUBTASK),
    events.TeamChanged(TEAM),
    events.TeamMessage(AgentMessage("a-1", "*", "information_share", {"k": [1, None]}, "t1", "m0", "k1", 3, "m1", 1.5)),
    events.ConflictChanged("t1", CONFLICT),
    events.ModeChanged("plan"),
    events.ModelChanged("a/b"),
    events.Titled("t"),
    events.TurnEnded("error", ErrorInfo("k", "m", "h")),
)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_every_event_round_trips(event: Event):
    assert event_from_json(event_to_json(event)) == event


def test_an_event_with_what_json_does_not_know_is_kept_all_the_same():
    call = ToolUse("1", "x", {"a": "\ud800", "b": float("nan"), "c": {1, 2}})
    kept = event_from_json(event_to_json(events.ToolStarted(call)))
    assert kept.call.input == {"a": "\N{REPLACEMENT CHARACTER}", "b": None, "c": "{1, 2}"}  # type: ignore[union-attr]


def test_every_kind_has_a_sample():
    assert {type(event) for event in SAMPLES} == set(UNION)


def test_the_union_holds_every_event_of_the_module():
    named = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.SignedEvent)}
    assert named - {events.SignedEvent} == set(UNION)


@pytest.mark.parametrize("line", [b"{}", b'{"type":"unheard_of"}', b"not json", b'{"type":"text_delta"}'])
def test_a_line_that_is_no_event_is_refused(line: bytes):
    with pytest.raises(ValidationError):
        event_from_json(line)


@given(st.text(st.characters(), max_size=50))
def test_cleaned_text_survives_utf8_and_holds_no_nul(text: str):
    cleaned = clean_text(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert "\0" not in cleaned
    assert len(cleaned) == len(text)


def test_json_values_are_cleaned_to_their_leaves():
    assert clean_json({"a\0": ["\ud800", 1, None, float("inf"), {"b": ("x",)}]}) == {
        "a\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}", 1, None, None, {"b": ["x"]}]
    }
