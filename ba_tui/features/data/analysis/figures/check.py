"""``check``: judges every figure of an answer by the evidence of its session.

One figure is weighed at a time: the cells that print as it, then what columns, rows and the person's numbers give, then
what other figures of the answer give. How probable each of these is stands in priors, focus and votes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.answers.apart import Apart
from ba_tui.features.data.analysis.figures.answers.extract import Figure, extract
from ba_tui.features.data.analysis.figures.observed.evidence import RECORD, Evidence
from ba_tui.features.data.analysis.figures.verdicts import DROPPED, PERSON, Checked, Verdict
from ba_tui.features.data.analysis.figures.weighed.candidates import Candidate, Candidates
from ba_tui.features.data.analysis.figures.weighed.counts import Counting, may_count
from ba_tui.features.data.analysis.figures.weighed.derive import Deriving
from ba_tui.features.data.analysis.figures.weighed.explain import Explaining
from ba_tui.features.data.analysis.figures.weighed.given import Applied, repeated, said_before
from ba_tui.features.data.analysis.figures.weighed.match import cells
from ba_tui.features.data.analysis.figures.weighed.priors import doubt, operations
from ba_tui.features.data.analysis.figures.weighed.records import Records
from ba_tui.features.data.analysis.figures.weighed.scope import Surroundings
from ba_tui.features.data.analysis.figures.weighed.shown import Shown, compare
from ba_tui.features.data.analysis.figures.weighed.weighing import Reading, Recipe, Weighing, readings
from ba_tui.features.data.analysis.figures.words.units import PERCENT

BELIEVED = 1.0
"""Odds from which a figure counts as supported."""
CLEAR = 30.0
"""Odds from which no further explanation is looked for."""
SETTLED = 3.0
"""Odds from which derivations across columns are not looked for."""
SAME_SENTENCE, SAME_BLOCK = 6.0, 3.0
"""By how much the column of the figure before counts more for a derivation."""
MOST_DERIVED = 600
"""Figures of one answer for which derivations are looked for; further ones without a cell are not checked."""
MOST_WORK = 60_000
"""Numbers that are looked at for derivations and counts of one answer; twice as many for cells. An answer of 250
figures over 20 results takes 20,000."""
MOST_TOTALS = 3
LIMITS, APPLIED = 4, 12
"""How many of the person's latest numbers rows are compared with, and are applied to columns."""
BESIDE = 24
"""Characters between a count and the percentage that says what part of something it is."""
NAMED = 4.0
"""By how much words must speak for a column for it to be named."""
PASSES = 2
POWERS = (100.0, 1e3, 1e4, 1e5, 1e6)
_ONE_IN = regex(r"(?:^|\D)(?:1|one|ein|un|uno) (?:in|von|sur|de cada) (?:every |jedes? )?$", 2)
"""Before a figure that stands for a share: one in three."""


def check(answer: str, evidence: Evidence, prompt: str = "") -> Checked:
    """Judge every figure of ``answer`` by ``evidence``. What it quotes of ``prompt`` word for word is no figure."""
    return _Check(answer, evidence, prompt).whole()


