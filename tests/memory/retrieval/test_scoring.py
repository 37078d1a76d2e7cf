"""How signals become an order and a threshold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from ba_tui.features.memory.engine.dates import Span
from ba_tui.features.memory.engine.lookup import Nearby, Row
from ba_tui.features.memory.engine.recall import calibration
from ba_tui.features.memory.engine.scoring import Scorer, Signals, rarity, read
from ba_tui.features.memory.engine.terms import stems


def row(number: int, text: str, speaker: str = "", at: float = 0.0, days: tuple[Span, ...] = ()) -> Row:
    found = stems(text)
    return Row(number, str(number), "turn", "s", number, speaker, at, len(found), False, 0, days, frozenset(found), "")


def scorer(question: str, *rows: Row, speakers: tuple[str, ...] = ()) -> Scorer:
    asked = read(question, speakers, date(2023, 5, 10))
    telling = rarity([term.stem for term in asked.terms], {}, len(rows))
    return Scorer(asked, telling, {}, {each.number: each for each in rows})


def test_a_rare_term_tells_more_than_a_common_one():
    found = rarity(["rare", "common", "absent"], {"rare": 1, "common": 90}, 100)
    assert found["absent"] > found["rare"] > found["common"] > 0


def test_a_short_answer_takes_its_subject_from_the_turn_before():
    asks, answers = row(1, "Which guitar would you never sell?"), row(2, "The red one.")
    weigh = scorer("Which guitar would he never sell?", asks, answers)
    assert weigh.signals(answers, None, 0.0).coverage == 0.0
    assert weigh.signals(answers, Nearby(previous=1), 0.0).coverage == pytest.approx(0.8)


def test_a_long_turn_is_understood_without_its_neighbours():
    long = row(2, " ".join(f"word{number}" for number in range(40)))
    weigh = scorer("Which guitar?", row(1, "A guitar."), long)
    assert weigh.signals(long, Nearby(previous=1), 0.0).coverage == 0.0


def test_a_neighbour_without_a_row_is_left_out():
    answers = row(2, "The red one.")
    assert scorer("Which guitar?", answers).signals(answers, Nearby(previous=1), 0.0).coverage == 0.0


def test_speakers_and_days_that_the_question_names_count():
    said = datetime(2023, 5, 8, tzinfo=UTC)
    day = said.date().toordinal()
    names_it, said_then = (
        row(1, "A concert.", "Devon", days=(Span(day, day),)),
        row(2, "A concert.", at=said.timestamp()),
    )
    weigh = scorer("What did Devon hear on 8 May 2023?", names_it, said_then, speakers=("Devon",))
    assert (weigh.signals(names_it, None, 0.0).speaker, weigh.signals(names_it, None, 0.0).dated) == (1.0, 1.0)
    assert weigh.signals(said_then, None, 0.0).speaker == 0.0
    assert 0 < weigh.signals(said_then, None, 0.0).dated < 1


@pytest.mark.parametrize("model", ["", "fuse-0.2", "e5-small-0.3", "unknown"])
def test_form_alone_makes_no_entry_relevant(model: str):
    formed = Signals(statement=1.0, length=1.0)
    assert calibration(model).rank("turn", formed) > 0
    assert calibration(model).relevance("turn", formed) == 0.0
    assert calibration(model).relevance("turn", replace(formed, coverage=1.0, cosine=1.0)) >= 1.0
    assert calibration(model).relevance("fact", replace(formed, coverage=1.0, cosine=1.0)) >= 1.0


def test_an_unknown_model_is_weighed_by_words():
    assert calibration("of-later").facts.cosine == 0.0
