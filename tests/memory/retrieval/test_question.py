"""What a question asks, and why an entry was found for it."""

from __future__ import annotations

from datetime import date

import pytest

from ba_tui.features.memory.engine.recall import reasons
from ba_tui.features.memory.engine.scoring import MOST_TERMS, Signals, read
from ba_tui.features.memory.engine.terms import stems


def test_names_and_dates_are_no_terms():
    question = read("When did Devon go to Rome on 8 May?", ["Devon Smith", "Aiko"], date(2023, 5, 10))
    assert question.named == {"Devon Smith"}
    assert [term.stem for term in question.terms] == ["go", "rome"]
    assert [span.first for span in question.days] == [date(2023, 5, 8).toordinal()]
    assert question.plain == "When did go to Rome on 8 May?"


@pytest.mark.parametrize("text", ["When is it?", "Seit wann gilt das?", "什么时候开会？", "How long does it take?"])
def test_a_question_about_a_time_is_seen(text: str):
    assert read(text).when


@pytest.mark.parametrize("text", ["What do I do when it fails?", "Where is it?", "", "\0\ud800"])
def test_other_questions_ask_for_no_time(text: str):
    assert not read(text).when


def test_a_name_in_chinese_is_found_within_the_text():
    assert read("林晓雯喜欢什么？", ["林晓雯"]).named == {"林晓雯"}


def test_a_long_request_keeps_few_terms():
    question = read(" ".join(f"word{number}" for number in range(100_000)))
    assert len(question.terms) == MOST_TERMS


@pytest.mark.parametrize(
    ("text", "signals", "expected"),
    [
        ("The fiscal year starts on 1 July.", Signals(coverage=0.9), "words: starts, fiscal, year"),
        ("Our books close in June.", Signals(coverage=0.7, cosine=0.5), "similar words"),
        ("Our books close in June.", Signals(coverage=0.1, cosine=0.5, dated=1.0), "date"),
        ("Our books close in June.", Signals(cosine=0.5), "meaning"),
        ("The year ended.", Signals(coverage=0.4, speaker=1.0, dated=0.6), "words: year · name · date"),
        ("Hello.", Signals(), "recent"),
    ],
)
def test_people_read_why_an_entry_was_found(text: str, signals: Signals, expected: str):
    assert reasons(read("Which month starts the fiscal year?"), stems(text), signals) == expected


def test_pairs_of_characters_are_named_instead_of_single_ones():
    assert reasons(read("财年从几月开始"), stems("我们的财年从四月开始。"), Signals(coverage=0.9)).startswith("words: ")
    assert "财年" in reasons(read("财年是几月"), stems("我们的财年从四月开始。"), Signals(coverage=0.9))
