"""Figures that are not among the first rows of a long result are looked up in its other rows.

A hit is believed when the answer names its row, or when few of so many rows can have such a value by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import Cell, FoundRows
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.figures.verdicts import Checked, Verdict
from ba_tui.features.data.analysis.figures.words.units import PERCENT
from ba_tui.features.data.analysis.grounding.observing import LongResult

MOST_FIGURES, MOST_RESULTS, MOST_ROWS = 16, 8, 5
SECONDS = 2.0
"""For one result."""
BY_ACCIDENT = 0.05
"""Rows that would have such a value by accident, from which on a hit says nothing."""
AROUND = 0.5
"""The width of the range, as a share of its value, within which ``FoundRows.around`` are counted."""
NEAR = 300
"""Characters around a figure in which its row may be named."""
LEAST_NAME = 3
LARGEST = 1e300


@frozen
class Wanted:
    """A range of values in which a figure of the answer may have been written as it is. ``near``: the words around."""

    low: float
    high: float
    near: str


async def rows_for(
    answer: str, checked: Checked, long: Sequence[LongResult], engine: Analysis
) -> Mapping[str, Mapping[int, Sequence[Cell]]]:
    """The rows of ``long`` results that hold unsourced figures of ``answer``, by handle and place."""
    unsourced = [verdict for verdict in checked.verdicts if verdict.unfounded][:MOST_FIGURES]
    wanted = [each for verdict in unsourced for each in _wanted(verdict, answer)]
    if not wanted:
        return {}
    ranges = [(each.low, each.high) for each in wanted]
    rows: dict[str, Mapping[int, Sequence[Cell]]] = {}
    for result in [*reversed(long)][:MOST_RESULTS]:
        try:
            found = await engine.find(result.name, ranges, most=MOST_ROWS, timeout=SECONDS)
        except BaError:
            # What can't be looked up stays unsourced.
            continue
        if believed := _believed(found, wanted):
            rows[result.name] = believed
    return rows


def _wanted(verdict: Verdict, answer: str) -> list[Wanted]:
    figure = verdict.figure
    if not figure.value.is_finite() or abs(figure.value) > LARGEST:
        return []
    near = answer[max(0, figure.start - NEAR) : figure.end + NEAR].casefold()
    low, high = float(figure.value - figure.step / 2), float(figure.value + figure.step / 2)
    found = [(low, high)]
    if figure.unit == PERCENT:
        found.append((low / 100, high / 100))
    if not figure.sign:
        found += [(-high, -low) for low, high in found]
    return [Wanted(low, high, near) for low, high in found]


def _believed(found: Sequence[FoundRows], wanted: Sequence[Wanted]) -> Mapping[int, Sequence[Cell]]:
    expected = [0.0] * len(wanted)
    for each in found:
        expected[each.range] += _expected(each, wanted[each.range])
    rows: dict[int, Sequence[Cell]] = {}
    for each in found:
        few = expected[each.range] < BY_ACCIDENT
        near = wanted[each.range].near
        held = zip(each.numbers, each.rows, strict=True)
        rows.update((number, row) for number, row in held if few or _is_named(row, near))
    return rows


def _expected(found: FoundRows, wanted: Wanted) -> float:
    """How many rows would have a value of the range if values lay evenly around it."""
    size = max(abs(wanted.low), abs(wanted.high))
    return found.around * (wanted.high - wanted.low) / (AROUND * size) if size else float(found.around)


def _is_named(row: Sequence[Cell], near: str) -> bool:
    return any(isinstance(cell, str) and len(cell) >= LEAST_NAME and cell.casefold() in near for cell in row)
