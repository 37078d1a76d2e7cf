"""recall finds what was said and done in this session, by words, and gives rounds whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.events import (
    Answered,
    Asked,
    Event,
    MessageDone,
    Notice,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, StopReason, Text, ToolUse, reminder, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.tools.builtin.recall import recall_tool, rounds, search, terms_of
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.validate import validate
from tests.tools.conftest import Harness, answering_call


def said(text: str, stop: StopReason = "end_turn") -> MessageDone:
    return MessageDone(Message("assistant", (Text(text),), stop=stop, origin="assistant"))


HISTORY: tuple[Event, ...] = (
    Notice("before the first round"),
    TurnStarted(user("Load sales.csv into DuckDB, please"), at=1_760_000_000),
    Steered(reminder("hidden note about sales")),
    TextDelta("Load"),
    ToolStarted(ToolUse("c1", "read_file", {"path": "sales.csv"}), "sales.csv"),
    ToolFinished("c1", ToolResult("year,sum\n" + "x,1\n" * 300 + "2025,Größe 4711\n" + "y,2\n" * 300)),
    said("It holds two columns."),
    TurnEnded("done"),
    TurnStarted(user("Now join the   tables"), at=1_760_000_100),
    Asked("q", Question("choice", "Left or inner join?")),
    Answered("q", Reply("text", "inner, on customer_id")),
    Asked("p", Question("permission", "Allow shell?")),
    Answered("p", Reply("once")),
    ToolStarted(ToolUse("c2", "shell", {"command": "make join"}), "make join"),
    said("I was about to sa", stop="cancelled"),
    Steered(user("faster", origin="steer")),
    TurnEnded("cancelled"),
    TurnStarted(user("合并两个表格"), at=1_760_000_200),
    ToolStarted(ToolUse("c3", "web_fetch", {}), agent="main/explore-1"),
    ToolFinished("c3", ToolResult("a DuckDB page", is_error=True), agent="main/explore-1"),
    ToolStarted(ToolUse("c4", "recall", {"query": "DuckDB"})),
    ToolFinished("c4", ToolResult("DuckDB DuckDB")),
    TurnStarted(user("where was duckdb?"), at=1_760_000_300),
    ToolStarted(ToolUse("c5", "recall", {"query": "duckdb"})),
)


class Recaller:
    def __init__(self, harness: Harness, events: Sequence[Event] = HISTORY) -> None:
        async def history() -> Sequence[Event]:
            return events

        self.tool = output(validate(recall_tool(harness.definitions["recall"], history)))
        self.call = answering_call("call", harness.branch, harness)

    async def __call__(self, **args: Any) -> ToolResult:
        return await self.tool.run(args, self.call)


@pytest.fixture
async def recall(harness: Harness) -> Recaller:
    return Recaller(harness)


def found(query: str) -> list[tuple[int, int]]:
    return [(match.round.number, match.terms) for match in search(rounds(HISTORY, leaving_out="recall"), query)]


def test_rounds_with_all_words_come_first_and_newest_first() -> None:
    assert found("DUCKDB") == [(3, 1), (1, 1), (4, 1)]
    assert found("duckdb load") == [(1, 2), (3, 1), (4, 1)]
    assert found("nowhere") == []
    assert found("") == []
    assert found('"the tables"') == [(2, 1)]
    assert found('"tables the"') == []


def test_every_kind_of_words_is_found() -> None:
    for words, number in (
        ("columns", 1),
        ("4711", 1),
        ("größe", 1),
        ("gro\u0308ße", 1),
        ("sales.csv", 1),
        ("inner or left", 2),
        ("customer_id", 2),
        ("about to sa", 2),
        ("faster", 2),
        ("make", 2),
        ("两个", 3),
    ):
        assert found(words)[0][0] == number, words


def test_what_was_hidden_or_recall_itself_said_is_left_out() -> None:
    history = rounds(HISTORY, leaving_out="recall")
    text = "\n".join(f"{part.who}: {part.text}" for item in history for part in item.parts)
    assert "hidden note" not in text
    assert "DuckDB DuckDB" not in text
    assert "before the first" not in text
    assert "recall" not in text


def test_what_was_interrupted_is_told() -> None:
    first, second, third, last = rounds(HISTORY, leaving_out="recall")
    assert [item.ending for item in (first, second, third, last)] == ["done", "cancelled", "interrupted", ""]
    whos = [part.who for part in second.parts]
    assert "answer (cut off by the user)" in whos
    assert second.parts[-1].who == "result of shell"
    assert "interrupted" in second.parts[-1].text
    assert third.parts[-1].who == "result of main/explore-1 of web_fetch (failed)"


def test_a_stored_result_is_named() -> None:
    events = (
        TurnStarted(user("go")),
        ToolStarted(ToolUse("c", "shell", {})),
        ToolFinished("c", ToolResult("head … tail", artifact="data/abc")),
    )
    assert rounds(events)[0].parts[-1].text == "head … tail\n[the whole result: data/abc]"


async def test_hits_with_an_excerpt_around_them(recall: Recaller) -> None:
    result = await recall(query="größe 4711")
    lines = result.text.splitlines()
    assert lines[0] == "1 of 4 rounds with every word of 'größe 4711'."
    assert lines[2].startswith("Round 1 · 2025-10-09")
    assert lines[3].startswith("- result of read_file: …")
    assert "x,1 2025,Größe 4711 y,2" in lines[3]
    assert lines[3].endswith("…")
    assert len(lines[3]) < 400
    assert result.kind == "hits"
    some = await recall(query="duckdb load")
    assert "1 of 4 rounds with every word of 'duckdb load', 2 more with some of them." in some.text
    assert "Round 2" not in some.text
    assert "1 of 2 words" in some.text
    one = await recall(query="duckdb load", limit=1)
    assert "[2 more; raise limit or add words]" in one.text
    assert "Try other or fewer words" in (await recall(query="zzz")).text


async def test_a_round_whole(recall: Recaller) -> None:
    result = await recall(round=2)
    assert result.text.startswith("# Round 2 · ")
    assert "· cancelled" in result.text.splitlines()[0]
    for words in ("[prompt]\nNow join the   tables", "[the user's answer]\ninner", "[the user, meanwhile]\nfaster"):
        assert words in result.text
    several = await recall(round=1, to=99)
    assert several.text.count("# Round ") == 4
    for args in ({"round": 9}, {"round": 3, "to": 2}):
        missing = await recall(**args)
        assert missing.error is not None
        assert missing.error.kind == "not_found"
        assert "the rounds 1 to 4" in missing.text


async def test_a_list_of_all_rounds(recall: Recaller, harness: Harness) -> None:
    result = await recall()
    assert [line.partition(": ")[2] for line in result.text.splitlines()] == [
        "Load sales.csv into DuckDB, please",
        "Now join the tables",
        "合并两个表格",
        "where was duckdb?",
    ]
    empty = Recaller(harness, ())
    assert "no rounds yet" in (await empty()).text
    assert "there are no rounds yet" in (await empty(round=1)).text


def test_words_of_a_query() -> None:
    assert terms_of('a "b  c" A d"') == ["A", "b c", 'd"']
    assert terms_of('""') == []


@given(st.text(max_size=40), st.lists(st.text(max_size=200), max_size=4))
def test_any_query_over_any_words(query: str, prompts: list[str]) -> None:
    events: list[Event] = [TurnStarted(user(prompt)) for prompt in prompts]
    for match in search(rounds(events), query):
        assert match.parts
        assert 1 <= match.terms <= len(terms_of(query))


@given(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=3), st.data())
def test_a_word_that_was_said_is_found(prompts: list[str], data: st.DataObject) -> None:
    words = [word for prompt in prompts for word in prompt.split() if '"' not in word]
    if not words:
        return
    word = data.draw(st.sampled_from(words))
    assert search(rounds([TurnStarted(user(prompt)) for prompt in prompts]), word)


async def test_what_the_person_wrote_is_read_byte_for_byte(harness: Harness) -> None:
    words = "  first:\n\tretries: 3\n\n  second:\n\tretries: 3  \n"
    events = [
        TurnStarted(user(words)),
        ToolStarted(ToolUse("c1", "read_file", {"path": "a.txt"})),
        ToolFinished("c1", ToolResult("result " * 1_000)),
        Steered(user("faster,\n  please", origin="steer")),
        Steered(reminder("it is late")),
        Answered("q", Reply("text", "the  left one")),
        said("Done."),
        TurnEnded("done"),
    ]
    result = await Recaller(harness, events)(round=1, person=True)
    for part in (words, "faster,\n  please", "the  left one"):
        assert part in result.text
    for other in ("result", "late", "Done."):
        assert other not in result.text
