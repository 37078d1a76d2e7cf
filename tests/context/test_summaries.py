"""Which way is chosen, what a summary is made of, what it must hold, and what is kept of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.context.compression.compressor import Case, SummaryBudget, choose
from ba_tui.context.compression.notes import completed, left_out
from ba_tui.context.compression.summarize import Summarizer, SummaryCache, Writer, digest, record
from ba_tui.core.errors import ProviderError
from ba_tui.core.messages import Image, Message, Text, ToolOutput, ToolUse, reminder, user
from ba_tui.settings import CompressionSettings
from tests.context.talk import MODEL, PROMPT, count, told
from tests.script import Script, says

PRICED = Case(60, 0.01, 0.10)


@pytest.mark.parametrize(
    ("given_", "case", "way"),
    [
        ({}, PRICED, "summarize"),
        ({}, replace(PRICED, messages=29), "extract"),
        ({}, replace(PRICED, messages=49), "extract"),
        ({}, replace(PRICED, messages=50), "summarize"),
        ({}, replace(PRICED, cost=0.10), "summarize"),
        ({}, replace(PRICED, cost=0.11), "extract"),
        ({}, Case(60, 0.01), "extract"),
        ({"summarize_from": 10}, replace(PRICED, messages=30), "summarize"),
        ({}, replace(PRICED, cost=None), "extract"),
        ({"enable_llm_summarization": False}, PRICED, "extract"),
        ({"summarize_from": 10}, replace(PRICED, messages=29), "extract"),
        ({"summarize_from": 10, "extract_below": 5}, replace(PRICED, messages=12), "summarize"),
        ({"strategy": "truncate"}, PRICED, "truncate"),
        ({"strategy": "extract"}, PRICED, "extract"),
        ({"strategy": "summarize"}, Case(2), "summarize"),
    ],
)
def test_the_way_is_what_was_set_or_what_suits(given_: dict[str, Any], case: Case, way: str) -> None:
    assert choose(CompressionSettings(**given_), case) == way


def test_the_budget_is_for_any_hour() -> None:
    now = [0.0]
    budget = SummaryBudget(0.10, lambda: now[0])
    budget.spend(0.06)
    now[0] = 1_800.0
    budget.spend(0.04)
    assert budget.left() == pytest.approx(0.0)
    now[0] = 3_600.0
    assert budget.left() == pytest.approx(0.06)
    now[0] = 5_400.0
    assert budget.left() == pytest.approx(0.10)
    budget.spend(0.08)
    budget.spend(0.05)
    assert budget.left() == 0
    now[0] = 9_000.0
    assert budget.left() == pytest.approx(0.10)


SOURCE = (
    user("Always answer in German. The budget is 1,250 EUR and the deadline 2026-12-01."),
    says("I will edit it.", ("edit_file", {"path": "src/billing/totals.py"})),
    Message("user", (ToolOutput("edit_file-0-I will edit it.", "done " * 2_000),), origin="tool"),
    says("Done: 42.5% less memory, see https://example.org/notes. Decided on SQLite."),
)


def test_what_a_summary_left_out_is_added_and_nothing_else() -> None:
    text, added = completed(SOURCE, "The deadline is 2026-12-01. Decided on SQLite.", 1_000, count)
    assert "src/billing/totals.py" in text
    assert "https://example.org/notes" in text
    assert "42.5%" in text
    assert added == text.count("\n- ")
    # The user's own words stand beside the summary.
    assert "Always answer in German." not in text
    assert "1,250 EUR" not in text


def test_a_summary_that_holds_everything_stays_as_it_is() -> None:
    whole = "42.5% in src/billing/totals.py, https://example.org/notes"
    assert completed(SOURCE, whole, 1_000, count) == (whole, 0)


def test_part_of_a_number_is_not_the_number() -> None:
    assert left_out([says("It has 12 rows in all.")], "There are 4125 of them.", 1_000, count)


@pytest.mark.parametrize("words", ["目录 data/raw 里有文件。", "截止日期是12月31日，预算3.5万元。"])
def test_chinese_cues_count(words: str) -> None:
    assert left_out([says(words)], "Nothing.", 1_000, count)


def test_the_list_keeps_to_its_room_and_begins_with_paths() -> None:
    many = [says(f"Part {number} has {number * 37} rows in file_{number}.csv.") for number in range(10, 200)]
    facts = left_out(many, "", 200, count)
    assert facts[0] == "file_199.csv"
    assert count([user("\n".join(facts))]) <= 220


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=300), st.text(max_size=200))
def test_any_text_can_be_checked(words: str, summary: str) -> None:
    text, added = completed([says(words or "-")], summary, 200, count)
    assert added or text == summary
    assert text.startswith(summary.rstrip())


def test_the_record_shortens_results_and_tells_who_spoke() -> None:
    text = record((*SOURCE, user("note", origin="reminder", hidden=True)), 100)
    assert "[agent calls edit_file]" in text
    assert "[system note]" in text
    prompted = user("Go on.").joined(reminder("The context window is 76% full."))
    assert record([prompted, reminder("It is Monday.")], 100) == "[person]\nGo on."
    assert len(text) < 1_000
    assert "image" in record([Message("user", (Image("image/png", "AAAA"),))], 100)


def summarizer(writer: Script, folder: Path, **chosen: Any) -> Summarizer:
    async def provider() -> Script:
        return writer

    choices = CompressionSettings(**chosen)
    cache = SummaryCache(folder, choices.cache_size, choices.cache_hours)
    return Summarizer(Writer(lambda: writer.model, provider, PROMPT), choices, cache, count)


async def test_a_summary_keeps_to_its_cap(tmp_path: Path) -> None:
    writer = Script(told("A line of it.\n" * 2_000, 100))
    summary = await summarizer(writer, tmp_path, summary_tokens=300).summarize([user("hello")])
    assert count([user(summary.text)]) <= 300
    assert "at most 180 words" in writer.requests[0].system
    assert writer.requests[0].tools == ()


async def test_what_is_sent_fits_the_model_that_writes(tmp_path: Path) -> None:
    writer = Script(told("Notes.", 100))
    writer.model = replace(MODEL, window=4_000)
    await summarizer(writer, tmp_path, summary_tokens=300).summarize([user("word " * 2_000)] * 20)
    assert count(writer.requests[0].messages) < 4_000


@pytest.mark.parametrize("answer", [says("", ("shell", {})), says("  "), says("No.", stop="refusal")])
async def test_what_is_no_summary_is_an_error(tmp_path: Path, answer: Message) -> None:
    with pytest.raises(ProviderError):
        await summarizer(Script(answer), tmp_path).summarize([user("hello")])


def test_without_a_price_nothing_is_expected(tmp_path: Path) -> None:
    writer = Script()
    writer.model = replace(MODEL, prices=None)
    assert summarizer(writer, tmp_path).expected([user("hello")]) is None


def test_the_cache_forgets_what_is_old_or_too_much(tmp_path: Path) -> None:
    now = [1_000_000.0]
    cache = SummaryCache(tmp_path / "kept", 2, 24, lambda: now[0])
    cache.put("a", "text of a")
    assert cache.get("a") == "text of a"
    now[0] += 24 * 3_600
    assert cache.get("a") is None
    os.utime(tmp_path / "kept" / "a.json", (1_000_000.0, 1_000_000.0))
    for number in range(21):
        cache.put(f"k{number}", "x")
        os.utime(tmp_path / "kept" / f"k{number}.json", (now[0] + number, now[0] + number))
    assert len(list((tmp_path / "kept").glob("*.json"))) <= 4
    assert not (tmp_path / "kept" / "a.json").exists()


def test_damaged_and_unwritable_files_are_no_summaries(tmp_path: Path) -> None:
    cache = SummaryCache(tmp_path, 10, 24)
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"text": "x", "at": "soon"}'), ("d", "\x00")):
        (tmp_path / f"{name}.json").write_text(text)
        assert cache.get(name) is None
    (tmp_path / "file").write_text("")
    SummaryCache(tmp_path / "file" / "below", 10, 24).put("a", "x")
    assert (tmp_path / "file").read_text() == ""


def test_a_summary_is_the_persons_own(tmp_path: Path) -> None:
    SummaryCache(tmp_path / "kept", 10, 24).put("a", "secret")
    assert (tmp_path / "kept" / "a.json").stat().st_mode & 0o077 == 0
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


def test_the_digest_tells_parts_apart() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["\ud800"]) == digest(["\ud800"])


def test_thinking_and_calls_are_words_of_the_record() -> None:
    call = ToolUse("1", "shell", {"command": "make"})
    assert "make" in record([Message("assistant", (Text("Go."), call))], 50)
