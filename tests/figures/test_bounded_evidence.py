"""The evidence of a long session: bounded by what it holds, and honest about what it dropped."""

from __future__ import annotations

import pytest

from ba_tui.core.events import ToolFinished, ToolStarted
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import Table, ToolResult
from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import MOST_SAID, MOST_VERDICTS, Evidence, _weight
from ba_tui.features.figures.session_evidence import MOST_OPEN, MOST_RESULTS, EvidenceFeed
from ba_tui.features.figures.verdicts import DROPPED, CheckedAnswer, Verdict, VerdictSource

ROWS = 40
ROOM = 2_000
READS = 60
"""Results that are more than the evidence holds."""


def report(number: int) -> str:
    return "branch,sales\n" + "".join(f"Branch {number}-{row},{100_003 + number * ROWS + row}\n" for row in range(ROWS))


def weight(evidence: Evidence) -> int:
    return sum(map(_weight, evidence.places))


@pytest.fixture(scope="module")
def full() -> Evidence:
    evidence, most = Evidence(ROOM), 0
    evidence.add_words(
        "We sold 777,123 units.\n\n| month | units |\n|---|---|\n| May | 555,321 |\n| June | 555,999 |\n"
    )
    for number in range(READS):
        evidence.add(f"read_file#{number}", report(number), {"path": f"part{number}.csv"})
        most = max(most, evidence._weight)
    assert most <= ROOM + 4 * ROWS
    return evidence


def test_what_is_held_does_not_grow_with_the_session(full: Evidence) -> None:
    assert full.dropped
    assert weight(full) == full._weight <= ROOM
    assert max(number for numbers in full.by_call.values() for number in numbers) == len(full.places) - 1
    assert {place.table.call for place in full.places} == set(full.by_call)
    assert full.topics.keys() <= {name for place in full.places for name in place.topic}


@pytest.mark.parametrize(
    ("answer", "label", "note"),
    [
        (f"Branch {READS - 1}-5 sold {100_003 + (READS - 1) * ROWS + 5:,}.", "sourced", ""),
        ("In May it was 555,321 units.", "given", ""),
        ("You sold 777,123 units.", "given", ""),
        (f"Branch 0-5 sold {100_003 + 5:,}.", "unchecked", DROPPED),
        ("It came to 3,918,273 in all.", "unchecked", DROPPED),
    ],
)
def test_nothing_is_called_unsourced_once_results_were_dropped(
    full: Evidence, answer: str, label: str, note: str
) -> None:
    verdict = check(answer, full).verdicts[-1]
    assert (verdict.label, verdict.note) == (label, note)
    assert verdict.unfounded == (label == "unchecked")


def test_without_a_drop_a_made_up_figure_is_unsourced() -> None:
    evidence = Evidence()
    evidence.add("read_file#1", report(1))
    assert check("It came to 3,918,273 in all.", evidence).verdicts[0].label == "unsourced"


def test_words_and_verdicts_are_bounded_too() -> None:
    evidence = Evidence()
    for _ in range(3):
        evidence.add_words(" ".join(f"{number}.5 kg" for number in range(MOST_SAID // 2 + 1)))
    assert evidence.dropped
    assert 1_000 < len(evidence.said.figures) <= MOST_SAID
    figures = evidence.said.figures[:1_000]
    for _ in range(MOST_VERDICTS // 1_000 + 3):
        evidence.add_checked(
            CheckedAnswer(tuple(Verdict(each, "sourced", (VerdictSource("a", 0, 1, 1.0),)) for each in figures), ())
        )
    assert len(evidence.verdicts) <= MOST_VERDICTS + 1_000
    assert all(at < len(evidence.verdicts) for at in evidence.earlier.values())


def test_a_session_of_many_calls_keeps_names_of_what_is_held() -> None:
    seen = EvidenceFeed(lambda ref: "")
    for number in range(MOST_OPEN + 200):
        # The first ones have no end: their turn was interrupted.
        seen.apply(ToolStarted(ToolUse(f"open{number}", "read_file", {})))
    for number in range(3 * MOST_RESULTS):
        use = ToolUse(f"c{number}", "query_data", {"sql": f"select {number}"})
        table = Table(("a",), ((number + 0.5,),), handle=f"R{number}", total=1)
        seen.apply(ToolStarted(use))
        seen.apply(ToolFinished(use.id, ToolResult("", table)))
    assert len(seen._started) <= MOST_OPEN
    assert len(seen._results) == MOST_RESULTS
    assert seen.long == []
    # Once the evidence has dropped them, the rows of result tables can be looked up.
    seen.evidence._begin()
    assert [each.name for each in seen.long] == [f"R{number}" for number in range(2 * MOST_RESULTS, 3 * MOST_RESULTS)]
    for number in range(1_000):
        use = ToolUse(f"d{number}", "shell", {})
        seen.apply(ToolStarted(use))
        seen.apply(ToolFinished(use.id, ToolResult("nothing")))
    assert len(seen.calls) <= 4 * MOST_RESULTS
    assert seen.tables <= seen.calls.keys()
