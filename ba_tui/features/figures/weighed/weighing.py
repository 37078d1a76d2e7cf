"""The balance of one figure: how probable it is that it comes from somewhere, against that it comes from nowhere.

Each explanation that fits adds the probability that an author had just that in mind; the opposite is the
probability of an invented number of this form. So an accident counts for little: it is one of very many things that
would have fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.series import SUMS, Term
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.verdicts import PERSON, Derivation, VerdictSource
from ba_tui.features.figures.weighed.scope import Scope
from ba_tui.features.figures.wording import hints

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
class RoundingRange:
    """A range of values that print as the figure, with the probability of that way of rounding. ``odd``: only if the
    separators mean something else than in the rest of the answer."""

    low: float
    high: float
    weight: float
    odd: bool = False


@frozen
class Recipe:
    """How a value comes about. ``kind``: ``cell``, ``said`` (by the user), ``earlier`` (in an answer), ``column``,
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


def readings(figure: Figure) -> tuple[RoundingRange, ...]:
    """The ranges of absolute values that print as ``figure``, by rounding, by other separators, by a hedge."""
    value, step = float(abs(figure.value)), float(figure.step)
    if not math.isfinite(value) or value > 1e300:
        return ()
    found = [_rounded(value, step, 1.0)]
    if figure.other is not None:
        other, fine = figure.other
        found = [_rounded(value, step, 1 - OTHERWISE), _rounded(float(abs(other)), float(fine), OTHERWISE, odd=True)]
    if figure.hedge and value:
        found = [RoundingRange(each.low, each.high, each.weight * 0.6, each.odd) for each in found]
        unit = _round_unit(value, step)
        below, above = min(HEDGED * value, unit), min(HEDGED * value, unit)
        low = value if figure.hedge == "over" else value - below
        high = value if figure.hedge == "under" else value + above
        found.append(RoundingRange(low * (1 - _EDGE), high * (1 + _EDGE), 0.4))
    return tuple(found)


def _rounded(value: float, step: float, weight: float, *, odd: bool = False) -> RoundingRange:
    edge = min(value * _EDGE, step / 100)
    return RoundingRange(max(0.0, value - step / 2 - edge), value + step / 2 + edge, weight, odd)


def _round_unit(value: float, step: float) -> float:
    """The place value of the last digit that is not 0: 10,000 for 130,000."""
    unit = max(step, 1e-12)
    while unit < value and math.isclose(value / (unit * 10), round(value / (unit * 10)), abs_tol=1e-9):
        unit *= 10
    return unit


def accident(figure: Figure, each: RoundingRange) -> float:
    """The probability that an invented number prints as this one."""
    value = (each.low + each.high) / 2
    if value <= 0:
        return 0.05
    density = min(0.5, (each.high - each.low) / value / (math.log(10) * DECADES))
    if float(figure.step) >= 1 and _round_unit(value, 1.0) * 2 >= value and value >= 50:
        density = min(0.5, density * ROUND)
    return density


MOST_CELLS = 20


class Explanations:
    """Collects explanations of one figure. ``results`` are the readings that a derivation may have, ``work`` counts the
    numbers that were looked at."""

    def __init__(self, figure: Figure, doubt: float, readings: Sequence[RoundingRange]) -> None:
        self.figure = figure
        self.readings = readings
        self.results = [each for each in readings if not each.odd]
        self.doubt = doubt
        self.accident = sum(each.weight * accident(figure, each) for each in self.readings)
        self.work = 0
        self.support = 0.0
        self.derived = 0.0
        self.best: Reason | None = None
        self.paired = False
        """Whether the sign only tells what went from what came: the second part of ``+120 / −64``."""
        self.cells: list[tuple[int, int, int]] = []
        """The cells that print as the figure: number of the table, column and row."""
        self.least = NEGLIGIBLE * doubt / (1 - doubt) * (self.accident + SLIPS)

    def add(self, probability: float, recipe: Recipe) -> None:
        """Count an explanation that fits."""
        if recipe.kind in _LABELS:
            self.support += probability
        else:
            self.derived += probability
        if recipe.kind == "cell" and len(self.cells) < MOST_CELLS:
            column, row = recipe.at
            self.cells.append((recipe.table, column, row))
        if self.best is None or probability > self.best.probability:
            self.best = Reason(probability, recipe)

    def copy(self) -> Explanations:
        """Another balance with what was collected so far."""
        other = Explanations(self.figure, self.doubt, self.readings)
        other.support, other.derived, other.best = self.support, self.derived, self.best
        other.cells = self.cells
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


