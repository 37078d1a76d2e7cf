"""The balance of one figure: how probable it is that it comes from somewhere, against that it comes from nowhere.

Each explanation that fits adds the probability that an author had just that in mind; against them stands the
probability of an invented number of this form. So an accident counts for little: it is one of very many things that
would have fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.extract import Figure

NEGLIGIBLE = 0.02
"""An explanation that is so many times as probable as an accident is not worked out."""
HEDGED = 0.05
"""How far a hedged figure may be off."""
DECADES = 2.0
"""Invented numbers are taken to spread evenly over so many powers of ten around the right size."""
ROUND = 4.0
"""So many times as often as others an invented number is a round one."""
SLIPS = 3e-4
"""Wrong results of the right operands (a row left out, the wrong base) are not spread evenly: a derivation less
probable than this, relative to doubt, is not believed however many digits agree."""
OTHERWISE = 0.05
"""How often ``1.234`` is what the separators of the rest of the answer do not say."""
_EDGE = 1e-9


@frozen
class Reading:
    """A range of values that print as the figure, with the probability of that way of rounding. ``odd``: only if the
    separators mean something else than in the rest of the answer."""

    low: float
    high: float
    weight: float
    odd: bool = False


@frozen
class Recipe:
    """How a value comes about. ``kind``: ``cell``, ``said`` (by the person), ``earlier`` (in an answer), ``column``,
    ``record``, ``count``, ``given`` or ``shown``; ``at``: the places of its operands, as that kind counts them.
    ``value`` is unrounded, in the figure's unit."""

    kind: str
    operation: str
    table: int
    at: tuple[int, ...]
    value: float
    factor: float = 1.0


_LABELS = {"cell": "sourced", "said": "given", "earlier": "sourced"}


@frozen
class Reason:
    """An explanation and its probability."""

    probability: float
    recipe: Recipe

    @property
    def label(self) -> str:
        """``sourced``, ``given`` or ``derived``."""
        return _LABELS.get(self.recipe.kind, "derived")


def readings(figure: Figure) -> tuple[Reading, ...]:
    """The ranges of absolute values that print as ``figure``, by rounding, by other separators, by a hedge."""
    value, step = float(abs(figure.value)), float(figure.step)
    if not math.isfinite(value) or value > 1e300:
        return ()
    found = [_rounded(value, step, 1.0)]
    if figure.other is not None:
        other, fine = figure.other
        found = [_rounded(value, step, 1 - OTHERWISE), _rounded(float(abs(other)), float(fine), OTHERWISE, odd=True)]
    if figure.hedge and value:
        found = [Reading(each.low, each.high, each.weight * 0.6, each.odd) for each in found]
        unit = _round_unit(value, step)
        below, above = min(HEDGED * value, unit), min(HEDGED * value, unit)
        low = value if figure.hedge == "over" else value - below
        high = value if figure.hedge == "under" else value + above
        found.append(Reading(low * (1 - _EDGE), high * (1 + _EDGE), 0.4))
    return tuple(found)


def _rounded(value: float, step: float, weight: float, *, odd: bool = False) -> Reading:
    edge = value * _EDGE
    return Reading(max(0.0, value - step / 2 - edge), value + step / 2 + edge, weight, odd)


def _round_unit(value: float, step: float) -> float:
    """The place value of the last digit that is not 0: 10,000 for 130,000."""
    unit = max(step, 1e-12)
    while unit < value and math.isclose(value / (unit * 10), round(value / (unit * 10)), abs_tol=1e-9):
        unit *= 10
    return unit


def accident(figure: Figure, each: Reading) -> float:
    """The probability that an invented number prints as this one."""
    value = (each.low + each.high) / 2
    if value <= 0:
        return 0.05
    density = min(0.5, (each.high - each.low) / value / (math.log(10) * DECADES))
    if float(figure.step) >= 1 and _round_unit(value, 1.0) * 2 >= value and value >= 50:
        density = min(0.5, density * ROUND)
    return density


class Weighing:
    """Collects explanations of one figure. ``results`` are the readings that a derivation may have, ``work`` counts the
    numbers that were looked at."""

    def __init__(self, figure: Figure, doubt: float, readings: Sequence[Reading]) -> None:
        self.figure = figure
        self.readings = readings
        self.results = [each for each in readings if not each.odd]
        self.doubt = doubt
        self.accident = sum(each.weight * accident(figure, each) for each in self.readings)
        self.work = 0
        self.support = 0.0
        self.derived = 0.0
        self.best: Reason | None = None
        self.least = NEGLIGIBLE * doubt / (1 - doubt) * (self.accident + SLIPS)

    def add(self, probability: float, recipe: Recipe) -> None:
        """Count an explanation that fits."""
        if recipe.kind in _LABELS:
            self.support += probability
        else:
            self.derived += probability
        if self.best is None or probability > self.best.probability:
            self.best = Reason(probability, recipe)

    def copy(self) -> Weighing:
        """Another balance with what was collected so far."""
        other = Weighing(self.figure, self.doubt, self.readings)
        other.support, other.derived, other.best = self.support, self.derived, self.best
        return other

    def fits(self, value: float) -> float:
        """The probability that ``value`` was printed so: 0 when it does not print as the figure."""
        size = abs(value)
        found = 0.0
        for each in self.results:
            if each.low <= size <= each.high:
                found += each.weight
        return found

    @property
    def odds(self) -> float:
        """How many times as probable as an accident the explanations are together."""
        doubt = self.doubt / (1 - self.doubt)
        return self.support / max(doubt * self.accident, 1e-12) + self.derived / max(
            doubt * (self.accident + SLIPS), 1e-12
        )
