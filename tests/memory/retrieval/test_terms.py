"""Text as index terms: stems, scripts without spaces, and text that is no text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.memory.engine.terms import READ, stems, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The customers' invoices", ["custom", "invoic"]),
        ("1,200 of them", ["1200"]),
        ("getUserName", ["getusernam", "user", "name"]),
        ("Häuser und Kinder sind nicht groß", ["haus", "kind", "gross"]),
        ("杭州物流", ["杭", "州", "物", "流", "杭州", "州物", "物流"]),
        ("안녕", ["안", "녕", "안녕"]),
        ("\0 \ud800 naïve", ["naiv"]),
        ("", []),
        ("?! …", []),
    ],
)
def test_a_text_becomes_stems(text: str, expected: list[str]):
    assert stems(text) == expected


def test_thai_has_terms_of_one_and_two_characters():
    assert {len(stem) for stem in stems("สวัสดี")} == {1, 2}


def test_a_term_keeps_the_word_that_was_written():
    assert terms("Reading invoices")[1].word == "invoices"


def test_only_the_beginning_of_a_long_text_counts():
    assert len(terms("word " * 200_000)) == READ // 5


def test_question_and_entry_share_the_stem_of_a_word():
    assert set(stems("Which climbers were climbing?")) & set(stems("He climbs."))


@given(st.text(max_size=60))
def test_every_stem_is_one_word_of_the_index(text: str):
    assert all(stem and len(stem.split()) == 1 and '"' not in stem for stem in stems(text))
