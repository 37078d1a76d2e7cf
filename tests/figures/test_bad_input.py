"""Answers and results that nobody should write: no exception, bounded work, an honest verdict."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.figures.check import MOST_WORK, check
from ba_tui.features.figures.observed.evidence import Evidence

DICE = Random(7)
TABLE = "region,sales,cost\n" + "\n".join(
    f"r{number},{DICE.randint(1, 99_999)},{DICE.random() * 1000:.2f}" for number in range(60)
)


def evidence_of(*observations: str) -> Evidence:
    evidence = Evidence()
    evidence.add_words("How are sales?")
    for number, text in enumerate(observations, 1):
        evidence.add(f"R{number}", text)
    return evidence


def test_of_thousands_of_numbers_those_that_were_not_looked_at_are_counted():
    answer = " ".join(str(DICE.randint(1, 10**6)) for _ in range(8_000))
    found = check(answer, evidence_of(TABLE))
    assert len(found.verdicts) + len(found.apart) + found.unread == 8_000
    assert found.counts["unchecked"] > 4_000
    assert all(verdict.note for verdict in found.verdicts if verdict.label == "unchecked")


@pytest.mark.parametrize("number", ["9" * 400, "9" * 30_000, "1e400", "10^400", "1" + "0" * 5_000])
def test_a_number_that_nothing_can_hold_is_unsourced(number: str):
    found = check(f"It is {number} now.", evidence_of(TABLE, '{"a": NaN, "b": 1e999}'))
    assert [verdict.label for verdict in found.verdicts] == ["unsourced"]


@pytest.mark.parametrize("minus", ["-", "−", "–", "﹣", "－"])
def test_every_minus_sign_is_one(minus: str):
    (verdict,) = check(f"The change was {minus}5.2%.", evidence_of("month,change_pct\nMay,-5.2\nJune,3.1\n")).verdicts
    assert (verdict.figure.sign, verdict.label) == ("-", "sourced")


@pytest.mark.parametrize("text", ["１２３４５", "١٢٣٤٥", "१२३४५", "12 345", "12'345", "1**2345**", "12_345"])
def test_digits_of_other_scripts_and_split_numbers_are_read(text: str):
    found = check(f"Sales were {text} units.", evidence_of("item,units\na,12345\nb,7\n"))
    assert [verdict.label for verdict in found.verdicts] == ["sourced"]


def test_figures_in_a_code_fence_are_code():
    assert check("```\n" + "1,2,3\n" * 500 + "```", evidence_of(TABLE)).verdicts == ()


@pytest.mark.parametrize("mark", [",", "\t", "\n", "(", " h ", "@"])
def test_repetition_costs_no_more_than_its_length(mark: str):
    answer = f"1{mark}" * 700
    evidence = evidence_of(answer, TABLE)
    found = check(answer, evidence)
    assert found.unread + len(found.verdicts) <= 700
    assert len(found.apart) <= 1_400


def test_a_cell_of_a_large_table_is_checked_though_derivations_are_not_looked_for_everywhere():
    rows = [(f"k{number}", DICE.randint(10_000, 10**7)) for number in range(1_000)]
    data = "name,amount\n" + "\n".join(f"{name},{amount}" for name, amount in rows)
    answer = "| name | amount |\n|---|---|\n" + "\n".join(f"| {name} | {amount:,} |" for name, amount in rows)
    found = check(answer, evidence_of(data))
    assert found.counts["sourced"] == 1_000
    assert MOST_WORK > 1_000


@given(st.text(alphabet="0123456789.,%$€-−()|*`#\n \tkM万xe'/:@\"年及und", max_size=120), st.text(max_size=60))
def test_no_text_raises(answer: str, observed: str):
    found = check(answer, evidence_of(observed, answer), observed)
    spans = sorted((verdict.figure.start, verdict.figure.end) for verdict in found.verdicts)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(0 <= start < end <= len(answer) for start, end in spans)
