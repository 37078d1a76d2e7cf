"""Derivations across the columns of one row, or of the sums of columns: a rate, a share, a price per piece."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.series import SUMS, Fields, Series
from ba_tui.features.figures.units import FigureUnit
from ba_tui.features.figures.weighed.candidates import Candidate
from ba_tui.features.figures.weighed.scope import Focus, Names, Scope
from ba_tui.features.figures.weighed.weighing import (
    Explanations,
    Recipe,
    RoundingRange,
    direction,
    kind_of,
)

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

    def __init__(self, weighing: Explanations, fields: Fields, focus: Focus, scope: Scope) -> None:
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
        self.reading = RoundingRange(0.0, 0.0, 0.0)

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

    def _rates(self, unit: FigureUnit | None, x: int, y: int) -> tuple[float, ...]:
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


SCALARS = 0.3
"""That a figure compares a named row with a single number, such as a total in another result."""
MOST_NAMED = 4
"""Named rows that are compared with such numbers."""


def against_scalars(
    weighing: Explanations, evidence: Evidence, found: Candidate, operations: Mapping[str, float]
) -> None:
    """Collect shares and changes of the rows that the sentence names against single numbers."""
    kind, scalars = kind_of(weighing.figure), evidence.scalars
    rows = (found.focus.rows.near or found.focus.rows.sentence)[:MOST_NAMED]
    if kind not in {"percent", "times"} or not scalars or not rows:
        return
    columns = found.columns(-1)
    prior = found.likely * SCALARS / (len(scalars) * len(rows))
    for at in columns:
        for row in rows:
            part = found.table.columns[at].values[row]
            for number, whole in scalars:
                if not whole or part != part or number == found.number:
                    continue
                ways = (("share", 100 * part / whole), ("pct", 100 * (part - whole) / whole))
                for name, value in ways if kind == "percent" else (("ratio", part / whole),):
                    likely = prior * operations.get(name, 0.0) * found.focus.columns[at] * weighing.fits(value)
                    if likely > weighing.least:
                        weighing.add(likely, Recipe("scalar", name, found.number, (at, row, number), value))


# What follows from the user's own numbers and from the lengths of days, months and years: a target that is missed, a
# rate that is applied, a speed, an amount per day.

SAID, TARGET = 0.03, 0.2
"""That a figure repeats a certain number of the user's: at all, and where words speak of a target."""
REPEATED, REPEATED_SHORT, OF_OTHER_KIND = 0.1, 0.02, 0.3
"""That a figure repeats one of an earlier answer, by its digits; less when unit or noun are others."""
MOST = 40
"""Rows of a column that the user's numbers are applied to."""
TOTAL, MEAN = 0.25, 0.1
"""That the sum or the mean of a column is what is compared."""
_PERIODS = {
    "day": ((1 / 365, 0.4), (1 / 30, 0.3), (1 / 7, 0.2), (1 / 31, 0.1)),
    "week": ((1 / 52, 0.7), (1 / 4, 0.1), (7.0, 0.2)),
    "month": ((1 / 12, 0.8), (30.0, 0.1), (4.0, 0.1)),
    "quarter": ((1 / 4, 0.8), (3.0, 0.2)),
    "year": ((12.0, 0.5), (365.0, 0.2), (52.0, 0.1), (4.0, 0.2)),
    "hour": ((1 / 24, 0.5), (1 / 8760, 0.3), (60.0, 0.2)),
    "minute": ((1 / 60, 0.7), (60.0, 0.3)),
}
"""By what an amount may be multiplied for an amount in such a time."""
_PERIOD_WORDS = {
    "day": "day daily tag täglich jour día diario 天 日",
    "week": "week weekly woche wöchentlich semaine semana 周",
    "month": "month monthly monat monatlich mois mes mensual 月",
    "quarter": "quarter quarterly quartal trimestre 季",
    "year": "year yearly annually annual jahr jährlich an año anual 年",
    "hour": "hour hourly stunde stündlich heure hora 时",
    "minute": "minute minuto 分",
}
_HEADER = listed("header kopfzeile überschrift tête encabezado cabecera 表头 标题行 ヘッダ")
"""Beside a number of lines: one of them is no record."""
_OF_WORD = {word: period for period, words in _PERIOD_WORDS.items() for word in words.split()}


def repeated(weighing: Explanations, evidence: Evidence, scope: Scope) -> None:
    """Collect the user's numbers that print as the figure."""
    target = "target" in scope.near.hints or "target" in scope.sentence.hints
    each = TARGET if target else SAID
    figure = weighing.figure
    own = figure.unit.factor if figure.unit else 1.0
    ranges = [(each.low * by, each.high * by) for each in weighing.results for by in {1.0, own}]
    for at in sorted({at for low, high in ranges for at in evidence.said.within(low, high)}):
        said, factor = evidence.said.figures[at], 1.0
        if figure.unit and said.unit and figure.unit.family == said.unit.family:
            factor = said.unit.factor / figure.unit.factor
        value = float(said.value) * factor
        if fits := weighing.fits(value):
            weighing.add(each * fits * (1.0 if factor == 1 else 0.3), Recipe("said", "", -1, (at,), value, factor))


def said_before(weighing: Explanations, evidence: Evidence) -> None:
    """Collect the figure of an earlier answer that is written as this one, if that came from somewhere."""
    figure = weighing.figure
    at = evidence.earlier.get((figure.value, figure.step))
    if at is None:
        return
    before = evidence.verdicts[at].figure
    digits = len(figure.value.normalize().as_tuple().digits)
    probability = REPEATED if digits > 2 else REPEATED_SHORT
    if (before.unit, before.noun) != (figure.unit, figure.noun):
        probability *= OF_OTHER_KIND
    weighing.add(probability, Recipe("earlier", "", -1, (at,), float(figure.value)))


