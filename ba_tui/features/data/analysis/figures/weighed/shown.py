"""Derivations from figures that the answer itself shows, wherever each of them comes from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.weighed.priors import direction, kind_of
from ba_tui.features.data.analysis.figures.weighed.scope import Scope
from ba_tui.features.data.analysis.figures.weighed.weighing import Recipe, Weighing
from ba_tui.features.data.analysis.figures.words.units import Unit

SENTENCE, BLOCK, AROUND = 0.6, 0.4, 0.1
"""That two figures of the same sentence are meant, of the same block, or of the blocks around; shared by all such
pairs."""
NAMED = 4.0
"""By how much a pair counts more when words name the column of one of them."""
BESIDE = 3.0
"""By how much it counts more that a percentage says what the figure right before it is a part of."""
MOST = 12


@frozen
class Shown:
    """A figure that the answer shows and that comes from somewhere, or the sum of a column: its number, unrounded
    value, place and unit, whether the words around the figure in question name its column, and whether it stands
    right before it: ``96 errors (0.56 %)``."""

    number: int
    value: float
    place: int
    unit: Unit | None
    named: bool = False
    beside: bool = False


def compare(weighing: Weighing, scope: Scope, shown: Sequence[Shown], operations: Mapping[str, float]) -> None:
    """Collect what two shown figures give."""
    _, sentence, block = scope.spans
    nearest = sorted(shown, key=lambda each: abs(each.place - weighing.figure.start))[:MOST]
    if scope.cell:
        nearest = [each for each in nearest if block[0] <= each.place < block[1]]
    if len(nearest) < 2:
        return
    levels = [
        2 if sentence[0] <= each.place < sentence[1] else 1 if block[0] <= each.place < block[1] else 0
        for each in nearest
    ]
    weights = [0.0, 0.0, 0.0]
    for level, share in enumerate((AROUND, BLOCK, SENTENCE)):
        count = sum(each >= level for each in levels)
        weights[level] = (weights[level - 1] if level else 0.0) + (share / (count * (count - 1)) if count > 1 else 0.0)
    pairs = _Pairs(weighing, nearest, levels, weights)
    pairs.all(kind_of(weighing.figure), direction(weighing.figure, scope), operations)


class _Pairs:
    """The pairs of some shown figures, by the value that one of them must have."""

    def __init__(
        self, weighing: Weighing, shown: Sequence[Shown], levels: Sequence[int], weights: Sequence[float]
    ) -> None:
        self.weighing = weighing
        self.shown = shown
        self.levels = levels
        self.weights = weights
        order = sorted((each.value, place) for place, each in enumerate(shown))
        self.values = [value for value, _ in order]
        self.places = [place for _, place in order]

    def all(self, kind: str, way: int, operations: Mapping[str, float]) -> None:
        """Collect what every pair gives that prints as the figure."""
        ratio, across = operations.get("ratio", 0.0), operations.get("across", 0.0)
        if kind == "percent":
            self._scaled("share", operations.get("share", 0.0), 100.0)
            for sign in (way,) if way else (1, -1):
                self._changed(operations.get("pct", 0.0), sign)
        elif kind == "times":
            self._scaled("ratio", ratio, 1.0)
        elif kind == "points":
            unit = self.weighing.figure.unit
            self._shifted("diff", operations.get("diff", 0.0), 1 / unit.factor if unit else 1.0)
        else:
            self._scaled("ratio", ratio + across * 0.5, 1.0)
            self._converted("ratio", across * 0.3)
            self._shifted("diff", operations.get("diff", 0.0))
            self._mirrored("sum", operations.get("sum", 0.0) * 0.7)
            self._multiplied("product", across * 0.2)

    def _scaled(self, name: str, prior: float, factor: float) -> None:
        for reading in self.weighing.results:
            for other, b in enumerate(self.shown):
                for one in self._between(reading.low * b.value / factor, reading.high * b.value / factor):
                    a = self.shown[one]
                    if b.value and (name == "ratio" or (a.value <= b.value and _alike(a, b))):
                        self._add(name, prior * reading.weight, one, other, factor * a.value / b.value)

    def _converted(self, name: str, prior: float) -> None:
        """Ratios whose first operand is converted into the unit of the figure: bytes per row of megabytes."""
        unit = self.weighing.figure.unit
        for one, a in enumerate(self.shown):
            if unit is None or a.unit is None or a.unit.family != unit.family or a.unit.factor == unit.factor:
                continue
            value = a.value * a.unit.factor / unit.factor
            for reading in self.weighing.results:
                for other in self._between(value / reading.high, value / (reading.low or reading.high)):
                    if self.shown[other].value:
                        self._add(name, prior * reading.weight, one, other, value / self.shown[other].value)

    def _changed(self, prior: float, way: int) -> None:
        for reading in self.weighing.results:
            for other, b in enumerate(self.shown):
                low, high = b.value * (1 + way * reading.low / 100), b.value * (1 + way * reading.high / 100)
                for one in self._between(min(low, high), max(low, high)):
                    if b.value and _alike(self.shown[one], b):
                        change = 100 * (self.shown[one].value - b.value) / b.value
                        self._add("pct", prior * reading.weight, one, other, change)

    def _shifted(self, name: str, prior: float, factor: float = 1.0) -> None:
        for reading in self.weighing.results:
            for other, b in enumerate(self.shown):
                for one in self._between(b.value + reading.low / factor, b.value + reading.high / factor):
                    if _alike(self.shown[one], b):
                        self._add(name, prior * reading.weight, one, other, factor * (self.shown[one].value - b.value))

    def _mirrored(self, name: str, prior: float) -> None:
        for reading in self.weighing.results:
            for other, b in enumerate(self.shown):
                for one in self._between(reading.low - b.value, reading.high - b.value):
                    if one < other and _alike(self.shown[one], b):
                        self._add(name, prior * reading.weight, one, other, self.shown[one].value + b.value)

    def _multiplied(self, name: str, prior: float) -> None:
        for reading in self.weighing.results:
            for other, b in enumerate(self.shown):
                if b.value:
                    for one in self._between(reading.low / b.value, reading.high / b.value):
                        if one < other:
                            self._add(name, prior * reading.weight, one, other, self.shown[one].value * b.value)

    def _between(self, low: float, high: float) -> list[int]:
        first = bisect_left(self.values, low)
        return self.places[first : bisect_right(self.values, high, first)]

    def _add(self, name: str, likely: float, one: int, other: int, value: float) -> None:
        if one != other and likely:
            weight = self.weights[min(self.levels[one], self.levels[other])]
            weight *= NAMED if self.shown[one].named or self.shown[other].named else 1.0
            weight *= BESIDE if self.shown[one].beside else 1.0
            recipe = Recipe("shown", name, -1, (self.shown[one].number, self.shown[other].number), value)
            self.weighing.add(weight * likely, recipe)


def _alike(one: Shown, other: Shown) -> bool:
    return _family(one.unit) == _family(other.unit)


def _family(unit: Unit | None) -> str:
    return unit.family if unit else ""
