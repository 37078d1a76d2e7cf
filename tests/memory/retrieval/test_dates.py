"""Dates in text: written out, in figures, and as distances from the day on which it was said."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.memory.engine.dates import dates, says_when, spans, without_dates

SAID = date(2023, 5, 10)
"""A Wednesday."""


def named(text: str, said: date | None = SAID) -> list[tuple[str, str]]:
    return [tuple(date.fromordinal(day).isoformat() for day in span) for span in spans(text, said)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 8 May 2023", "2023-05-08", "2023-05-08"),
        ("the 3rd of June", "2023-06-03", "2023-06-03"),
        ("2023-05-08", "2023-05-08", "2023-05-08"),
        ("am 8.5.2023", "2023-05-08", "2023-05-08"),
        ("2023年5月8日", "2023-05-08", "2023-05-08"),
        ("yesterday", "2023-05-09", "2023-05-09"),
        ("last Friday", "2023-05-05", "2023-05-05"),
        ("three weeks ago", "2023-04-16", "2023-04-22"),
        ("vor zwei Tagen", "2023-05-08", "2023-05-08"),
        ("上周", "2023-05-01", "2023-05-07"),
        ("next month", "2023-06-01", "2023-06-30"),
        ("in May", "2023-05-01", "2023-05-31"),
        ("summer 2022", "2022-06-01", "2022-08-31"),
        ("1950", "1950-01-01", "1950-12-31"),
    ],
)
def test_a_date_is_read(text: str, first: str, last: str):
    assert named(text) == [(first, last)]


@pytest.mark.parametrize("text", ["Grace may march", "9999999 years ago", "12,345 and 2.2023.1", "", "\0\ud800"])
def test_what_is_no_date_is_left_alone(text: str):
    assert named(text) == []


@pytest.mark.parametrize("text", ["yesterday", "8 May", "last week", "on Friday"])
def test_a_distance_needs_the_day_on_which_it_was_said(text: str):
    assert named(text, None) == []


def test_a_date_without_a_year_lies_in_the_nearest_one():
    assert named("on 28 December", date(2024, 1, 3)) == [("2023-12-28", "2023-12-28")]


def test_dates_do_not_overlap_and_are_taken_out_of_a_text():
    text = "What did she do on 8 May 2023 and last week in Rome?"
    found = dates(text, SAID)
    assert [text[each.start : each.end] for each in found] == ["8 May 2023", "last week"]
    assert without_dates(text, SAID) == "What did she do on and in Rome?"


def test_words_of_time_are_counted_up_to_two():
    assert [says_when(text) for text in ("I like tea", "Since Monday", "Every day since June 2020")] == [0, 2, 2]


@given(st.dates(date(1901, 1, 1), date(2099, 12, 31)), st.sampled_from(["%Y-%m-%d", "%d %B %Y", "%B %d, %Y"]))
def test_a_written_date_is_read_back(day: date, form: str):
    assert named(f"It was on {day.strftime(form)}.") == [(day.isoformat(), day.isoformat())]


@given(st.text(alphabet="0123456789.-/ maydlst年月日周", max_size=40), st.dates())
def test_any_text_and_any_day_can_be_read(text: str, said: date):
    assert all(first <= last for first, last in spans(text, said))
