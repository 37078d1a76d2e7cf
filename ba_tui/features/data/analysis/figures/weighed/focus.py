"""Which rows and columns of a table the surroundings of a figure speak of, as probabilities.

A name, a date or a word of the column's name multiplies the weight of what it names, the more the nearer it stands; the
weights of a table are then brought to a sum of 1. Nothing here depends on other tables, so that more evidence takes
nothing away from what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.observed.columns import Column, moment_of
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.weighed.scope import Names, Scope
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.units import Unit
from ba_tui.features.data.analysis.figures.words.wording import concepts

ROWS = (60.0, 20.0, 6.0, 3.0)
"""By how much a row counts more when it is named in the clause, the sentence, the block or above it."""
WORDS = (15.0, 8.0, 2.0, 1.0)
"""By how much a column counts more for each word of its name that is said there."""
KEY_COLUMN = 0.05
"""A date or an identifier is seldom what a figure is about."""


_COMMON = listed("on in of is at to a an by per the and no or for from with as it be was are not all one has had")
"""Words of column names that say nothing when an answer has them."""


@frozen
class Rows:
    """The probability of each row: ``even`` unless it stands in ``named``. ``near`` and ``sentence`` are the rows
    that the clause and the sentence name."""

    even: float
    named: Mapping[int, float]
    near: tuple[int, ...] = ()
    sentence: tuple[int, ...] = ()

    def __getitem__(self, row: int) -> float:
        return self.named.get(row, self.even)


@frozen
class Focus:
    """Probabilities that a figure is about a table's rows and columns."""

    rows: Rows
    columns: tuple[float, ...]


class Focusing:
    """Works out focuses for the tables of a session; what figures of one clause share is worked out once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._rows: dict[tuple[int, object], Rows] = {}
        self._words: dict[object, tuple[float, ...]] = {}
        self._found: dict[tuple[str, frozenset[str]], bool] = {}
        self._prefixes: dict[frozenset[str], frozenset[str]] = {}
        self._fits: dict[tuple[int, Unit | None], tuple[float, ...]] = {}
        self._units: dict[int, tuple[Unit | None, ...]] = {}

    def fits(self, number: int, table: Table, unit: Unit | None) -> tuple[float, ...]:
        """By how much a unit speaks for each column."""
        held = self._fits.get((number, unit))
        if held is None:
            held = self._fits[number, unit] = tuple(fit_of(unit, column) for column in table.columns)
        return held

    def units(self, number: int, table: Table) -> tuple[Unit | None, ...]:
        """The units that columns of a table name, each once."""
        held = self._units.get(number)
        if held is None:
            held = self._units[number] = tuple(dict.fromkeys(column.unit for column in table.columns))
        return held

    def rows(self, number: int, table: Table, scope: Scope) -> Rows:
        """The probability of each row."""
        key = (number, (scope.spans, scope.cell))
        held = self._rows.get(key)
        if held is None:
            held = self._rows[key] = self._weigh_rows(number, table, scope)
        return held

    def _weigh_rows(self, number: int, table: Table, scope: Scope) -> Rows:
        weights: dict[int, float] = {}
        found: list[tuple[int, ...]] = []
        done: set[str] = set()
        for names, weight in zip(scope.parts, ROWS, strict=True):
            rows: dict[int, None] = {}
            for key, named in self._named(number, names):
                rows.update(dict.fromkeys(named))
                if key not in done:
                    done.add(key)
                    for row in named:
                        weights[row] = weights.get(row, 1.0) * (1 + weight / len(named))
            found.append(tuple(rows))
        summed = "sum" in scope.near.hints or "sum" in scope.sentence.hints
        for row in table.totals:
            factor = ROWS[1] if summed else 1.0 if row in found[0] else 0.5
            weights[row] = weights.get(row, 1.0) * factor
        whole = sum(weights.values()) + table.rows - len(weights)
        return Rows(1 / whole, {row: weight / whole for row, weight in weights.items()}, found[0], found[1])

    def _named(self, number: int, names: Names) -> Iterable[tuple[str, tuple[int, ...]]]:
        if names.names:
            by_name = self.evidence.rows_named(number)
            for name in names.names:
                if rows := by_name.get(name):
                    yield name, rows
        if names.moments:
            dated = self.evidence.rows_dated(number)
            for moment in names.moments:
                if rows := dated.get(moment):
                    yield moment, rows

    def words(self, table: Table, scope: Scope) -> tuple[float, ...]:
        """How much more each column counts for the words of its name that are said around a figure."""
        names = tuple(column.name for column in table.columns)
        key = (names, scope.spans, scope.cell)
        held = self._words.get(key)
        if held is None:
            held = self._words[key] = tuple(self._said(column, scope) for column in table.columns)
        return held

    def _said(self, column: Column, scope: Scope) -> float:
        weight = 1.0
        if moment := _moment(column.name):
            return next(
                (1 + step * 2 for names, step in zip(scope.parts, WORDS, strict=True) if moment in names.moments), 1.0
            )
        for word in column.words:
            if word not in _COMMON:
                for names, step in zip(scope.parts, WORDS, strict=True):
                    if self._is_said(word, names.words):
                        weight *= 1 + step
                        break
        return weight

    def _is_said(self, word: str, words: frozenset[str]) -> bool:
        key = (word, words)
        held = self._found.get(key)
        if held is None:
            held = self._found[key] = _is_said(word, self._stems(words), words)
        return held

    def _stems(self, words: frozenset[str]) -> frozenset[str]:
        """The words of a part of the answer, and their beginnings of three to five letters."""
        held = self._prefixes.get(words)
        if held is None:
            found = set(words)
            for word in words:
                if len(word) > 3 and word.isascii():
                    found.update((word[:3], word[:4], word[:5]))
            held = self._prefixes[words] = frozenset(found)
        return held


@lru_cache(maxsize=4096)
def _moment(name: str) -> str:
    return moment_of(name)


def _is_said(word: str, stems: frozenset[str], words: frozenset[str]) -> bool:
    if word in words or f"{word}s" in words or (word.endswith("s") and word[:-1] in words):
        return True
    for rest, concept in concepts().get(word, ()):
        if not rest and f"@{concept}" in words:
            return True
    if len(word) < 3 or not word.isascii():
        return False
    if word[:5] in stems:
        return True
    return len(word) > 4 and word[:4] in words


def fit_of(unit: Unit | None, column: Column) -> float:
    """By how much a figure's unit speaks for a column."""
    if column.time or column.key:
        return KEY_COLUMN
    if unit is None:
        return 1.0
    held = column.unit
    if unit.family == "percent":
        if held is not None:
            return 5.0 if held.family == "percent" else 0.2
        values = [value for value in column.values[:50] if value == value]
        return 2.0 if values and all(-1 <= value <= 1 for value in values) else 0.5
    if held is None:
        return 1.0
    return 4.0 if held.family == unit.family else 0.1