# How probable each operation is before numbers are compared: by the form of the figure and by the words beside it.
#
# A hint in the clause makes its operation some forty times as probable as it was, one in the sentence eight times. The
# figures are rounded from how answers are written; tests check that halving or doubling them changes little.

DOUBT = 0.12
"""How many figures of an answer come from nowhere."""
DOUBT_ELSEWHERE = 0.9
"""The same where the clause says that a figure is from outside; between the two where only the sentence does."""
DOUBT_BEFORE = 0.35
"""The same where the clause speaks of a previous year."""
NEAR, SENTENCE, BLOCK = 40.0, 8.0, 1.5
ALL = listed("all alle allen aller die der den les des las los todos todas of von de the 全部 这 这些 共 所有 各")
"""Before a small number: then it may count everything."""
FROM_TO = listed("from to von auf de à du au desde hasta a 从 由 至 到 auf between and zwischen und entre et y")
"""Before a figure that is one end of a change, or of a range."""

_BASE = {
    "percent": {
        "cell": 0.3,
        "pct": 0.3,
        "share": 0.25,
        "cagr": 0.02,
        "mean": 0.04,
        "sum": 0.01,
        "given": 0.03,
        "across": 0.05,
        "diff": 0.02,
    },
    "points": {"cell": 0.12, "diff": 0.8, "mean": 0.05, "given": 0.03},
    "times": {"cell": 0.1, "ratio": 0.85, "given": 0.02, "across": 0.03},
    "plain": {
        "cell": 0.6,
        "diff": 0.04,
        "sum": 0.05,
        "mean": 0.02,
        "ratio": 0.01,
        "across": 0.04,
        "count": 0.04,
        "above": 0.003,
        "given": 0.03,
        "span": 0.005,
        "median": 0.003,
        "rest": 0.0001,
        "per": 0.005,
        "steps": 0.002,
    },
}
_HINTED = {
    "percent": {
        "up": ("pct",),
        "down": ("pct",),
        "change": ("pct", "diff"),
        "share": ("share", "cell"),
        "mean": ("mean", "cell"),
        "cagr": ("cagr",),
        "sum": ("sum", "share"),
        "target": ("given",),
        "rest": ("share",),
        "median": ("cell",),
        "ratio": ("across", "share"),
    },
    "points": {"change": ("diff",), "target": ("given",)},
    "times": {"ratio": ("ratio",), "target": ("given",)},
    "plain": {
        "up": ("diff",),
        "down": ("diff",),
        "change": ("diff",),
        "sum": ("sum",),
        "mean": ("mean", "across"),
        "ratio": ("ratio",),
        "per": ("across", "per"),
        "rows": ("count",),
        "columns": ("count",),
        "target": ("given",),
        "peak": ("cell",),
        "median": ("median", "cell"),
        "rest": ("rest",),
        "cagr": ("span",),
    },
}
_BOOSTS = {"per": 0.5, "rows": 0.1, "columns": 0.3, "target": 0.5}
"""Hints that say less than others: the part of a boost that they have."""


def kind_of(figure: Figure) -> str:
    """``percent``, ``points``, ``times`` or ``plain``."""
    family = figure.unit.family if figure.unit else ""
    return family if family in {"percent", "points", "times"} else "plain"


def operations(figure: Figure, scope: Scope, before: str) -> dict[str, float]:
    """The probability of each operation. ``before``: the word before the figure."""
    near = scope.near.hints
    kind = kind_of(figure)
    if figure.sign and not scope.cell and kind == "percent":
        near = near | {"change"}
    counted = kind == "plain" and figure.unit is None and figure.step == 1 and abs(figure.value) < 1000
    sentence = scope.sentence.hints
    around = near | sentence
    above = counted and bool(around & {"mean", "median"}) and bool(around & {"up", "down"}) and abs(figure.value) < 100
    noun = counted and _counts_rows(figure.noun)
    all_of = counted and before in ALL
    moved = before in FROM_TO and not scope.cell
    asked = counted and "counting" in around and not near & {"change", "ratio", "mean"}
    return _weighed(
        kind, near, sentence, (scope.block.hints, scope.cell, above and not all_of, noun, all_of, moved, asked)
    )


