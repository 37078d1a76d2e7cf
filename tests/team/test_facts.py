"""Facts at the end of reports, as models write them."""

from __future__ import annotations

import pytest

from ba_tui.features.teams.engine.conflicts import StatedFact, facts_in, figure_of

LINES = (
    "North leads.\n\nFacts:\n- orders: 412 (confidence 0.9)\n* **Best region**: North [confidence: 80%]\n1. x = $5\n"
)


def test_a_block_of_lines_is_taken_off_the_report() -> None:
    body, facts = facts_in(LINES)
    assert body == "North leads."
    assert list(facts) == [
        StatedFact("orders", "412", 0.9),
        StatedFact("best_region", "North", 0.8),
        StatedFact("x", "$5", 0.5),
    ]


def test_what_follows_the_block_stays_in_the_report() -> None:
    assert facts_in(f"{LINES}\nThat is all.")[0] == "North leads.\n\nThat is all."


@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_json_is_read_as_well(fence: str) -> None:
    end = "\n```" if fence else ""
    text = f'North leads.\n{fence}{{"facts": [{{"key": "Orders in March", "value": 412}}, 3, {{"key": "y"}}]}}{end}'
    assert facts_in(text) == ("North leads.", (StatedFact("orders_in_march", 412),))


@pytest.mark.parametrize(
    "report",
    [
        "",
        "Facts are stubborn things: they stay.",
        "Facts:\n\nThere are none.",
        '{"facts": "none"}',
        '{"facts": [',
        "Facts:" * 10_000,
    ],
)
def test_a_report_without_facts_comes_back_as_it_is(report: str) -> None:
    assert facts_in(report) == (report, ())


def test_facts_are_bounded() -> None:
    report = "Facts:\n" + "\n".join(f"- key {number}: {'v' * 1_000}" for number in range(1_000))
    facts = facts_in(report)[1]
    assert len(facts) == 50
    assert all(len(str(fact.value)) <= 300 for fact in facts)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("1,240 EUR", 1240, "eur"),
        ("€1'240.50", 1240.5, "eur"),
        ("1.2 million EUR", 1_200_000, "eur"),
        ("about 12%".removeprefix("about "), 12, "%"),
        ("-3", -3, ""),
        (7, 7, ""),
    ],
)
def test_figures_have_a_number_and_a_unit(text: object, number: float, unit: str) -> None:
    found = figure_of(text)
    assert found
    assert (found.number, found.unit) == (number, unit)


@pytest.mark.parametrize("text", ["2026-03-01", "10:30", "North", True, "", "3 and 4", None])
def test_words_dates_and_times_are_no_figures(text: object) -> None:
    assert figure_of(text) is None
