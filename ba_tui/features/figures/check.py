"""``check`` judges every figure of an answer by the evidence of its session.

Figures are judged one at a time: first the cells that print as the figure, then derivations from columns, rows and the
user's numbers, then from other figures of the answer. The probabilities are in ``weighed``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.figures import NO_RESULT
from ba_tui.core.text.patterns import regex
from ba_tui.features.figures.expressions import expressions
from ba_tui.features.figures.extract import Figure, extract
from ba_tui.features.figures.observed.evidence import RECORD, Evidence
from ba_tui.features.figures.outline import Apart, share_base
from ba_tui.features.figures.placing import (
    ABOVE,
    BELOW,
    ConditionCount,
    Place,
    PlaceFinder,
    condition_counts,
    heading_counts,
    side_of,
)
from ba_tui.features.figures.units import PERCENT, converted
from ba_tui.features.figures.verdicts import DROPPED, PERSON, CheckedAnswer, Verdict
from ba_tui.features.figures.weighed.candidates import (
    Candidate,
    Candidates,
    CountCandidates,
    cells,
    may_count,
    specific,
)
from ba_tui.features.figures.weighed.derive import Derivations
from ba_tui.features.figures.weighed.records import (
    AppliedNumber,
    Records,
    Shown,
    against_scalars,
    compare,
    repeated,
    said_before,
)
from ba_tui.features.figures.weighed.scope import Surroundings
from ba_tui.features.figures.weighed.weighing import (
    Explanations,
    Recipe,
    RecipeText,
    RoundingRange,
    doubt,
    operations,
    readings,
)

BELIEVED = 1.0
"""Odds from which a figure is supported."""
CLEAR = 30.0
"""Odds from which no further explanation is sought."""
SETTLED = 3.0
"""Odds from which derivations across columns are not sought."""
SAME_SENTENCE, SAME_BLOCK = 6.0, 3.0
"""Weight of the previous figure's column in a derivation."""
MOST_DERIVED = 600
"""Most figures of one answer for which derivations are sought; further ones without a cell are not checked."""
MOST_WORK = 60_000
"""Most numbers examined for derivations and counts of one answer; twice as many for cells. An answer of 250 figures
over 20 results takes 20,000."""
MOST_TOTALS, MOST_TURNED = 3, 3
LIMITS, APPLIED = 4, 12
"""Most recent numbers of the user that values are compared with, and that are applied to columns."""
MOST_ORIGINS = 12
"""Cells behind one figure whose words are taken for what the sentence says of it."""
BEFORE = 40
"""Characters before a limit that say on which side of it values are."""
BESIDE = 24
"""Characters between a count and its percentage."""
NAMED = 4.0
"""Weight from which words are taken to name a column."""
PASSES = 2
_PLUS_BEFORE = regex(r"\+\d[\d,.]*\s?[/,;]\s?[*_]*$")
_BESIDE = regex(
    r"[\s*_]*(?:[(,;=≈~]|i\.e\.|that is|or|about|also)[\s(=≈~,*_]*"
    r"(?:i\.e\.|about|or|ca\.|approx\.|roughly|some|around|etwa|rund|soit|environ)?[\s*_≈~]*",
    2,
)
"""Between a quantity and the same one in another unit: ``640 °C (1,184 °F)``."""
_UNIT_TEXT = regex(r"[\s\u00a0]?[^\s\d(,;=≈~]{0,24}(?: (?:per|pro|par|a) \w+)?")
POWERS = (100.0, 1e3, 1e4, 1e5, 1e6)
_DIGITS = regex(r"\d+")
_ONE_IN = regex(r"(?:^|\D)(?:1|one|ein|un|uno) (?:in|von|sur|de cada) (?:every |jedes? )?$", 2)
"""Text before a figure that means a share: one in three."""


def check(answer: str, evidence: Evidence, prompt: str = "") -> CheckedAnswer:
    """Judge every figure of ``answer`` by ``evidence``. Verbatim quotes of ``prompt`` are skipped."""
    return _Check(answer, evidence, prompt).whole()