class _Check:
    """One answer being checked. What was settled for earlier figures helps with later ones."""

    def __init__(self, answer: str, evidence: Evidence, prompt: str) -> None:
        self.evidence = evidence
        self.read = extract(answer, prompt)
        self.around = Surroundings(self.read, evidence)
        self.apart = list(self.read.apart)
        self.figures = self._kept()
        self.before = [self._word_before(figure) for figure in self.figures]
        self.scopes = [self.around.scope(figure) for figure in self.figures]
        self.readings = [readings(figure) for figure in self.figures]
        blocks = [bisect_right(self.read.outline.starts, figure.start) for figure in self.figures]
        self.candidates = Candidates(evidence, self.figures, self.scopes, self.readings, blocks)
        self.weighings: list[Weighing] = []
        first = max(0, len(evidence.said.figures) - APPLIED)
        self.given = dict(enumerate(evidence.said.figures[first:], first))
        self.row: dict[int, int] = {}
        self.column: dict[int, tuple[int, int]] = {}
        self.worth: dict[int, float] = {}
        self.totals: dict[Recipe, int] = {}
        self.derived = 0
        self.work = 0
        self.skipped: set[int] = set()

    def _kept(self) -> list[Figure]:
        """The figures that are neither years of the data nor part of a name of a row."""
        kept: list[Figure] = []
        labels = sorted(self.around.labels)
        starts = [start for start, _ in labels]
        said = self.evidence.said.names
        for figure in self.read.figures:
            at = bisect_right(starts, figure.start) - 1
            if at >= 0 and figure.end <= labels[at][1]:
                self.apart.append(Apart(*labels[at], "label"))
            elif figure.unit is None and figure.text in said:
                self.apart.append(Apart(figure.start, figure.end, said[figure.text]))
            elif figure.year and self._is_year(figure):
                self.apart.append(Apart(figure.start, figure.end, "date"))
            else:
                kept.append(figure)
        return kept

    def _is_year(self, figure: Figure) -> bool:
        held = float(figure.value) in self.evidence.like_years
        if figure.text in self.evidence.years:
            return not held or figure.year == "likely"
        return not held and figure.year == "likely"

    def _word_before(self, figure: Figure) -> str:
        head = self.around.text[max(0, figure.start - 16) : figure.start].split()
        return head[-1].lower() if head else ""

    def whole(self) -> Checked:
        for at in range(len(self.figures)):
            self.weighings.append(self._weigh(at))
        known = -1
        for _ in range(PASSES):
            if len(self.worth) == known:
                break
            known = len(self.worth)
            for at, weighing in enumerate(self.weighings):
                if weighing.odds < BELIEVED and at not in self.skipped:
                    self._by_shown(at, weighing)
        apart = tuple(sorted(self.apart, key=lambda each: each.start))
        return Checked(tuple(self._verdicts()), apart, tuple(dict.fromkeys(self.evidence.partly)), self.read.unread)

    def _weigh(self, at: int) -> Weighing:
        figure, scope = self.figures[at], self.scopes[at]
        shown: Sequence[Reading] = self.readings[at]
        if _ONE_IN.search(self.around.text, max(0, figure.start - 16), figure.start):
            # One in three is a share of 33 %.
            figure = replace(figure, unit=PERCENT, noun="%")
            shown = [_inverse(reading) for reading in shown]
        weighing = Weighing(figure, doubt(scope), shown)
        if not weighing.readings:
            return weighing
        prior = operations(figure, scope, self.before[at])
        repeated(weighing, self.evidence, scope)
        said_before(weighing, self.evidence)
        if self.work >= 2 * MOST_WORK:
            self.skipped.add(at)
            return weighing
        found = self.candidates.of(at)
        weighing.work += sum(len(each.table.columns) for each in found) // 4
        rested = self.work < MOST_WORK and self.derived < MOST_DERIVED
        counting = (
            Counting(weighing, scope, self.before[at], self._limits(at)) if rested and may_count(figure) else None
        )
        for each in found:
            if each.number != RECORD:
                cells(weighing, self.evidence, each, prior)
                if counting is not None:
                    counting.all(each, prior)
        if weighing.odds < CLEAR and rested:
            # Two figures right before it often say all, and cost little.
            told = self._with_shown(at, weighing)
            weighing = told if told.odds >= CLEAR else weighing
        if weighing.odds < CLEAR:
            if rested:
                self.derived += 1
                likely = [each for each in found[: self.candidates.most] if each.likely > 1e-3]
                self._derive(weighing, likely, prior, at)
            else:
                self.skipped.add(at)
        self._settle(at, weighing)
        self.work += weighing.work
        return weighing

    def _derive(self, weighing: Weighing, found: Sequence[Candidate], prior: dict[str, float], at: int) -> None:
        for each in found:
            self._columns(weighing, each, prior, at)
        if weighing.odds >= SETTLED:
            return
        scope = self.scopes[at]
        for each in found:
            for column in each.columns(self.column.get(each.number, (-1, -1))[0]):
                series = self.evidence.series(each.number, column)
                applied = Applied(weighing, series, each.focus, scope, self._around(at))
                applied.all(each.likely * each.focus.columns[column], prior, self.given, (each.number, column))
            records = Records(weighing, self.evidence.fields(each.number), each.focus, scope)
            records.all(each.likely, prior, each.number, self._powers(at))

    def _columns(self, weighing: Weighing, found: Candidate, prior: dict[str, float], at: int) -> None:
        """Collect derivations within the likeliest columns of a table."""
        scope = self.scopes[at]
        before, shown = self.column.get(found.number, (-1, -1))
        for column in found.columns(before):
            series = self.evidence.series(found.number, column)
            if series.count > 1:
                same = column == before and shown >= scope.spans[2][0]
                bonus = 1.0 if not same else SAME_SENTENCE if shown >= scope.spans[1][0] else SAME_BLOCK
                meant = found.likely * min(1.0, found.focus.columns[column] * bonus)
                deriving = Deriving(weighing, series, found.focus, scope, self.row.get(found.number, -1))
                deriving.all(meant, prior, (found.number, column))

    def _limits(self, at: int) -> list[float]:
        """The person's first numbers, and the figures of the same sentence."""
        begin, end = self.scopes[at].spans[1]
        near = (self.figures[other] for other in range(max(0, at - 4), min(len(self.figures), at + 5)) if other != at)
        said = (*self.evidence.said.figures[-LIMITS:], *(figure for figure in near if begin <= figure.start < end))
        return [float(figure.value) for figure in said]

    def _around(self, at: int) -> list[float]:
        """The other figures of the same block."""
        begin, end = self.scopes[at].spans[2]
        near = range(max(0, at - 8), min(len(self.figures), at + 5))
        return [
            float(self.figures[other].value)
            for other in near
            if other != at and begin <= self.figures[other].start < end
        ]

    def _powers(self, at: int) -> tuple[float, ...]:
        """The powers of ten that stand in the same block, or that the person named: rates may be per so many."""
        around = {*self._around(at), *(float(given.value) for given in self.given.values())}
        return tuple(power for power in POWERS if power in around)

    def _by_shown(self, at: int, weighing: Weighing) -> None:
        """Believe a figure that two others of the answer give, or one and the sum of a column."""
        if weighing.readings and (trial := self._with_shown(at, weighing)).odds >= BELIEVED:
            self.weighings[at] = trial
            self._settle(at, trial)

    def _with_shown(self, at: int, weighing: Weighing) -> Weighing:
        """What is known of a figure together with what other figures of the answer give."""
        begin = self.scopes[at].spans[2][0] - 400
        shown = [
            self._shown(other, at)
            for other in range(max(0, at - 20), min(len(self.figures), at + 10))
            if other != at and other in self.worth and self.figures[other].start >= begin
        ]
        if not self.scopes[at].cell:
            shown += self._totals(at)
        trial = weighing.copy()
        compare(trial, self.scopes[at], shown, operations(self.figures[at], self.scopes[at], self.before[at]))
        return trial

    def _shown(self, other: int, at: int) -> Shown:
        figure = self.figures[other]
        return Shown(
            other,
            abs(self.worth[other]),
            figure.start,
            figure.unit,
            self._is_named(other, at),
            other == at - 1 and 0 < self.figures[at].start - figure.end <= BESIDE and not self.scopes[at].cell,
        )

    def _is_named(self, other: int, at: int) -> bool:
        """Whether the words around figure ``at`` name the column that another figure stands in."""
        best = self.weighings[other].best
        if best is None or best.recipe.kind != "cell":
            return False
        table = self.evidence.place(best.recipe.table).table
        return self.candidates.focusing.words(table, self.scopes[at])[best.recipe.at[0]] > NAMED

    def _totals(self, at: int) -> list[Shown]:
        """The sums of the columns that the figures right before this one stand in."""
        found: list[Shown] = []
        for number, (column, place) in self.column.items():
            if place >= self.scopes[at].spans[2][0] and number != RECORD:
                series = self.evidence.series(number, column)
                if series.count > 1:
                    recipe = Recipe("column", "sum", number, (column, series.plain), series.total)
                    key = len(self.figures) + self.totals.setdefault(recipe, len(self.totals))
                    found.append(Shown(key, abs(series.total), self.figures[at].start, self.figures[at].unit))
                    if len(found) == MOST_TOTALS:
                        break
        return found

    def _settle(self, at: int, weighing: Weighing) -> None:
        """Remember what a figure that is believed is worth, and the row and the column that it stands in."""
        if weighing.best is not None and weighing.odds >= BELIEVED:
            recipe = weighing.best.recipe
            self.worth[at] = recipe.value
            if recipe.kind == "cell":
                self.row[recipe.table] = recipe.at[1]
            if recipe.kind in {"cell", "column"}:
                self.column[recipe.table] = (recipe.at[0], self.figures[at].start)

    def _verdicts(self) -> Sequence[Verdict]:
        recipes = [
            weighing.best.recipe if weighing.best and weighing.odds >= BELIEVED else None for weighing in self.weighings
        ]
        explaining = Explaining(self.evidence, self.figures, [*recipes, *self.totals])
        return [self._verdict(at, weighing, explaining) for at, weighing in enumerate(self.weighings)]

    def _verdict(self, at: int, weighing: Weighing, explaining: Explaining) -> Verdict:
        figure, best, odds = self.figures[at], weighing.best, weighing.odds
        if best is None or odds < BELIEVED:
            if at in self.skipped:
                return Verdict(figure, "unchecked", odds=odds, note="too many figures in one answer")
            if self.evidence.dropped:
                return Verdict(figure, "unchecked", odds=odds, note=DROPPED)
            return Verdict(figure, "unsourced", odds=odds)
        if best.label == "derived":
            return Verdict(figure, "derived", derivation=explaining.derivation(best.recipe), odds=odds)
        if best.recipe.kind == "earlier":
            return replace(self.evidence.verdicts[best.recipe.at[0]], figure=figure, odds=odds, note="earlier answer")
        source = explaining.source(best.recipe)
        label = "given" if source.call == PERSON else "sourced"
        return Verdict(figure, label, (source,), best.recipe.factor, odds=odds)


def _inverse(reading: Reading) -> Reading:
    return Reading(100 / reading.high, 100 / reading.low if reading.low else 100.0, reading.weight)
