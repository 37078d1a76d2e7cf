"""Derivations within one column: changes, differences, ratios, shares, sums, means, growth rates.

Pairs are not tried one by one: for each possible base the partner that would print as the figure is looked up. Which
pair an author means is a matter of priors: rows that are named, neighbours in time, first and last, largest and
smallest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.series import Series
from ba_tui.features.figures.units import PERCENT, factors
from ba_tui.features.figures.weighed.scope import Focus, Scope
from ba_tui.features.figures.weighed.weighing import (
    Explanations,
    Recipe,
    RoundingRange,
    direction,
    kind_of,
)

AGAINST_WORDS = 0.001
"""That a figure goes the other way than the words beside it say."""
AGAINST_TIME = 0.02
"""That a change is given from the later to the earlier date."""
BESIDE_NAMED = 0.2
"""That a figure has nothing to do with the row that its clause names; in a table a tenth of it."""
SLIGHT = 0.02
"""A difference whose smaller operand is a smaller part of it than this is rather a wrong copy of the larger one."""
BASES, PARTNERS = 64, 256
FIRST_AND_LAST, EXTREMES, TOP_TWO, NEIGHBOURS, RANKED, LAST_SHOWN, YEAR_AGO, KIN = (
    0.12,
    0.06,
    0.04,
    0.25,
    0.08,
    0.2,
    0.2,
    0.2,
)
"""How often such pairs are compared, beyond what naming their rows says."""


class Derivations:
    """The derivations of one figure from one column."""

    def __init__(self, weighing: Explanations, series: Series, focus: Focus, scope: Scope, last: int) -> None:
        self.weighing = weighing
        self.least = weighing.least
        self.series = series
        self.weights = focus.rows
        self.last = last
        self.prior, self.factor, self.key = 0.0, 1.0, (0, 0)
        self.reading = RoundingRange(0.0, 0.0, 0.0)
        self.direction = direction(weighing.figure, scope)
        near, sentence = scope.near, scope.sentence
        hints = near.hints | sentence.hints
        self.peak = "peak" in hints
        self.cell = scope.cell
        self.changed = "change" in hints
        self.mean = "mean" in hints
        self.names = [part.names | part.moments for part in (near, sentence, scope.block, scope.above)]
        self.near = frozenset(focus.rows.near or focus.rows.sentence)
        named = [row for row in focus.rows.sentence if row in series.position]
        self.named = tuple(named) if 1 < len(named) < series.count else ()
        self.beside = (
            BESIDE_NAMED / (10 if scope.cell else 1) if self.near and not near.hints & {"sum", "mean"} else 1.0
        )
        self.leading = near.words | sentence.words

    def all(self, prior: float, operations: Mapping[str, float], key: tuple[int, int]) -> None:
        """Collect every derivation. ``prior``: that this column is meant; ``key`` names table and column."""
        figure = self.weighing.figure
        kind = kind_of(figure)
        self.key = key
        for each in self.weighing.results:
            self.prior, self.factor, self.reading = prior * each.weight, 1.0, each
            if kind == "percent":
                self._points(operations.get("diff", 0.0))
                self._changes(operations.get("pct", 0.0))
                self._shares(operations.get("share", 0.0))
                self._growth(operations.get("cagr", 0.0))
            elif kind == "times" or figure.unit is None:
                self._ratios(operations.get("ratio", 0.0))
            if kind == "times":
                continue
            for factor, likely in factors(figure.unit, self.series.column.unit, figure.scale, self.series.scale):
                self.prior, self.factor = prior * each.weight * likely, factor
                self.reading = RoundingRange(each.low / factor, each.high / factor, each.weight)
                if kind != "percent":
                    self._differences(operations.get("diff", 0.0), operations.get("rest", 0.0))
                    self._sums(operations.get("sum", 0.0))
                self._means(operations.get("mean", 0.0))
                self._aggregates(operations)
                if self.named:
                    self._together(operations)

    def _add(self, probability: float, operation: str, value: float, *terms: int) -> None:
        probability *= self.prior
        if probability > self.least:
            number, at = self.key
            recipe = Recipe("column", operation, number, (at, *terms), value * self.factor, self.factor)
            self.weighing.add(probability, recipe)

    def weight(self, place: int) -> float:
        """The probability that a term is an operand."""
        term = self.series.terms[place]
        if term.kind == "row":
            return self.weights[term.rows[0]]
        if term.kind == "mean":
            return 0.3 if self.mean else 0.0
        if term.kind == "group":
            least = max(0.005, 0.08 / self.series.groups)
            return next(
                (weight for weight, names in zip(_GROUPS, self.names, strict=True) if term.name in names), least
            )
        if term.kind == "half":
            return 0.4 if self.leading & _HALF_WORDS and self.leading & _HALVES[term.name] else 0.0
        if term.kind == "first":
            return 0.2 if self.leading & _LEADING_WORDS and self.leading & _NUMBER_WORDS[term.name] else 0.0
        return 0.0

    def _between(self, low: float, high: float) -> Sequence[int]:
        """The terms whose values lie in a range; where very many do, each is an unlikely operand."""
        found = self.series.between(low, high)[:PARTNERS]
        self.weighing.work += 1 + len(found)
        return found

    def _bases(self) -> Sequence[int]:
        series = self.series
        if series.plain <= BASES:
            return range(len(series.terms))
        named = [series.position[row] for row in self.weights.named if row in series.position]
        return list(dict.fromkeys((*named[:BASES], *series.marked, *range(series.plain, len(series.terms)))))

    def pair(self, a: int, b: int) -> float:
        """The probability that an author compares ``a`` with ``b``, in whichever order."""
        series = self.series
        first, second = self.weight(a), self.weight(b)
        named = 1.2 * first * second
        if a >= series.plain or b >= series.plain:
            return named
        one, other = series.terms[a], series.terms[b]
        x, y = one.rows[0], other.rows[0]
        px, py = series.position.get(x, -9), series.position.get(y, -9)
        usual = 0.0
        if px + py == series.count - 1 and (px == 0 or py == 0):
            usual += FIRST_AND_LAST
        values = {one.value, other.value}
        if values == {series.low, series.high}:
            usual += EXTREMES + (0.1 if self.peak else 0.0)
        elif values == series.ranked:
            usual += TOP_TWO
        if self.near and x not in self.near and y not in self.near:
            usual *= self.beside
        if abs(px - py) == 1:
            often = NEIGHBOURS if series.timed else RANKED if series.sorted else 0.0
            usual += often * self.weights[x if px > py else y]
        if self.last in (x, y):
            usual += LAST_SHOWN * (second if self.last == x else first)
        if series.timed and _year_apart(series.moments[x], series.moments[y]):
            usual += YEAR_AGO * max(first, second)
        elif _kin(series.labels[x], series.labels[y]) or (series.labels[x] and series.labels[x] == series.labels[y]):
            usual += KIN * max(first, second)
        return named + usual

    def _in_order(self, a: int, b: int) -> float:
        """The probability of ``b`` as the base of ``a``, by their dates."""
        series = self.series
        if not series.timed or a >= series.plain or b >= series.plain:
            return 1.0
        if series.moments[series.terms[a].rows[0]] > series.moments[series.terms[b].rows[0]]:
            return 1.0
        return 0.5 if self.peak and series.terms[b].value in (series.low, series.high) else AGAINST_TIME

    def _ways(self) -> tuple[tuple[int, float], ...]:
        """Up and down with their probabilities."""
        if not self.direction:
            return ((1, 0.5), (-1, 0.5))
        if self.weighing.figure.sign:
            return ((self.direction, 1.0),)
        return ((self.direction, 1.0), (-self.direction, AGAINST_WORDS))

    def _changes(self, prior: float) -> None:
        if prior * self.prior < self.least:
            return
        terms = self.series.terms
        low, high = self.reading.low / 100, self.reading.high / 100
        for b in self._bases():
            base = terms[b].value
            if not base or terms[b].kind == "sum":
                continue
            for way, likely in self._ways():
                for a in self._between(base * (1 + way * low), base * (1 + way * high)):
                    if a != b:
                        change = 100 * (terms[a].value - base) / base
                        self._add(prior * likely * self.pair(a, b) * self._in_order(a, b), "pct", change, a, b)

    def _points(self, prior: float) -> None:
        """Differences of percentages that are written with a percent sign."""
        if not self.changed:
            return
        held = self.series.column.unit
        values = self.series.column.values
        if held is None and all(-1 <= value <= 1 for value in values if value == value):
            self.factor = 100.0
        elif held is not PERCENT and not _SHARES.intersection(self.series.column.words):
            return
        plain = self.reading
        self.reading = RoundingRange(plain.low / self.factor, plain.high / self.factor, plain.weight)
        self._differences(prior, 0.0)
        self.reading, self.factor = plain, 1.0

    def _differences(self, prior: float, rest: float) -> None:
        terms = self.series.terms
        sign = self.weighing.figure.sign
        low, high = self.reading.low, self.reading.high
        if max(prior, rest) * self.prior < self.least:
            return
        for b in self._bases():
            for a in self._between(terms[b].value + low, terms[b].value + high):
                if a == b:
                    continue
                gap = terms[a].value - terms[b].value
                likely = SLIGHT if abs(terms[b].value) < SLIGHT * abs(gap) and not self.changed else 1.0
                if terms[a].kind == "sum":
                    self._add(rest * self.weight(b), "diff", gap, a, b)
                    continue
                order = max(self._in_order(a, b) if sign == "+" else self._in_order(b, a), 0.3) if sign else 1.0
                self._add(prior * likely * order * self.pair(a, b), "diff", gap, a, b)

    def _ratios(self, prior: float) -> None:
        if prior * self.prior < self.least:
            return
        terms = self.series.terms
        for b in self._bases():
            base = terms[b].value
            if base and terms[b].kind != "sum":
                for a in self._between(base * self.reading.low, base * self.reading.high):
                    if a != b:
                        order = max(self._in_order(a, b), 0.1)
                        self._add(prior * self.pair(a, b) * order, "ratio", terms[a].value / base, a, b)

    def _shares(self, prior: float) -> None:
        if prior * self.prior < self.least:
            return
        series = self.series
        terms = series.terms
        low, high = self.reading.low / 100, self.reading.high / 100
        for b in self._bases():
            base = terms[b]
            if not base.value or base.kind == "mean":
                continue
            for a in self._between(base.value * low, base.value * high):
                part = terms[a]
                if a == b or part.kind == "mean":
                    continue
                if base.kind == "sum" or base.name == "total":
                    likely = 0.8 * (self.weights[part.rows[0]] if part.kind == "row" else self.weight(a))
                elif base.kind == "row":
                    likely = (
                        (0.25 if base.value == series.high else 0.1) * self.pair(a, b) * (0.05 if self.cell else 1.0)
                    )
                else:
                    inside = set(part.rows) < set(base.rows)
                    likely = (0.3 if inside or part.kind == "group" else 0.0) * self.weight(a) * self.weight(b)
                self._add(prior * likely, "share", 100 * part.value / base.value, a, b)

    def _growth(self, prior: float) -> None:
        series = self.series
        if not series.timed or prior < 0.01 or series.count < 2 or series.count > BASES:
            return
        terms = series.terms
        years = [_year(series.moments[row]) for row in series.rows]
        last = series.count - 1
        for b in range(series.count):
            for a in {last, *(series.position[row] for row in self.weights.named if row in series.position)}:
                span = years[a] - years[b]
                if span < 2 or terms[a].value <= 0 or terms[b].value <= 0:
                    continue
                rate = 100 * ((terms[a].value / terms[b].value) ** (1 / span) - 1)
                if self.reading.low <= abs(rate) <= self.reading.high and self.direction * rate >= 0:
                    likely = 0.6 if (a, b) == (last, 0) else 0.0
                    likely += self.weights[series.rows[a]] * self.weights[series.rows[b]]
                    self._add(prior * likely, "cagr", rate, a, b)

    def _sums(self, prior: float) -> None:
        """The sum of two rows, or of several that follow each other."""
        terms = self.series.terms
        low, high = self.reading.low, self.reading.high
        plain = self.series.plain
        if self.leading & _TOTAL_WORDS or any(
            terms[at].kind == "group" and self.weight(at) >= _GROUPS[1] for at in range(plain, len(terms))
        ):
            # All of something is meant, or a group by its name.
            prior *= 0.03
        if prior * self.prior < self.least:
            return
        for b in self._bases():
            if terms[b].kind == "row":
                for a in self._between(low - terms[b].value, high - terms[b].value):
                    if a < b and a < plain:
                        self._add(prior * 0.3 * self.pair(a, b), "sum", terms[a].value + terms[b].value, a, b)
        count = self.series.count
        if prior < 0.2 or not 4 < count <= BASES:
            return
        likely = prior * 0.1 / (count * count)
        for first in range(count - 2):
            whole = terms[first].value + terms[first + 1].value
            for last in range(first + 2, min(count, first + count - 2)):
                whole += terms[last].value
                if low <= abs(whole) <= high:
                    self._add(
                        likely * (5.0 if first == 0 or last == count - 1 else 1.0),
                        "sum",
                        whole,
                        *range(first, last + 1),
                    )

    def _means(self, prior: float) -> None:
        """The mean of two rows."""
        if not self.mean or prior * self.prior < self.least:
            return
        terms, plain = self.series.terms, self.series.plain
        for b in self._bases():
            if terms[b].kind == "row":
                for a in self._between(2 * self.reading.low - terms[b].value, 2 * self.reading.high - terms[b].value):
                    if a < b and a < plain:
                        mean = (terms[a].value + terms[b].value) / 2
                        self._add(prior * 0.3 * self.pair(a, b), "avg", mean, a, b)

    def _together(self, operations: Mapping[str, float]) -> None:
        """The sum of the rows that the sentence names, their mean, their share of all."""
        series = self.series
        values = series.column.values
        whole = sum(values[row] for row in self.named)
        places = tuple(series.position[row] for row in self.named)
        likely = 0.3 * self.prior
        fits = self.weighing.fits
        for name, value, prior in (
            ("sum", whole * self.factor, operations.get("sum", 0.0)),
            ("avg", whole / len(self.named) * self.factor, operations.get("mean", 0.0) * 0.3),
            ("share", 100 * whole / series.total if series.total else 0.0, operations.get("share", 0.0) * 0.5),
        ):
            if fits(value) and likely * prior > self.least:
                number, at = self.key
                self.weighing.add(likely * prior, Recipe("column", name, number, (at, *places), value, self.factor))

    def _aggregates(self, operations: Mapping[str, float]) -> None:
        series = self.series
        low, high = self.reading.low, self.reading.high
        mean, whole = operations.get("mean", 0.0), operations.get("sum", 0.0)
        for place in range(series.plain, len(series.terms)):
            term = series.terms[place]
            fits = low <= abs(term.value) <= high
            if term.kind == "mean":
                if fits:
                    self._add(mean * 0.85 * self.beside, "avg", term.value, place)
            elif term.kind == "sum":
                if fits:
                    self._add(whole * 0.8 * self.beside, "sum", term.value, place)
            else:
                if fits:
                    self._add(whole * self.weight(place), "sum", term.value, place)
                average = term.value / len(term.rows)
                if low <= abs(average) <= high:
                    self._add(mean * 0.3 * self.weight(place), "avg", average, place)


_SHARES = listed(
    "rate share survival pct percent percentage ratio quota quote anteil taux tasa 率 比例 占比 coverage margin"
)
"""Words of columns that hold percentages."""
_TOTAL_WORDS = listed("all total overall whole entire insgesamt gesamt alle total tous todos 全部 合计 总计 共 総計")
_GROUPS = (0.3, 0.2, 0.1, 0.05)
"""That the sum of a group is an operand, by how near the group is named."""
_LEADING_WORDS = listed(
    "first top best erste ersten beiden premiers premières primeros primeras 前 上 leading largest größten"
)
_HALF_WORDS = listed("half halves hälfte hälften moitié mitad 半 半分")
_HALVES = {
    "first": listed("first 1st erste ersten première primera primer 上 前"),
    "second": listed("second 2nd last latter zweite zweiten seconde deuxième segunda 下 後 后"),
}
_NUMBER_WORDS = {
    "2": listed("2 two zwei beiden deux dos 两 二"),
    "3": listed("3 three drei trois tres 三"),
    "4": listed("4 four vier quatre cuatro 四"),
    "5": listed("5 five fünf cinq cinco 五"),
    "10": listed("10 ten zehn dix diez 十"),
}


def _year(moment: str) -> int:
    return int(moment[:4]) if moment[:4].isdigit() else 0


def _kin(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two rows share all their labels but one."""
    return len(one) == len(other) > 1 and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def _year_apart(one: str, other: str) -> bool:
    return one[4:] == other[4:] != "" and abs(_year(one) - _year(other)) == 1
