"""Small whole numbers: how many rows or columns there are, how many lie above the mean or a limit, spans of years."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.observed.columns import Column
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.weighed.candidates import Candidate
from ba_tui.features.data.analysis.figures.weighed.focus import Focus
from ba_tui.features.data.analysis.figures.weighed.priors import ALL
from ba_tui.features.data.analysis.figures.weighed.scope import Scope
from ba_tui.features.data.analysis.figures.weighed.weighing import Recipe, Weighing
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.wording import concepts, hints

MOST = 100_000
_ABOVE = listed(
    "über over above exceeds exceed least reached reach reaches passed pass erreicht erreichten 高 超 达 "
    "dessus encima 上 以上"
)
_BELOW = listed("unter below under less fewer fail failed missed 低 不 dessous debajo 下 以下")


def may_count(figure: Figure) -> bool:
    """Whether a figure can be a count at all."""
    family = figure.unit.family if figure.unit else ""
    return figure.step == 1 and not figure.sign and 0 <= figure.value <= MOST and family in {"", "years"}


class Counting:
    """The counts that a figure may be. ``before`` is the word before it, ``limits`` the numbers that rows may be
    compared with: the person's, and those of the same sentence."""

    def __init__(self, weighing: Weighing, scope: Scope, before: str, limits: Sequence[float]) -> None:
        self.weighing = weighing
        self.figure = weighing.figure
        self.value = int(self.figure.value)
        self.before = before
        self.limits = limits
        around = scope.near.hints | scope.sentence.hints
        self.mean = "mean" in around
        up = "up" in around or bool(scope.sentence.words & _ABOVE)
        down = "down" in around or bool(scope.sentence.words & _BELOW)
        self.sides = (1,) * up + (-1,) * down
        self.kinds = _kinds_of(self.figure.noun)

    def all(self, found: Candidate, operations: Mapping[str, float]) -> None:
        """Collect the counts of one table."""
        prior, table, focus, number = found.likely, found.table, found.focus, found.number
        rows = table.rows - len(table.totals)
        self.weighing.work += table.rows * table.width // 8
        if self.value == rows > 1 and not table.loose:
            self._add(prior * operations.get("count", 0.0) * self._counted(table), "rows", number)
        if "columns" in self.kinds and self.value == table.width:
            self._add(prior * operations.get("count", 0.0) * 0.5, "columns", number)
        if rows > 2:
            self._compared(prior, operations, table, focus, number)
            self._steps(prior, table, focus, number)
        years = [int(moment[:4]) for moment in table.moments if moment[:4].isdigit()]
        if len(years) > 1 and (self.figure.unit or "年" in self.figure.noun):
            span = max(years) - min(years)
            if self.value in (span, span + 1):
                self._add(prior * 0.3, "span", number)

    def _add(self, probability: float, name: str, number: int, at: int = -1) -> None:
        self.weighing.add(probability, Recipe("count", name, number, (at,), float(self.value)))

    def _counted(self, table: Table) -> float:
        """The probability that this noun counts the rows of a table."""
        noun = self.figure.noun
        if "rows" in self.kinds:
            return 0.6
        if noun:
            heads = set(table.label_words)
            stem = noun[:-1] if noun.endswith("s") else noun
            meant = {concept for form in (noun, stem) for rest, concept in concepts().get(form, ()) if not rest}
            said = {concept for word in heads for rest, concept in concepts().get(word, ()) if not rest}
            if (
                noun in heads
                or stem in heads
                or meant & said
                or any(len(stem) > 3 and word.startswith(stem[:4]) for word in heads)
            ):
                return 0.8
        return 0.3 if self.before in ALL else 0.02

    def _compared(self, prior: float, operations: Mapping[str, float], table: Table, focus: Focus, number: int) -> None:
        """Rows above or below the mean, where the words speak of it, or a limit."""
        for at, column in enumerate(table.columns):
            values = _values(column, table)
            if focus.columns[at] < 0.02 or column.time or len(values) < 3:
                continue
            for side in self.sides:
                name = "above" if side > 0 else "below"
                mean = sum(values) / len(values)
                if self.mean and self.value == sum((value - mean) * side > 0 for value in values):
                    self._add(prior * operations.get("above", 0.0) * focus.columns[at], f"{name} the mean", number, at)
                for limit in self.limits:
                    inside = min(values) <= limit <= max(values)
                    if inside and self.value in (
                        sum((v - limit) * side > 0 for v in values),
                        sum((v - limit) * side >= 0 for v in values),
                    ):
                        self._add(prior * 0.1 * focus.columns[at] / len(self.limits), f"{name} {limit:g}", number, at)

    def _steps(self, prior: float, table: Table, focus: Focus, number: int) -> None:
        """Rises or falls from one date to the next, where the noun counts them."""
        if not ({"up", "down"} & self.kinds) or not all(table.moments):
            return
        for at, column in enumerate(table.columns):
            if focus.columns[at] > 0.02 and not column.time:
                values = _values(column, table)
                way = 1 if "up" in self.kinds else -1
                if self.value == sum((b - a) * way > 0 for a, b in pairwise(values)):
                    self._add(prior * 0.6 * focus.columns[at], "rises" if way > 0 else "falls", number, at)


def _values(column: Column, table: Table) -> list[float]:
    return [value for row, value in enumerate(column.values) if value == value and row not in table.totals]


def _kinds_of(noun: str) -> set[str]:
    if not noun:
        return set()
    return {kind for rest, kind in hints().get(noun[0] if noun[0] > "\u2fff" else noun, ()) if not rest}
