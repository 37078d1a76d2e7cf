"""What is known of sub-agents, live or from the journal, and the rows that show them."""

from __future__ import annotations

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import (
    AgentPaused,
    AgentStarted,
    Answered,
    Asked,
    Event,
    TextDelta,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.faces.tui.roster import AgentSpace, Roster, below, head
from ba_tui.faces.tui.transcript.fold import RecordFold, fold
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.records import Prompt, ProseRecord, ToolRow
from tests.faces.tui.agents.story import begins, ends, starts, works

A, B, NESTED = "main/explore-1", "main/explore-2", "main/explore-1/general-1"


def rows(records: RecordFold) -> list[ToolRow]:
    records.settle()
    return [item for item in records.items if isinstance(item, ToolRow)]


def shown(*events: Event, agent: str = "main") -> list[ToolRow]:
    records = RecordFold(agent)
    for event in events:
        records.apply(event)
    return rows(records)


def test_each_call_shows_its_own_agent_though_they_begin_in_another_order():
    events = [*begins("1", "2"), *starts(B, "2"), *starts(A, "1"), *works(B)]
    first, second = shown(*events)
    assert [line.agent_id for line in (*first.agents, *second.agents)] == [A, B]
    assert (second.agents[0].calls, second.agents[0].tokens, second.agents[0].words) == (1, 1000, "read_file a.txt")
    assert first.agents[0].words == "thinking"
    assert first.open
    first, second = shown(*events, *ends(A, "1"), *ends(B, "2"))
    assert [row.agents[0].words for row in (first, second)] == ["Found", "Found"]
    assert not first.open
    assert not second.open


def test_an_agent_waits_for_the_user_until_its_last_question_is_answered():
    roster = Roster()
    events = [*starts(A, "1"), *(Asked(id, Question("permission", "Run it?"), agent=A, at=1.0) for id in ("p", "q"))]
    others = [AgentPaused(True, agent=A), ToolFinished("x", ToolResult("done"), agent=A)]
    answers = [Answered(id, Reply("once"), agent=A, at=2.0) for id in ("q", "p")]
    lines = [roster.apply(event) for event in (*events, *others, *answers)]
    said = [line.words for line in lines if line]
    assert said[-6:] == [*5 * ["waiting for you"], "paused"]


def test_the_clock_of_an_agent_stands_still_while_it_waits_for_the_person():
    roster = Roster()
    question = Question("permission", "Run it?")
    events = [
        *starts(A, "1"),
        Asked("q1", question, agent=A, at=1_000.0),
        Answered("q1", Reply("once"), agent=A, at=1_060.0),
    ]
    for event in events[:-1]:
        roster.apply(event)
    began = roster.lines[A].began
    assert roster.lines[A].seconds(1_050.0) == 1_000.0 - began
    roster.apply(events[-1])
    assert roster.lines[A].seconds(1_065.0) == 1_005.0 - began


def test_tokens_of_agents_below_count_for_the_one_above():
    roster = Roster()
    for event in (*starts(A, "1"), *works(A), *starts(NESTED, f"{A}-r"), *works(NESTED)):
        roster.apply(event)
    assert (roster.lines[A].tokens, roster.lines[NESTED].tokens) == (2000, 1000)
    assert roster.lines[A].calls == 1


def test_words_that_stream_change_no_row():
    records = RecordFold()
    for event in (*begins("1"), *starts(A, "1")):
        records.apply(event)
    rows(records)
    records.take_changes()
    for _ in range(1000):
        records.apply(TextDelta("more ", agent=A))
    assert not records.agents.stirred
    assert records.take_changes() == (len(records.items), set())


def test_an_agent_in_the_background_stays_open_in_its_row_until_it_ends():
    begun = [*begins("1"), ToolFinished("1", ToolResult("begun", summary="in the background"))]
    # It begins when its call is over.
    turn = [*begun, *starts(A, "1", background=True), *works(A), TurnEnded("done", at=15.0)]
    (row,) = shown(*turn)
    assert row.state == "ok"
    assert row.open
    assert row.agents[0].running
    (row,) = shown(*turn, *ends(A))
    assert not row.open
    assert row.agents[0].words == "Found"
    (stored,) = [item for item in fold(turn) if isinstance(item, ToolRow)]
    assert stored.agents[0].words == "interrupted"
    assert not stored.open


def test_agents_that_no_call_started_have_rows_of_their_own():
    events = [TurnStarted(user("/team"), at=1.0), *starts(A), *starts(B, "a call of nobody"), *works(A), *ends(A)]
    first, second = shown(*events)
    assert [(row.call_id, row.state) for row in (first, second)] == [(A, "ok"), (B, "running")]
    first, second = shown(*events, TurnEnded("cancelled", at=30.0))
    assert (second.state, second.agents[0].words) == ("cancelled", "interrupted")


def test_who_waits_is_paused_or_failed_says_so():
    roster = Roster()
    for event in (*starts(A), Asked("q", Question("permission", "Run?"), agent=A)):
        roster.apply(event)
    assert (roster.lines[A].state, roster.lines[A].words) == ("waiting", "waiting for you")
    roster.apply(Answered("q", Reply("once"), agent=A))
    roster.apply(AgentPaused(True, agent=A))
    assert roster.lines[A].words == "paused"
    roster.apply(TurnEnded("limit", ErrorInfo("deadline", "Stopped at 30 s."), agent=A))
    assert (roster.lines[A].state, roster.lines[A].words) == ("failed", "Stopped at 30 s.")
    roster.apply(AgentStarted("explore", "Go on", "2", resumed=True, agent=A, at=50.0))
    assert roster.lines[A].running
    assert roster.lines[A].began == 50.0


def test_the_transcript_of_an_agent_holds_what_it_was_told_said_and_did():
    events = [*begins("1"), *starts(A, "1"), *works(A), *starts(NESTED, f"{A}-r"), *works(NESTED), *ends(A, "1")]
    found = fold(events, A)
    assert [item.text for item in found if isinstance(item, Prompt | ProseRecord)][:2] == [f"CHILD {A}", "I read it."]
    (row,) = [item for item in found if isinstance(item, ToolRow)]
    assert row.name == "read_file"
    assert [line.agent_id for line in row.agents] == [NESTED]


def test_columns_stand_below_each_other_at_any_width():
    first, second = shown(*begins("1", "2"), *starts(A, "1"), *starts(B, "2"), *works(B))
    for width in (40, 76, 110):
        space = AgentSpace(width, Palette(), 25.0)
        lines = ["".join(part.text for part in head(row.agents, "x", "y", space)) for row in (first, second)]
        assert [len(line) for line in lines] == [width, width]
        assert lines[0].endswith("    14s")
        assert lines[1].endswith("1.0k     14s")
    both = first.agents + second.agents
    told = ["".join(part.text for part in line) for line in below(both, AgentSpace(70, Palette(), 25.0))]
    assert [len(line) for line in told] == [70, 70]
    assert len(below(both * 5, AgentSpace(70, Palette(), 25.0))) == 7