def _counts_rows(noun: str) -> bool:
    return any(
        not rest and kind in {"rows", "columns"}
        for rest, kind in hints().get(noun[:1] if noun[:1] > "\u2fff" else noun, ())
    )


@lru_cache(maxsize=4096)
def _weighed(
    kind: str,
    near: frozenset[str],
    sentence: frozenset[str],
    rest: tuple[frozenset[str], bool, bool, bool, bool, bool, bool],
) -> dict[str, float]:
    block, cell, above, noun, all_of, moved, asked = rest
    if "spread" in near:
        # What these words name is not worked out here: only a cell may hold it.
        return {"cell": 0.9}
    weights = dict(_BASE[kind])
    hinted = _HINTED[kind]
    done: set[str] = set()
    for hints_, boost in ((near, NEAR), (sentence, SENTENCE), (block, BLOCK)):
        for hint in hints_:
            for operation in hinted.get(hint, ()):
                if operation not in done:
                    weights[operation] *= max(1.0, boost * _BOOSTS.get(hint, 1.0))
                    done.add(operation)
    if cell and not done:
        weights["cell"] *= 20
    if kind == "percent" and "cagr" in near:
        for operation in ("pct", "given", "share", "across"):
            weights[operation] *= 0.05
    if noun:
        weights["count"] *= 100
    if above:
        weights["above"] *= 3000
    if all_of:
        weights["count"] *= 10
    if moved:
        weights["cell"] *= 20
    if asked:
        weights["count"] *= 8
        for operation in ("diff", "ratio", "sum", "across", "steps", "mean", "given"):
            weights[operation] *= 0.05
    whole = sum(weights.values())
    return {operation: weight / whole for operation, weight in weights.items()}


def direction(figure: Figure, scope: Scope) -> int:
    """1 when the figure is said to be a rise or a surplus, -1 for the opposite, 0 when nothing says so."""
    if figure.sign:
        return 1 if figure.sign == "+" else -1
    for names in (scope.near, scope.sentence):
        up, down = "up" in names.hints, "down" in names.hints
        if up != down:
            return 1 if up else -1
        if up:
            return 0
    return 0


def doubt(scope: Scope) -> float:
    """How probable it is that a figure comes from nowhere: more where words say that it comes from elsewhere."""
    if "elsewhere" in scope.near.hints:
        return DOUBT_ELSEWHERE
    if "elsewhere" in scope.sentence.hints:
        return 0.7
    return DOUBT_BEFORE if "before" in scope.near.hints else DOUBT


# A recipe spelled out: the cells that a figure comes from, and the arithmetic between them as text.

MOST_OPERANDS = 100
MOST_SHOWN = 12
"""Operands that a text names; longer lists say how many more there are."""