class _Check:
    """The check of one answer. Results for earlier figures help with later ones."""

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
        self.weighings: list[Explanations] = []
        first = max(0, len(evidence.said.figures) - APPLIED)
        self.given = dict(enumerate(evidence.said.figures[first:], first))
        self.row: dict[int, int] = {}
        self.column: dict[int, tuple[int, int]] = {}
        self.worth: dict[int, float] = {}
        self.totals: dict[Recipe, int] = {}
        self.derived = 0
        self.work = 0
        self.skipped: set[int] = set()
        self.constants: set[int] = set()
        self.operands: set[int] = set()
        self.limits: set[int] = set()
        self.placing = PlaceFinder(evidence)

    def _convert(self) -> None:
        """Accept figures that give the quantity right before them in another unit."""
        for at in range(1, len(self.figures)):
            one, other, weighing = self.figures[at - 1], self.figures[at], self.weighings[at]
            if weighing.odds >= BELIEVED or at - 1 not in self.worth or not (one.unit and other.unit):
                continue
            gap = self.around.text[one.end : other.start]
            unit = _UNIT_TEXT.match(gap)
            if len(gap) > 40 or not unit or not _BESIDE.fullmatch(gap, unit.end()):
                continue
            value = converted(float(one.value), one.unit, other.unit)
            if value is not None and weighing.fits(value):
                weighing.add(1.0, Recipe("shown", "converted", -1, (at - 1,), value))
                self._settle(at, weighing)

    def _kept(self) -> list[Figure]:
        """Return the figures that are neither years of the data nor part of a row's name."""
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

    def whole(self) -> CheckedAnswer:
        for at in range(len(self.figures)):
            self.weighings.append(self._weigh(at))
        self._calculate()
        self._convert()
        known = -1
        for _ in range(PASSES):
            if len(self.worth) == known:
                break
            known = len(self.worth)
            for at, weighing in enumerate(self.weighings):
                if weighing.odds < BELIEVED and at not in self.skipped:
                    self._by_shown(at, weighing)
        # The limit of a count need not come from anywhere.
        self.constants |= {at for at in self.limits if at >= 0 and self.weighings[at].odds < BELIEVED}
        self.apart += [Apart(self.figures[at].start, self.figures[at].end, "constant") for at in self.constants]
        apart = tuple(sorted(self.apart, key=lambda each: each.start))
        return CheckedAnswer(
            tuple(self._verdicts()), apart, tuple(dict.fromkeys(self.evidence.partly)), self.read.unread
        )

    def _calculate(self) -> None:
        """Accept figures that are the results of expressions which the answer shows, and constants in these."""
        for shown in expressions(self.around.text, self.figures):
            self.operands.update(shown.operands)
            result = self.weighings[shown.result]
            unknown = [at for at in shown.operands if self.weighings[at].odds < BELIEVED]
            constant = {at for at in unknown if self._is_constant(at, len(shown.operands))}
            figure = self.figures[shown.result]
            scales = {1.0, 10.0**figure.scale, 100.0 if figure.unit is PERCENT else 1.0}
            fits = [value * scale for value in shown.values for scale in scales if result.fits(value * scale)]
            if not fits or set(unknown) - constant:
                continue
            result.add(
                1.0,
                Recipe("shown", "calculated", -1, tuple(at for at in shown.operands if at not in constant), fits[0]),
            )
            self._settle(shown.result, result)
            self.constants |= constant

    def _is_constant(self, at: int, operands: int) -> bool:
        """Whether a figure of an expression is no quantity: a count of operands, or a power of ten."""
        value = self.figures[at].value
        return value in {2, 10, 12, 100, 365, 1000, 1_000_000} or 1 < value < operands

    def _weigh(self, at: int) -> Explanations:
        figure, scope = self.figures[at], self.scopes[at]
        shown: Sequence[RoundingRange] = self.readings[at]
        if _ONE_IN.search(self.around.text, max(0, figure.start - 16), figure.start):
            # One in three is a share of 33 %.
            figure = replace(figure, unit=PERCENT, noun="%")
            shown = [_inverse(reading) for reading in shown]
        if base := share_base(self.around.text, figure.start):
            # Two in five is a share of about 40 %.
            share = 100 * float(figure.value) / base
            figure = replace(figure, unit=PERCENT, noun="%")
            shown = [RoundingRange(share - 25 / base, share + 25 / base, 1.0)]
        weighing = Explanations(figure, doubt(scope), shown)
        weighing.paired = figure.sign == "-" and bool(
            _PLUS_BEFORE.search(self.around.text, max(0, figure.start - 24), figure.start)
        )
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
        counting = CountCandidates(weighing, scope, self.before[at]) if rested and may_count(figure) else None
        if rested and may_count(figure) and (stated := self._conditions(at)):
            fitting = [(limit, each) for limit, each in stated if int(figure.value) in each.counts]
            if fitting:
                limit, count = fitting[0]
                weighing.add(1.0, Recipe("count", count.condition, count.table, (-1,), float(figure.value)))
                self.limits.add(limit)
            elif figure.value <= max(each.all for _, each in stated) + 1 and self._is_the_count(at):
                self.limits.update(limit for limit, _ in stated)
                return weighing
        for each in found:
            if each.number != RECORD:
                cells(weighing, self.evidence, each, prior)
                if counting is not None:
                    below = heading_counts(self.placing.labels(each.number), scope.sentence) if counting.asked else ()
                    counting.all(each, prior, set(below))
                    for turned in self.candidates.turned(each, at) if counting.sides else ():
                        counting.beside_mean(turned, prior)
        if weighing.odds < CLEAR and rested:
            # The two figures right before it often suffice, and are cheap to try.
            explained = self._with_shown(at, weighing)
            weighing = explained if explained.odds >= CLEAR else weighing
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

    def _derive(self, weighing: Explanations, found: Sequence[Candidate], prior: dict[str, float], at: int) -> None:
        for each in found:
            self._columns(weighing, each, prior, at)
        if weighing.odds < SETTLED:
            for each in found[:MOST_TURNED]:
                for turned in self.candidates.turned(each, at):
                    self._columns(weighing, turned, prior, at)
        if weighing.odds >= SETTLED:
            return
        scope = self.scopes[at]
        for each in found:
            for column in each.columns(self.column.get(each.number, (-1, -1))[0]):
                series = self.evidence.series(each.number, column)
                applied = AppliedNumber(weighing, series, each.focus, scope, self._around(at))
                applied.all(each.likely * each.focus.columns[column], prior, self.given, (each.number, column))
            against_scalars(weighing, self.evidence, each, prior)
            records = Records(weighing, self.evidence.fields(each.number), each.focus, scope)
            records.all(each.likely, prior, each.number, self._powers(at))

    def _columns(self, weighing: Explanations, found: Candidate, prior: dict[str, float], at: int) -> None:
        """Collect derivations within the most probable columns of a table."""
        scope = self.scopes[at]
        before, shown = self.column.get(found.number, (-1, -1))
        for column in found.columns(before):
            series = self.evidence.series(found.number, column)
            if series.count > 1:
                same = column == before and shown >= scope.spans[2][0]
                bonus = 1.0 if not same else SAME_SENTENCE if shown >= scope.spans[1][0] else SAME_BLOCK
                meant = found.likely * min(1.0, found.focus.columns[column] * bonus)
                deriving = Derivations(weighing, series, found.focus, scope, self.row.get(found.number, -1))
                deriving.all(meant, prior, (found.number, column))

    def _conditions(self, at: int) -> Sequence[tuple[int, ConditionCount]]:
        """Return what a figure may count when its sentence compares values with a limit, or with the user's; and
        which figure the limit is, -1 for the user's."""
        sentence = self.scopes[at].sentence
        text = self.around.text
        near = [other for other in self._beside(at) if not self.figures[other].year]
        starts = {other: self.figures[other].start for other in near}
        sided = [
            (side_of(text[max(0, starts[other] - BEFORE) : starts[other]]), other, self.figures[other])
            for other in near
        ]
        if not any(side for side, _, _ in sided):
            side = bool(sentence.words & ABOVE) - bool(sentence.words & BELOW)
            sided = [(side, -1, limit) for limit in self.evidence.said.figures[-LIMITS:]]
        return [
            (other, found)
            for side, other, limit in sided
            if side
            for found in condition_counts(self.placing, sentence, side, limit)
        ]

    def _is_the_count(self, at: int) -> bool:
        """Whether a figure is the only one of a sentence that asks how many, besides its limit."""
        others = [self.figures[other] for other in self._beside(at)]
        return "counting" in self.scopes[at].sentence.hints and sum(not other.year for other in others) == 1

    def _beside(self, at: int) -> Sequence[int]:
        """Return the other figures of the same sentence."""
        begin, end = self.scopes[at].spans[1]
        near = range(max(0, at - 8), min(len(self.figures), at + 9))
        return [other for other in near if other != at and begin <= self.figures[other].start < end]

    def _around(self, at: int) -> list[float]:
        """Return the other figures of the same block."""
        begin, end = self.scopes[at].spans[2]
        near = range(max(0, at - 8), min(len(self.figures), at + 5))
        return [
            float(self.figures[other].value)
            for other in near
            if other != at and begin <= self.figures[other].start < end
        ]

    def _powers(self, at: int) -> tuple[float, ...]:
        """Return the powers of ten in the same block or in the user's words, as rates may be per so many."""
        around = {*self._around(at), *(float(given.value) for given in self.given.values())}
        return tuple(power for power in POWERS if power in around)

    def _by_shown(self, at: int, weighing: Explanations) -> None:
        """Accept a figure derived from two others of the answer, or from one and the sum of a column."""
        if weighing.readings and (trial := self._with_shown(at, weighing)).odds >= BELIEVED:
            self.weighings[at] = trial
            self._settle(at, trial)

    def _with_shown(self, at: int, weighing: Explanations) -> Explanations:
        """Return the explanations of a figure including those by other figures of the answer."""
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
        """Return whether the words around figure ``at`` name the column of another figure."""
        best = self.weighings[other].best
        if best is None or best.recipe.kind != "cell":
            return False
        table = self.evidence.place(best.recipe.table).table
        return self.candidates.focusing.words(table, self.scopes[at])[best.recipe.at[0]] > NAMED

    def _totals(self, at: int) -> list[Shown]:
        """Return the sums of the columns of the figures right before this one."""
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

    def _settle(self, at: int, weighing: Explanations) -> None:
        """Remember an accepted figure's value, row and column."""
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
        explaining = RecipeText(self.evidence, self.figures, [*recipes, *self.totals])
        verdicts = [self._verdict(at, weighing, explaining) for at, weighing in enumerate(self.weighings)]
        for at, recipe in enumerate(recipes):
            if recipe and recipe.kind == "cell" and (place := self._elsewhere(at, verdicts)):
                cells = (explaining.cell(*place.found), explaining.cell(*place.named))
                verdicts[at] = Verdict(self.figures[at], "misplaced", cells, odds=self.weighings[at].odds)
        return [verdict for at, verdict in enumerate(verdicts) if at not in self.constants]

    def _elsewhere(self, at: int, verdicts: Sequence[Verdict]) -> Place | None:
        """The place of a figure that belongs to another row or column than the sentence says."""
        scope = self.scopes[at]
        hints = scope.near.hints | scope.sentence.hints
        if at in self.operands or hints & {"before", "elsewhere"} or specific(self.figures[at]) < 1:
            return None
        begin, end = scope.spans[0] if scope.cell else scope.spans[1]
        near = [other for other, figure in enumerate(self.figures) if other != at and begin <= figure.start < end]
        named = {
            float(digits[0])
            for each in self.apart
            if begin <= each.start < end
            for digits in _DIGITS.finditer(self.around.text, each.start, each.end)
        }
        return self.placing.misplaced(
            self.weighings[at].cells,
            scope.sentence,
            [source for other in near for source in verdicts[other].origins[:MOST_ORIGINS]],
            lambda value: value in named or any(self.weighings[other].fits(value) for other in near),
        )

    def _verdict(self, at: int, weighing: Explanations, explaining: RecipeText) -> Verdict:
        figure, best, odds = self.figures[at], weighing.best, weighing.odds
        if best is None or odds < BELIEVED:
            if at in self.skipped:
                return Verdict(figure, "unchecked", odds=odds, note="too many figures in one answer")
            if self.evidence.dropped:
                return Verdict(figure, "unchecked", odds=odds, note=DROPPED)
            if not self.evidence.places:
                return Verdict(figure, "unchecked", odds=odds, note=NO_RESULT)
            return Verdict(figure, "unsourced", odds=odds)
        if best.label == "derived":
            return Verdict(figure, "derived", derivation=explaining.derivation(best.recipe), odds=odds)
        if best.recipe.kind == "earlier":
            return replace(self.evidence.verdicts[best.recipe.at[0]], figure=figure, odds=odds, note="earlier answer")
        source = explaining.source(best.recipe)
        label = "given" if source.call == PERSON else "sourced"
        return Verdict(figure, label, (source,), best.recipe.factor, odds=odds)


def _inverse(reading: RoundingRange) -> RoundingRange:
    return RoundingRange(100 / reading.high, 100 / reading.low if reading.low else 100.0, reading.weight)