class AppliedNumber:
    """Derivations of one figure from a column and a number of the user's. ``around``: the figures of its sentence."""

    def __init__(
        self, weighing: Explanations, series: Series, focus: Focus, scope: Scope, around: Sequence[float]
    ) -> None:
        self.weighing = weighing
        self.around = around
        self.series = series
        self.weights = focus.rows
        self.near = scope.near
        self.sentence = scope.sentence
        self.key = (0, 0)

    def all(
        self, prior: float, operations: Mapping[str, float], given: Mapping[int, Figure], key: tuple[int, int]
    ) -> None:
        """Collect them. ``prior``: that this column is meant; ``given``: the user's numbers by their place."""
        self.key = key
        likely = prior * operations.get("given", 0.0) / max(1, min(len(given), 4))
        if likely > self.weighing.least:
            for at, said in given.items():
                if said.value and float(said.value):
                    repeated = float(said.value) in self.around
                    self._with(likely * (5.0 if repeated else 1.0), said, at)
        if _HEADER & (self.near.words | self.sentence.words):
            for place, value, weight in self._terms():
                self._try(value - 1, prior * 0.1 * weight, "less one", place)
        if prior * (per := operations.get("per", 0.0)) > self.weighing.least:
            self._per(prior * per)

    def _terms(self) -> list[tuple[int, float, float]]:
        """Operands with their values and probabilities: rows, those that are named first, the sum and the mean."""
        series = self.series
        named = [series.position[row] for row in self.weights.named if row in series.position]
        places = dict.fromkeys((*named, *series.marked, *range(min(series.count, MOST))))
        found = [
            (place, series.terms[place].value, self.weights[series.terms[place].rows[0]])
            for place in list(places)[:MOST]
        ]
        for place in range(series.plain, len(series.terms)):
            term = series.terms[place]
            if term.kind in {"sum", "mean"}:
                found.append((place, term.value, TOTAL if term.kind == "sum" else MEAN))
        return found

    def _with(self, prior: float, said: Figure, at: int) -> None:
        base = float(said.value)
        kind = kind_of(self.weighing.figure)
        percent = said.unit is not None and said.unit.family == "percent"
        for place, value, weight in self._terms():
            likely = prior * weight
            if kind == "percent":
                self._try(100 * (value - base) / base, likely * 0.5, "pct", place, at)
                self._try(100 * value / base, likely * 0.5, "share", place, at)
            elif kind == "times":
                self._try(value / base, likely, "ratio", place, at)
            elif percent:
                self._try(value * base / 100, likely * 0.5, "product", place, at)
                self._try(value * (1 + base / 100), likely * 0.25, "raised", place, at)
                self._try(value * (1 - base / 100), likely * 0.15, "lowered", place, at)
            else:
                self._try(value - base, likely * 0.7, "diff", place, at)
                self._try(value / (base * self._unit(said)), likely * 0.15, "ratio", place, at)
                if value:
                    self._try(base / value, likely * 0.05, "inverse", place, at)
                self._try(value * base, likely * 0.1, "product", place, at)

    def _unit(self, said: Figure) -> float:
        """The size of the unit of the user's number, times that of a figure in a unit of time: bytes at MB/s."""
        unit, shown = said.unit, self.weighing.figure.unit
        if unit is None or unit.family not in {"bytes", "time", "length"}:
            return 1.0
        return unit.factor * (shown.factor if shown and shown.family == "time" else 1.0)

    def _per(self, prior: float) -> None:
        for period in _periods(self.near) or _periods(self.sentence):
            for factor, share in _PERIODS[period]:
                for place, value, weight in self._terms():
                    self._try(value * factor, prior * share * weight, f"per {period}", place)

    def _try(self, value: float, probability: float, name: str, *terms: int) -> None:
        if probability > self.weighing.least and (fits := self.weighing.fits(value)):
            number, at = self.key
            self.weighing.add(probability * fits, Recipe("given", name, number, (at, *terms), value))


def _periods(names: Names) -> set[str]:
    return {period for word, period in _OF_WORD.items() if word in names.words}


# Derivations from figures that the answer itself shows, wherever each of them comes from.

SENTENCE, BLOCK, AROUND = 0.6, 0.4, 0.1
"""That two figures of the same sentence are meant, of the same block, or of the blocks around; shared by all such
pairs."""
NAMED = 4.0
"""By how much a pair counts more when words name the column of one of them."""
BESIDE = 3.0
"""By how much it counts more that a percentage says what the figure right before it is a part of."""
REST = 60.0
"""By how much a word such as *other* speaks for a difference of two shown figures rather than of a column."""
MOST_SHOWN = 12


@frozen
class Shown:
    """A figure that the answer shows and that comes from somewhere, or the sum of a column: its number, unrounded
    value, place and unit, whether the words around the figure in question name its column, and whether it is
    right before it: ``96 errors (0.56 %)``."""

    number: int
    value: float
    place: int
    unit: FigureUnit | None
    named: bool = False
    beside: bool = False


def compare(weighing: Explanations, scope: Scope, shown: Sequence[Shown], operations: Mapping[str, float]) -> None:
    """Collect what two shown figures give."""
    _, sentence, block = scope.spans
    nearest = sorted(shown, key=lambda each: abs(each.place - weighing.figure.start))[:MOST_SHOWN]
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
        self, weighing: Explanations, shown: Sequence[Shown], levels: Sequence[int], weights: Sequence[float]
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
            self._shifted("diff", operations.get("diff", 0.0) + REST * operations.get("rest", 0.0))
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


def _family(unit: FigureUnit | None) -> str:
    return unit.family if unit else ""
