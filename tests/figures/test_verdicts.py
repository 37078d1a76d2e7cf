"""Which figures of an answer are found in what tools returned, derived from it, given by the user, or unsourced."""

from __future__ import annotations

import pytest

from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.verdicts import CheckedAnswer, Verdict, verdicts_json

SALES = "region,sales,cost\nNorth,48210,31500\nSouth,39877,28114\nEast,52304,30991\nWest,21950,19642\n"


def checked(answer: str, *observations: str, prompt: str = "How are sales?") -> CheckedAnswer:
    evidence = Evidence()
    evidence.add_words(prompt)
    for number, text in enumerate(observations or (SALES,), 1):
        evidence.add(f"R{number}", text, "SELECT region, sales, cost FROM sales")
    return check(answer, evidence, prompt)


def labels(answer: str, *observations: str, prompt: str = "How are sales?") -> list[tuple[str, str]]:
    found = checked(answer, *observations, prompt=prompt)
    return [(verdict.figure.text, verdict.label) for verdict in found.verdicts]


def only(answer: str, *observations: str, prompt: str = "How are sales?") -> Verdict:
    (verdict,) = checked(answer, *observations, prompt=prompt).verdicts
    return verdict


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Sales in the North were 48,210.", "48,210"),
        ("Im Norden lag der Umsatz bei 48.210 Euro.", "48.210"),
        ("North 的销售额为 4.821万。", "4.821万"),
        ("North sold 48.2k.", "48.2k"),
        ("North sold about 48,000.", "48,000"),
        ("North sold ４８２１０.", "４８２１０"),
        ("North sold **48,210**.", "48,210"),
    ],
)
def test_a_figure_is_found_in_its_cell_however_it_is_written(answer: str, text: str):
    verdict = only(answer)
    assert (verdict.figure.text, verdict.label) == (text, "sourced")
    (source,) = verdict.sources
    assert (source.call, source.column, source.row) == ("R1", "sales", "North")
    assert SALES[source.start : source.end] == "48210"


@pytest.mark.parametrize(
    ("answer", "operation"),
    [
        ("Total sales were 162,341.", "sum"),
        ("Average sales per region were 40,585.25.", "avg"),
        ("East is 137% ahead of ... no: East sold 2.4 times as much as West.", "ratio"),
        ("East had 30,354 more sales than West.", "diff"),
        ("The North has a share of 29.7% of all sales.", "share"),
    ],
)
def test_arithmetic_that_people_expect_is_derived(answer: str, operation: str):
    verdict = checked(answer).verdicts[-1]
    assert verdict.label == "derived", verdict
    assert verdict.derivation is not None
    assert operation in verdict.derivation.text
    assert verdict.calls == ("R1",)


@pytest.mark.parametrize(
    "answer",
    [
        "Sales in the North were 48,120.",
        "Total sales were 163,241.",
        "Sales in the North grew by 12.4% on last year.",
        "The customer satisfaction is 87.3%.",
    ],
)
def test_what_no_tool_returned_is_unsourced(answer: str):
    assert [label for _, label in labels(answer)] == ["unsourced"]


def test_what_the_person_said_is_given():
    assert labels("Only East is above your target of 50,000.", prompt="Which region is above our target of 50000?") == [
        ("50,000", "given")
    ]


def test_digits_that_are_no_figures_are_told_apart_with_their_reason():
    answer = "1. On 2024-03-05 version 2.3.1 of `sales_v2.py` ran.\n2. See [3] and report.csv for Q4."
    found = checked(answer)
    assert found.verdicts == ()
    assert {answer[each.start : each.end]: each.reason for each in found.apart} == {
        "1": "list_number",
        "2024-03-05": "date",
        "2.3.1": "version",
        "`sales_v2.py`": "code",
        "2": "list_number",
        "[3]": "id",
        "Q4": "period",
    }


def test_of_sources_that_contradict_each_other_either_will_do():
    second = "region,sales\nNorth,99001\n"
    assert labels("North sold 99,001.", SALES, second) == [("99,001", "sourced")]
    assert labels("North sold 48,210.", SALES, second) == [("48,210", "sourced")]


def test_an_earlier_answer_may_be_repeated():
    evidence = Evidence()
    evidence.add_words("How are sales?")
    evidence.add("R1", SALES)
    evidence.add_checked(check("Total sales were 162,341.", evidence))
    evidence.add_words("And in short?")
    (verdict,) = check("In total 162,341.", evidence).verdicts
    assert verdict.label == "derived"


def test_values_serve_as_evidence_like_text():
    evidence = Evidence()
    evidence.add_words("How are sales?")
    evidence.add_table("R7", ["region", "sales"], [["North", 48210.0], ["South", 39877.0]])
    (verdict,) = check("North sold 48,210.", evidence).verdicts
    assert (verdict.label, verdict.sources[0].call, verdict.sources[0].row) == ("sourced", "R7", "North")


def test_serialized_verdicts_name_calls_places_and_reasons():
    found = verdicts_json(checked("In 2024-05 North sold 48,210 of 162,341."))
    assert found["counts"] == {"sourced": 1, "derived": 1}
    date, cell, total = found["figures"]
    assert (date["label"], date["note"]) == ("not_a_figure", "date")
    assert cell["source"] == ["R1"]
    assert cell["sources"] == [
        {"call": "R1", "value": 48210.0, "start": 24, "end": 29, "column": "sales", "row": "North"}
    ]
    assert total["value"] == 162341
    assert total["derivation"].endswith("= 162341")
