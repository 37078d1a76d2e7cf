"""The cells that print as a figure, after rounding and conversion of units."""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.weighed.candidates import Candidate
from ba_tui.features.data.analysis.figures.weighed.weighing import Recipe, Weighing
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.units import YEARS, factors

BROKEN_COUNT = 0.1
"""That a small whole number without a unit is a rounded one: it rather counts something."""
MOST_HITS = 500
"""Cells of a table that are weighed one by one; they stand for the others that print alike."""
NO_AGE = 0.2
"""That a figure in years stands in a column whose name speaks of no time."""
_AGES = listed("age ages life lifeexp tenure duration years year time span old alter dauer 年龄 寿命 edad vida")


def cells(weighing: Weighing, evidence: Evidence, found: Candidate, operations: Mapping[str, float]) -> None:
    """Collect the cells of a table that print as the figure."""
    figure, table, focus = weighing.figure, found.table, found.focus
    prior = found.likely * operations.get("cell", 0.0)
    summed = prior + found.likely * operations.get("sum", 0.0)
    counted = figure.unit is None and figure.step == 1 and abs(figure.value) < 1000
    columns = table.columns
    for held in found.units:
        for factor, share in factors(figure.unit, held, figure.scale):
            for reading in weighing.readings:
                hits = evidence.within(found.number, reading.low / factor, reading.high / factor)
                share *= max(1.0, len(hits) / MOST_HITS)
                weighing.work += min(len(hits), MOST_HITS)
                for size, at, row in hits[:MOST_HITS]:
                    column = columns[at]
                    value = column.values[row]
                    if column.unit != held or (figure.sign and value and (value < 0) != (figure.sign == "-")):
                        continue
                    weight = (summed if row in table.totals else prior) * share * reading.weight
                    weight *= focus.columns[at] * focus.rows[row]
                    if figure.unit is YEARS and not column.time and not _AGES.intersection(column.words):
                        weight *= NO_AGE
                    if counted and size % 1:
                        weight *= BROKEN_COUNT
                    weighing.add(weight, Recipe("cell", "", found.number, (at, row), value * factor, factor))
