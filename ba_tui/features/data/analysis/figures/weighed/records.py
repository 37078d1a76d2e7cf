"""Derivations across the columns of one row, or of the sums of columns: a rate, a share, a price per piece."""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.features.data.analysis.figures.observed.fields import SUMS, Fields
from ba_tui.features.data.analysis.figures.weighed.focus import Focus
from ba_tui.features.data.analysis.figures.weighed.priors import direction, kind_of
from ba_tui.features.data.analysis.figures.weighed.scope import Scope
from ba_tui.features.data.analysis.figures.weighed.weighing import Reading, Recipe, Weighing
from ba_tui.features.data.analysis.figures.words.units import Unit

MOST_COLUMNS = 5
MOST_FIELDS = 10
"""Columns that are compared: of a table, and of a single record."""
MOST_ACROSS = 60
"""Columns that are added up."""
MOST_ADDED = 40
"""Rows whose columns are added up."""
_SPEEDS = (60.0, 3600.0, 1.0)
_RATES = {("length", "time"): _SPEEDS, ("bytes", "time"): (1.0,)}
"""By what a ratio of such columns is multiplied for a usual unit of speed."""


class Records:
    """The derivations of one figure from rows of one table."""

    def __init__(self, weighing: Weighing, fields: Fields, focus: Focus, scope: Scope) -> None:
        self.weighing = weighing
        self.fields = fields
        self.table = fields.table
        self.focus = focus
        self.single = self.table.rows == 1
        self.direction = direction(weighing.figure, scope)
        self.share = "share" in scope.near.hints
        self.per = "per" in scope.near.hints or "per" in scope.sentence.hints
        most = MOST_FIELDS if self.single else MOST_COLUMNS
        self.columns = sorted(fields.plain, key=lambda at: -focus.columns[at])[:most]
        self.sums = 0.4 if scope.near.hints & {"sum", "mean", "share"} else 0.15
        if focus.rows.near:
            self.sums *= 0.2
        self.powers: tuple[float, ...] = ()
        self.prior = 0.0
        self.reading = Reading(0.0, 0.0, 0.0)

    def all(self, prior: float, operations: Mapping[str, float], number: int, powers: tuple[float, ...] = ()) -> None:
        """Collect every derivation. ``prior``: that this table is meant; ``powers``: rates may be per so many."""
        self.powers = powers
        if len(self.columns) < 2:
            return
        kind = kind_of(self.weighing.figure)
        count = len(self.columns)
        weights = self.focus.columns
        for each in self.weighing.results:
            self.prior, self.reading = prior * each.weight, each
            for x in self.columns:
                for y in self.columns:
                    if x != y:
                        pair = weights[x] * weights[y] + 0.8 / (count * (count - 1))
                        self._compare(kind, pair, operations, (number, x, y))
            if self.fields.alike:
                self._whole(kind, operations, number)

    def _row(self, row: int) -> float:
        return self.sums if row == SUMS else self.focus.rows[row]

    def _compare(self, kind: str, pair: float, operations: Mapping[str, float], key: tuple[int, int, int]) -> None:
        single = self.single
        across = operations.get("across", 0.0)
        if kind == "percent":
            share, change = operations.get("share", 0.0), operations.get("pct", 0.0)
            alike = not single and self.fields.comparable(key[1], key[2])
            self._find("ratio", "share", (share if single else across * 0.6 + share * 0.25) * pair, key, 100.0)
            self._change((change if single else across * 0.3 + change * (0.4 if alike else 0.05)) * pair, key)
        elif kind == "times":
            self._find(
                "ratio", "ratio", (operations.get("ratio", 0.0) * (1.0 if single else 0.3) + across) * pair, key, 1.0
            )
        elif kind == "plain":
            for factor in self._rates(self.weighing.figure.unit, key[1], key[2]):
                self._find("ratio", "ratio", (across * 0.6 + operations.get("ratio", 0.0)) * pair, key, factor)
            difference = operations.get("diff", 0.0) * (3.0 if self.fields.comparable(key[1], key[2]) else 1.0)
            pair *= self._fits(key[1]) * self._fits(key[2])
            self._find("diff", "diff", (difference if single else difference * 0.35 + across * 0.2) * pair, key, 1.0)
            if key[1] < key[2]:
                self._find("sum", "sum", (operations.get("sum", 0.0) * (0.5 if single else 0.1)) * pair, key, 1.0)
                self._find("product", "product", (across * 0.15 + operations.get("sum", 0.0) * 0.02) * pair, key, 1.0)
            if not single:
                mean = self.fields.weighted(key[1], key[2])
                if self.reading.low <= abs(mean) <= self.reading.high:
                    self._add(
                        self.prior * operations.get("mean", 0.0) * 0.1 * pair,
                        "weighted",
                        (key[0], SUMS, key[1], key[2]),
                        mean,
                    )

    def _fits(self, at: int) -> float:
        """How well a column fits the unit of the figure, for what keeps units."""
        unit, held = self.weighing.figure.unit, self.table.columns[at].unit
        if unit is None or unit.family == "money":
            return 1.0
        return 0.5 if held is None else 1.0 if held.family == unit.family else 0.01

    def _find(self, form: str, name: str, prior: float, key: tuple[int, int, int], factor: float) -> None:
        prior *= self.prior
        if prior < self.weighing.least:
            return
        number, x, y = key
        sign = self.weighing.figure.sign
        low, high = self.reading.low / factor, self.reading.high / factor
        ranges = ((-high, -low),) if sign == "-" else ((low, high),)
        for low, high in ranges:
            for value, row in self.fields.between(form, x, y, low, high):
                if not (name == "share" and value > 1 and not self.share):
                    self._add(prior * self._row(row), name, (number, row, x, y), value, factor)

    def _change(self, prior: float, key: tuple[int, int, int]) -> None:
        number, x, y = key
        if self.prior * prior < self.weighing.least:
            return
        for way in (self.direction,) if self.direction else (1, -1):
            low, high = 1 + way * self.reading.low / 100, 1 + way * self.reading.high / 100
            for value, row in self.fields.between("ratio", x, y, min(low, high), max(low, high)):
                self._add(self.prior * prior * self._row(row), "pct", (number, row, x, y), 100 * (value - 1))

    def _rates(self, unit: Unit | None, x: int, y: int) -> tuple[float, ...]:
        one, other = self.table.columns[x].unit, self.table.columns[y].unit
        if unit and unit.family == "speed":
            return (*_SPEEDS, 3.6)
        if unit and unit.family == "money" and unit.factor != 1:
            return (1 / unit.factor, 1.0)
        if one and other and (rates := _RATES.get((one.family, other.family))):
            return rates
        thousands = self.table.columns[x].words[-1:] in {("k",), ("thousand",), ("thousands",)}
        if thousands or self.weighing.figure.scale or self.per:
            return (1.0, *dict.fromkeys((1000.0, *self.powers)))
        return (1.0, *self.powers)

    def _whole(self, kind: str, operations: Mapping[str, float], number: int) -> None:
        """Sums and means of a row, and parts of it, where all columns measure the same."""
        across = operations.get("across", 0.0)
        rows = (*self.focus.rows.named, *range(min(self.table.rows, MOST_ADDED)))
        for row in (*dict.fromkeys(rows[:MOST_ADDED]), SUMS):
            values = [(at, self.fields.value(at, row)) for at in self.fields.plain[:MOST_ACROSS]]
            held = [(at, value) for at, value in values if value == value]
            whole = sum(value for _, value in held)
            likely = self.prior * self._row(row)
            if kind == "percent" and whole:
                for at, value in held:
                    if self.reading.low <= abs(100 * value / whole) <= self.reading.high:
                        prior = (operations.get("share", 0.0) * 0.5 + across * 0.2) * self.focus.columns[at]
                        self._add(likely * prior, "share", (number, row, at, -1), value / whole, 100.0)
            elif kind == "plain":
                for scale in (1.0, 1e-3, 1e-6) if self.weighing.figure.unit or self.weighing.figure.scale else (1.0,):
                    if self.reading.low <= abs(whole * scale) <= self.reading.high:
                        prior = operations.get("sum", 0.0) * 0.4 + across * 0.2
                        self._add(
                            likely * prior * (1.0 if scale == 1 else 0.1), "sum", (number, row, -1, -1), whole, scale
                        )
                if held and self.reading.low <= abs(whole / len(held)) <= self.reading.high:
                    prior = operations.get("mean", 0.0) * 0.4
                    self._add(likely * prior, "avg", (number, row, -1, -1), whole / len(held))

    def _add(
        self, probability: float, name: str, key: tuple[int, int, int, int], value: float, factor: float = 1.0
    ) -> None:
        if probability > self.weighing.least:
            self.weighing.add(probability, Recipe("record", name, key[0], key[1:], value * factor, factor))
