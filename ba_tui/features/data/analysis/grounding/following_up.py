"""The words with which a model is asked once to check its unsourced figures; the nearest known numbers stand beside."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence

MOST, NEAREST, WITHIN = 20, 3, 0.1
"""Figures that are named, numbers named for each, and how far these may be away, as a share of the figure."""
AROUND = 40
MOST_TABLES = 200
LEAD = (
    "These figures of your answer are in nothing that the tools returned in this session, and they do not follow from "
    "it by simple arithmetic:"
)
ASK = (
    "Check each one. Correct it from the results, call a tool to find it, or leave it out and say that it is not "
    "known. Then give the whole corrected answer again, as if it were the first, without a word about this check."
)


def follow_up(answer: str, report: FigureReport, evidence: Evidence) -> str:
    """The note for the model."""
    unsourced = report.unsourced
    lines = [_line(answer, verdict, evidence) for verdict in unsourced[:MOST]]
    if len(unsourced) > MOST:
        lines.append(f"- and {len(unsourced) - MOST} more")
    return "\n".join([LEAD, *lines, ASK])


def _line(answer: str, verdict: FigureVerdict, evidence: Evidence) -> str:
    start, end = max(0, verdict.start - AROUND), verdict.end + AROUND
    near = nearest(verdict.value, evidence)
    said = f"; the nearest numbers are {', '.join(near)}" if near else ""
    return f"- {one_line(verdict.text, 60)} in “{one_line(answer[start:end], 2 * AROUND + 60)}”{said}"


def nearest(value: float | None, evidence: Evidence) -> Sequence[str]:
    """The numbers of the evidence that are closest to ``value``, each with its place."""
    if not value:
        return ()
    size = abs(value)
    low, high = size * (1 - WITHIN), size * (1 + WITHIN)
    found = [
        (abs(held - size), number, column, row)
        for number in [*evidence.holding(low, high)][-MOST_TABLES:]
        for held, column, row in evidence.within(number, low, high)
    ]
    named: list[str] = []
    for _, number, column, row in sorted(found):
        table = evidence.place(number).table
        held = table.columns[column]
        where = " · ".join(part for part in (table.call, held.name, *table.labels[row]) if part)
        text = f"{held.values[row]:.15g} ({one_line(where, 80)})"
        if text not in named:
            named.append(text)
        if len(named) == NEAREST:
            break
    return named
