"""What follows from the person's own numbers and from the lengths of days, months and years: a target that is missed, a
rate that is applied, a speed, an amount per day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.observed.series import Series
from ba_tui.features.data.analysis.figures.weighed.focus import Focus
from ba_tui.features.data.analysis.figures.weighed.priors import kind_of
from ba_tui.features.data.analysis.figures.weighed.scope import Names, Scope
from ba_tui.features.data.analysis.figures.weighed.weighing import Recipe, Weighing
from ba_tui.features.data.analysis.figures.words.lexicon import listed

SAID, TARGET = 0.03, 0.2
"""That a figure repeats a certain number of the person's: at all, and where words speak of a target."""
REPEATED, REPEATED_SHORT, OF_OTHER_KIND = 0.1, 0.02, 0.3
"""That a figure repeats one of an earlier answer, by its digits; less when unit or noun are others."""
MOST = 40
"""Rows of a column that the person's numbers are applied to."""
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


def repeated(weighing: Weighing, evidence: Evidence, scope: Scope) -> None:
    """Collect the person's numbers that print as the figure."""
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


def said_before(weighing: Weighing, evidence: Evidence) -> None:
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


class Applied:
    """Derivations of one figure from a column and a number of the person's. ``around``: the figures of its sentence."""

    def __init__(self, weighing: Weighing, series: Series, focus: Focus, scope: Scope, around: Sequence[float]) -> None:
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
        """Collect them. ``prior``: that this column is meant; ``given``: the person's numbers by their place."""
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
        """The size of the unit of the person's number, times that of a figure in a unit of time: bytes at MB/s."""
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
