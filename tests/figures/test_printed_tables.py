"""A table means the same in each form in which people and programs print it, and a figure belongs to a place in it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.text.figures import FigureSource, FigureVerdict
from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.verdicts import CheckedAnswer

TATQA = Path(__file__).parents[3] / "shared" / "data" / "tatqa" / "tatqa_dataset_dev.json.xz"
FORMS = ("aligned", "markdown", "csv", "tabs", "semicolons", "json", "html")
REPORT = (
    ("", "Season ended May 31,", "", ""),
    ("", "2025", "2024", "2023"),
    ("(in thousands)", "", "", ""),
    ("Orchards:", "", "", ""),
    ("Apples", "$ 4,210", "$ 3,655", "$ 3,902"),
    ("Pears", "1,118", "1,240", "987"),
    ("Storage losses", "(312)", "(275)", "—"),
    ("Total orchards", "$ 5,016", "$ 4,620", "$ 4,889"),
    ("Share of exports", "38.5%", "41.2%", "36.0%"),
)


def printed(rows: Sequence[Sequence[str]], form: str) -> str:
    match form:
        case "markdown":
            lines = ["| " + " | ".join(row) + " |" for row in rows]
            return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
        case "json":
            return json.dumps(rows)
        case "html":
            cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
            return "<table>" + "".join(f"<tr>{row}</tr>\n" for row in cells) + "</table>"
        case "aligned":
            sizes = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
            return "\n".join("  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)) for row in rows)
        case _:
            out = io.StringIO()
            csv.writer(out, delimiter={"csv": ",", "tabs": "\t", "semicolons": ";"}[form]).writerows(rows)
            return out.getvalue()


def checked(answer: str, *results: str, prompt: str = "How were the seasons?") -> CheckedAnswer:
    evidence = Evidence()
    evidence.add_words(prompt)
    for number, text in enumerate(results, 1):
        evidence.add(f"R{number}", text)
    return check(answer, evidence, prompt)


def labels(found: CheckedAnswer) -> list[str]:
    return [verdict.label for verdict in found.verdicts]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Apples brought 4,210 thousand in 2025.", "sourced"),
        ("Apples brought $4.21 million in 2025.", "sourced"),
        ("Storage losses were 312 in 2025.", "sourced"),
        ("Apples grew by 15.18% from 2024 to 2025.", "derived"),
        ("The average of pears in 2024 and 2025 was 1,179 thousand.", "derived"),
        ("Apples rose by 555 from 2024 to 2025.", "derived"),
        ("Exports fell by 2.7 percentage points from 2024 to 2025.", "derived"),
        ("Apples brought 4,215 thousand in 2025.", "unsourced"),
        ("Apples grew by 16.18% from 2024 to 2025.", "unsourced"),
        ("Apples brought 3,655 in 2025.", "misplaced"),
        ("Pears brought 4,210 in 2025.", "misplaced"),
    ],
)
def test_a_figure_is_judged_alike_in_every_form(form: str, answer: str, label: str) -> None:
    *limit, count = labels(checked(answer, printed(REPORT, form)))
    assert count == label
    assert "unsourced" not in limit


@pytest.mark.parametrize("form", FORMS)
def test_numbers_in_front_of_the_lines_of_a_file_are_no_part_of_its_table(form: str) -> None:
    lines = (printed(REPORT, form) + "\n\nSource: the ledger.").splitlines()
    numbered = "\n".join(f"{at}\t{line}" for at, line in enumerate(lines, 1))
    found = checked(
        "Apples grew by 15.18% from 2024 to 2025, to 4,210 thousand. Pears brought 1,240 in 2025.", numbered
    )
    assert labels(found) == ["derived", "sourced", "misplaced"]
    (source,) = found.verdicts[1].sources
    assert numbered[source.start : source.end] == "4,210"


def test_a_misplaced_figure_names_both_places() -> None:
    (verdict,) = checked("Apples brought 3,655 in 2025.", printed(REPORT, "markdown")).verdicts
    found, named = verdict.sources
    assert (found.value, found.row) == (3655, "Apples / Orchards")
    assert "2024" in found.column
    assert (named.value, named.row) == (4210, "Apples / Orchards")
    assert "2025" in named.column


@pytest.mark.parametrize(
    "answer",
    [
        "Apples brought 4,210, up from 3,655 the year before.",
        "In 2025 apples brought 4,210 after 3,655.",
        "Orchards brought 5,016 in total in 2025.",
        "3,655 is what was left.",
    ],
)
def test_a_figure_is_not_misplaced_when_its_place_may_be_meant(answer: str) -> None:
    assert "misplaced" not in labels(checked(answer, printed(REPORT, "markdown")))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("How many years did apples exceed 3,700 thousand: 2.", "derived"),
        ("How many years did apples exceed 3,700 thousand: 3.", "unsourced"),
        ("How many years did apples exceed $3.7 million: 1.", "unsourced"),
        ("Number of years with pears below 1,000 thousand: 1.", "derived"),
        ("Number of years with pears not below 1,000 thousand: 2.", "unsourced"),
        ("Number of years in which the share of exports was over 38%: 2.", "derived"),
        ("The number of lines of the orchards below 1,200 thousand in 2025: 2.", "derived"),
        ("The number of lines of the orchards is 3.", "derived"),
    ],
)
def test_a_count_is_of_the_values_that_the_sentence_names(form: str, answer: str, label: str) -> None:
    *limit, count = labels(checked(answer, printed(REPORT, form)))
    assert count == label
    assert "unsourced" not in limit


@pytest.mark.parametrize("form", FORMS)
def test_a_year_in_the_head_of_a_column_is_no_figure(form: str) -> None:
    found = checked("Apples brought 4,210 thousand in 2025, 15.18% more than 2024.", printed(REPORT, form))
    assert [verdict.figure.text for verdict in found.verdicts] == ["4,210 thousand", "15.18"]


STAFF = (
    ("Seller", "Deals", "Volume", "Region", "Volume as planned", "Returns 2025 over 2024"),
    ("Haldis", "31", "98,250", "North", "97,100", "12"),
    ("Imre", "22", "74,100", "South", "81,400", "17"),
    ("Jolanta", "19", "70,300", "South-east", "66,950", "5"),
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Haldis leads with 31 deals worth 98,250, ahead of Imre (74,100).", ["sourced", "sourced", "sourced"]),
        ("Haldis leads with a volume of 74,100.", ["misplaced"]),
        ("The volume as planned of Imre is 74,100.", ["misplaced"]),
        ("The volume of Imre is 81,400.", ["sourced"]),
        ("The returns of Imre grew by 17 from 2024 to 2025.", ["sourced"]),
        ("Imre sold 74,100, in plot 31 of the fair.", ["sourced", "sourced"]),
        ("Per deal, Jolanta came to 66,950 or 70,300.", ["sourced", "sourced"]),
    ],
)
def test_words_of_other_figures_and_places_say_nothing_of_a_figure(answer: str, expected: list[str]) -> None:
    assert labels(checked(answer, printed(STAFF, "csv"))) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The change is 15.18% ((4,210 − 3,655) / 3,655).", ["derived", "sourced", "sourced", "sourced"]),
        ("The mean is 3,922.33 ((4,210 + 3,655 + 3,902) / 3).", ["derived", "sourced", "sourced", "sourced"]),
        ("4,210 + 1,118 = 5,328", ["sourced", "sourced", "derived"]),
        ("The mean is 3,992.33 ((4,210 + 3,655 + 3,902) / 3).", ["unsourced", "sourced", "sourced", "sourced"]),
        ("The change is 12.4% ((4,210 − 3,745) / 3,745).", ["unsourced", "sourced", "unsourced", "unsourced"]),
    ],
)
def test_arithmetic_that_the_answer_shows_is_worked_out(answer: str, expected: list[str]) -> None:
    found = labels(checked(answer, printed(REPORT, "csv")))
    assert found[: len(expected)] == expected


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("oven,temp_c\nA,480\nB,455\n", "Oven A reached 480 °C (896 °F)."),
        ("5120\tbackup\n700\tmail\n", "The backup takes 5,120 KiB (5 MiB)."),
        ('{"cart": "C2", "speed_ms": 2.5}', "The cart ran at 2.5 m/s, about 9 km/h."),
        ("desk,weeks\nEast,8.5\n", "East waits 8.5 weeks (about 60 days)."),
    ],
)
def test_the_same_quantity_in_another_unit_is_derived(result: str, answer: str) -> None:
    assert "unsourced" not in labels(checked(answer, result))


def test_a_wrong_conversion_is_found() -> None:
    found = checked("Oven A reached 480 °C (912 °F).", "oven,temp_c\nA,480\nB,455\n")
    assert labels(found) == ["sourced", "unsourced"]


def test_whole_numbers_are_compared_exactly() -> None:
    assert labels(checked("The code sold 700123459 times.", "code,sold\nX,700123458\n")) == ["unsourced"]
    assert labels(checked("The code sold 700123458 times.", "code,sold\nX,700123458\n")) == ["sourced"]


def test_without_any_result_nothing_is_called_unsourced() -> None:
    found = checked("Water boils at 100 °C, iron melts at 1,538 °C.")
    assert set(labels(found)) == {"unchecked"}
    assert {verdict.note for verdict in found.verdicts} == {"no result to check against"}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("  812 src/a.py\n  300 src/b.py\n  120 doc/x\n  450 doc/y\n 1682 total\n", "src has 1,112 lines in 2 files."),
        ("Job 12 finished in 7m 5s\nlint 85 s\n", "The job ran 7m 5s, of which 85 s (20%) were lint."),
        ("yes 0.4108\nno 0.5892\n", "About 2 in 5 say yes (41.1%)."),
        ("crew,built,weeks\nA,540,2\nB,3,5\n", "Crew A built 540 in 2 weeks, crew B built 3 in 5 weeks."),
        ("country area\nPeru 1.285e+6\n", "The area is 1.285 × 10⁶ km²."),
        (
            "m1 | 2 files changed, 31 insertions(+), 18 deletions(-)\n"
            "m2 | 5 files changed, 90 insertions(+), 44 deletions(-)\n",
            "The second has 5 files, +90 / −44.",
        ),
        (
            "year,v\n1990,400\n1995,500\n2005,1000\n2010,900\n",
            "From 500 in 1995 to 1,000 in 2005: 7.2% a year over 10 years.",
        ),
    ],
)
def test_figures_of_common_printouts_have_a_source(result: str, answer: str) -> None:
    assert "unsourced" not in labels(checked(answer, result))


def test_letters_that_are_longer_in_lower_case_leave_the_places_in_a_html_table_as_they_are() -> None:
    page = "İzmir, İstanbul, İznik\n" * 60 + printed(REPORT, "html")
    assert labels(checked("Apples brought 4,210 in 2025.", page)) == ["sourced"]
    (place,) = checked("Apples brought 4,210 in 2025.", page).verdicts[0].sources
    assert (page[place.start : place.end], place.row) == ("4,210", "Apples / Orchards")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1_001, 99_999), min_size=3, max_size=3),
        min_size=3,
        max_size=5,
        unique_by=lambda row: row[0],
    ),
    st.sampled_from(FORMS),
    st.data(),
)
def test_true_statements_are_sourced_and_those_with_a_slip_are_not(
    values: list[list[int]], form: str, data: st.DataObject
) -> None:
    names = ("Harbour", "Quarry", "Brewery", "Tannery", "Foundry")[: len(values)]
    rows = [("", "2021", "2022", "2023"), *((name, *map(str, row)) for name, row in zip(names, values, strict=True))]
    row = data.draw(st.integers(0, len(values) - 1))
    year = data.draw(st.integers(0, 2))
    true = values[row][year]
    result = printed(rows, form)
    sentence = f"{names[row]} made {{:,}} in {2021 + year}."
    assert labels(checked(sentence.format(true), result)) == ["sourced"]
    slip = true + data.draw(st.sampled_from((1, 20, 300)))
    held = {value for each in values for value in each}
    if slip not in held:
        assert labels(checked(sentence.format(slip), result)) != ["sourced"]


@pytest.mark.outside
@pytest.mark.timeout(240)
def test_figures_of_public_financial_reports_are_recognised(tmp_path: Path) -> None:
    if not TATQA.exists():
        pytest.skip("the reports lie beside the checkout, and are absent here")
    found = tatqa(TATQA, tmp_path, each=4)
    assert found["good"] >= 0.92
    assert found["slip"] >= 0.965
    assert found["misplaced"] >= 0.78
    assert found["miscount"] >= 0.8
    assert found["good called misplaced"] <= 0.005


def tatqa(dataset: Path, folder: Path, *, each: int = 1) -> dict[str, float]:
    """The parts of TAT-QA's cases (one of ``each``) that are judged right, by their kind."""
    cases = folder / "cases.jsonl"
    subprocess.run([sys.executable, dataset.parent / "build.py", dataset, cases], check=True, capture_output=True)
    counts: dict[str, list[bool]] = {}
    for line in cases.read_text("utf-8").splitlines()[::each]:
        case = json.loads(line)
        evidence = Evidence()
        evidence.add_words(case["prompt"])
        for seen in case["observations"]:
            evidence.add(seen["call"], seen["text"], seen["input"])
        verdicts = check(case["answer"], evidence, case["prompt"]).verdicts
        label = next((found.label for found in verdicts if found.figure.end > case["start"]), "none")
        supported = label in {"sourced", "derived", "given"}
        counts.setdefault(case["kind"], []).append(supported is (case["kind"] == "good"))
        if case["kind"] == "good":
            counts.setdefault("good called misplaced", []).append(label == "misplaced")
    return {kind: sum(right) / len(right) for kind, right in counts.items()}


def test_the_reason_of_a_misplaced_figure_says_what_the_right_one_is() -> None:
    same_row = (
        FigureSource("R1", 3655, column="2024", row="Apples"),
        FigureSource("R1", 4210, column="2025", row="Apples"),
    )
    same_column = (FigureSource("R1", 1118, column="2025", row="Pears"), same_row[1])
    neither = (FigureSource("R1", 1240, column="2024", row="Pears"), same_row[1])
    found = [FigureVerdict("x", 0, 1, "misplaced", sources=each).reason for each in (same_row, same_column, neither)]
    assert found == [
        "this is 2024; 2025 is 4,210 (R1)",
        "this is Pears; Apples is 4,210 (R1)",
        "this is Pears, 2024; Apples, 2025 is 4,210 (R1)",
    ]