class RecipeText:
    """Spells out the recipes of one answer. ``figures`` and ``recipes`` are its figures and what was found for each."""

    def __init__(self, evidence: Evidence, figures: Sequence[Figure], recipes: Sequence[Recipe | None]) -> None:
        self.evidence = evidence
        self.figures = figures
        self.recipes = recipes

    def source(self, recipe: Recipe) -> VerdictSource:
        """The cell, or the number of the user's, that a figure repeats."""
        if recipe.kind == "said":
            return self._said(recipe.at[0])
        column, row = recipe.at
        return self.cell(recipe.table, column, row)

    def derivation(self, recipe: Recipe) -> Derivation:
        """The arithmetic behind a figure."""
        operands, parts = self._operands(recipe, 0)
        name = recipe.operation
        inner = ", ".join(parts[:MOST_SHOWN]) + (
            f", … {len(parts) - MOST_SHOWN} more" if len(parts) > MOST_SHOWN else ""
        )
        factor = "" if recipe.factor in {1.0, 100.0} else f" * {recipe.factor:.6g}"
        if recipe.kind == "count":
            call = self.evidence.place(recipe.table).table.call
            text = f"count({call}: {name})"
        elif len(parts) == 1 and name in {"sum", "mean", "avg"} and parts[0].startswith(("sum(", "avg(")):
            text = f"{parts[0]}{factor}"
        else:
            text = f"{name}({inner}){factor}"
        # Sums of money are not cut to six digits.
        value = f"{recipe.value:.6g}" if abs(recipe.value) < 1e5 else f"{round(recipe.value, 2):.15g}"
        return Derivation(name, tuple(operands), recipe.value, f"{text} = {value}")

    def _operands(self, recipe: Recipe, depth: int) -> tuple[list[VerdictSource], list[str]]:
        if recipe.kind == "column":
            return self._terms(recipe.table, recipe.at[0], recipe.at[1:])
        if recipe.kind == "record":
            return self._record(recipe)
        if recipe.kind == "scalar":
            column, row, alone = recipe.at
            sources = [self.cell(recipe.table, column, row), self.cell(alone, 0, 0)]
            return sources, [_text(source) for source in sources]
        if recipe.kind == "given":
            column, term, *said = recipe.at
            sources, parts = self._terms(recipe.table, column, (term,))
            mine = [self._said(at) for at in said]
            return [*sources, *mine], [*parts, *map(_text, mine)]
        if recipe.kind == "shown":
            return self._shown(recipe, depth)
        return [], []

    def _terms(self, number: int, column: int, places: Sequence[int]) -> tuple[list[VerdictSource], list[str]]:
        series = self.evidence.series(number, column)
        sources: list[VerdictSource] = []
        parts: list[str] = []
        for place in places:
            term = series.terms[place]
            cells = [self.cell(number, column, row) for row in term.rows[:MOST_OPERANDS]]
            sources += cells
            parts.append(_text(cells[0]) if term.kind == "row" else _group(term, cells))
        return sources, parts

    def _record(self, recipe: Recipe) -> tuple[list[VerdictSource], list[str]]:
        row, x, y = recipe.at
        fields = self.evidence.fields(recipe.table)
        columns = [at for at in (x, y) if at >= 0] or fields.plain
        sources: list[VerdictSource] = []
        parts: list[str] = []
        for column in columns:
            if row == SUMS:
                cells = [self.cell(recipe.table, column, each) for each in fields.details[:MOST_OPERANDS]]
                parts.append(f"sum({self._call(recipe.table, column)} {fields.table.columns[column].name})")
            else:
                cells = [self.cell(recipe.table, column, row)]
                parts.append(_text(cells[0]))
            sources += cells
        if recipe.operation == "share" and y < 0:
            parts.append("the sum of the row" if row != SUMS else "the sum of all")
        return sources, parts

    def _shown(self, recipe: Recipe, depth: int) -> tuple[list[VerdictSource], list[str]]:
        sources: list[VerdictSource] = []
        parts: list[str] = []
        for number in recipe.at:
            inner = self.recipes[number]
            if inner is None or depth > 1:
                parts.append(self.figures[number].text)
            elif inner.kind == "earlier":
                sources += self.evidence.verdicts[inner.at[0]].origins
                parts.append(self.figures[number].text)
            elif inner.kind in {"cell", "said"}:
                sources.append(self.source(inner))
                parts.append(_text(sources[-1]))
            else:
                found, texts = self._operands(inner, depth + 1)
                sources += found
                parts.append(f"{inner.operation}({', '.join(texts[:MOST_SHOWN])})")
        return sources, parts

    def _said(self, at: int) -> VerdictSource:
        given = self.evidence.said.figures[at]
        return VerdictSource(PERSON, given.start, given.end, float(given.value), turn=self.evidence.said.turns[at])

    def _call(self, number: int, column: int) -> str:
        table = self.evidence.place(number).table
        return table.call or table.columns[column].name

    def cell(self, number: int, column: int, row: int) -> VerdictSource:
        number, column, row = self.evidence.origin(number, column, row)
        place = self.evidence.place(number)
        table = place.table
        held = table.columns[column]
        start, end = held.span(row)
        # In the record of all single rows, the name of a column is the call that it comes from.
        name = held.name if table.call else ""
        call = self._call(number, column)
        turn = place.turn if call == PERSON else 0
        line = table.numbers[row] if table.numbers else -1
        return VerdictSource(call, start, end, held.values[row], name, _row_name(table, row), turn, line)


def _row_name(table: Table, row: int) -> str:
    return " / ".join((*([table.moments[row]] if table.moments[row] else []), *table.labels[row]))[:60]


def _text(source: VerdictSource) -> str:
    return f"{source.call}[{source.value:.15g}]"


def _group(term: Term, cells: Sequence[VerdictSource]) -> str:
    name = "avg" if term.kind == "mean" else "sum"
    listed = ", ".join(_text(cell) for cell in cells[:MOST_SHOWN])
    more = f", … {len(term.rows) - MOST_SHOWN} more" if len(term.rows) > MOST_SHOWN else ""
    return f"{name}({listed}{more})"
