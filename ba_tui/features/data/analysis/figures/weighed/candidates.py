"""The tables that a figure may be about, how probable each is, and where in them to look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.observed.evidence import RECORD, Evidence
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.weighed.focus import Focus, Focusing, Rows
from ba_tui.features.data.analysis.figures.weighed.priors import kind_of
from ba_tui.features.data.analysis.figures.weighed.scope import Scope
from ba_tui.features.data.analysis.figures.weighed.weighing import Reading
from ba_tui.features.data.analysis.figures.words.units import Unit

# Each figure of an answer votes for the tables and columns that contain it, never for its own. Votes of its block, of
# figures before the same noun, and of the whole answer are counted apart.

LITTLE = 0.3
"""The vote of a figure of two digits; one of a single digit has none."""
PRIOR = 0.3
MOST_HELD = 40

Hits = Mapping[int, Mapping[int, float]]
"""By table, by column: how specific the hit is."""


def specific(figure: Figure) -> float:
    """How much it says that a figure is found somewhere: by its digits."""
    if not figure.value.is_finite():
        return 0.0
    digits = len(figure.value.normalize().as_tuple().digits)
    return 1.0 if digits > 2 else LITTLE if digits == 2 or figure.step < 1 else 0.0


def hits_of(
    figure: Figure, readings: Sequence[Reading], evidence: Evidence, tables: Sequence[int]
) -> dict[int, dict[int, float]]:
    """Where a figure is found, unit conversions apart. ``tables``: look only there, unless it is empty."""
    weight = specific(figure)
    found: dict[int, dict[int, float]] = {}
    if not weight or not readings:
        return found
    for factor in (1.0, 100.0) if kind_of(figure) == "percent" else (1.0,):
        low, high = readings[0].low / factor, readings[0].high / factor
        for number in tables or _ends(evidence.holding(low, high)):
            for _, column, _ in evidence.within(number, low, high):
                found.setdefault(number, {})[column] = weight
    return found


def _ends(numbers: Iterable[int]) -> Sequence[int]:
    """The first and the last of many tables: what stands in very many says little."""
    held = list(numbers)
    return held if len(held) <= 2 * MOST_HELD else [*held[:MOST_HELD], *held[-MOST_HELD:]]


class _Poll:
    """Votes of some figures: for tables, and for the columns of each."""

    def __init__(self) -> None:
        self.whole = 0.0
        self.tables: dict[int, float] = defaultdict(float)
        self.columns: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, weight: float, hits: Hits) -> None:
        self.whole += weight
        for number, columns in hits.items():
            self.tables[number] += weight
            held = self.columns[number]
            for column, vote in columns.items():
                held[column] += vote

    def share(self, number: int, weight: float, hits: Hits) -> float:
        """The part of the votes that a table has, those of one figure left out."""
        own = weight if number in hits else 0.0
        return (self.tables.get(number, 0.0) - own + 0.05) / (self.whole - weight + PRIOR)

    def column_shares(self, number: int, width: int, hits: Hits) -> list[float]:
        """The part of a table's votes that each column has, those of one figure left out."""
        held = self.columns.get(number)
        if not held:
            return [0.0] * width
        own = hits.get(number, {})
        votes = [held.get(at, 0.0) - own.get(at, 0.0) for at in range(width)]
        whole = sum(votes) + 1.0
        return [vote / whole for vote in votes]


class Votes:
    """All votes of an answer. ``blocks`` are the numbers of the blocks that its figures stand in."""

    def __init__(self, figures: Sequence[Figure], blocks: Sequence[int], hits: Sequence[Hits]) -> None:
        self._figures = figures
        self._blocks = blocks
        self._hits = hits
        self._weights = [specific(figure) for figure in figures]
        self._by_block: dict[int, _Poll] = defaultdict(_Poll)
        self._by_noun: dict[str, _Poll] = defaultdict(_Poll)
        self._all = _Poll()
        for figure, block, weight, found in zip(figures, blocks, self._weights, hits, strict=True):
            for poll in (self._by_block[block], self._by_noun[_noun(figure)], self._all):
                poll.add(weight, found)

    def table(self, at: int, number: int) -> tuple[float, float]:
        """The part of the votes that a table has in the block of figure ``at`` and in the whole answer."""
        weight, hits = self._weights[at], self._hits[at]
        return self._by_block[self._blocks[at]].share(number, weight, hits), self._all.share(number, weight, hits)

    def columns(self, at: int, number: int, width: int) -> list[float]:
        """By how much each column of a table counts more for figure ``at``."""
        hits = self._hits[at]
        block = self._by_block[self._blocks[at]].column_shares(number, width, hits)
        noun = self._by_noun[_noun(self._figures[at])].column_shares(number, width, hits)
        whole = self._all.column_shares(number, width, hits)
        return [1 + 6 * a + 10 * b + 4 * c for a, b, c in zip(block, noun, whole, strict=True)]


def _noun(figure: Figure) -> str:
    return f"{kind_of(figure)} {figure.noun}"


FEW = 24
"""Up to so many tables, all of them are looked at for each figure."""
MOST = 6
"""Tables in which derivations are looked for."""
MOST_FOUND = 20
NEIGHBOURS = 4
LATEST = 6
COLUMNS = 3
"""Columns of a table in which derivations are looked for."""
CITED, NOT_CITED = 0.9, 1e-4
"""That a figure is about a call that its block names, and about another one."""
NEW, OLD = 0.15, 0.05
"""That it is about a table of this turn, the first one; and about one of an earlier turn."""
BLOCK_VOTES, ALL_VOTES = 0.4, 0.3
NAMED = (0.3, 0.2, 0.3)
"""How much it adds that the sentence, the block or what stands above names the table, or a row of it."""
EVEN = 0.15
"""The part of the probability that every column has alike, whatever words and votes say."""


@frozen
class Candidate:
    """A table that a figure may be about: its number, the probability of that, and where to look. ``units`` are
    those that its columns name."""

    number: int
    likely: float
    table: Table
    focus: Focus
    units: tuple[Unit | None, ...]

    def columns(self, before: int) -> list[int]:
        """The likeliest columns that can be reckoned with, ``before`` among them."""
        table, weights = self.table, self.focus.columns
        if self.number == RECORD or table.loose:
            return []
        ranked = sorted(range(len(table.columns)), key=lambda at: -weights[at])[:COLUMNS]
        if before >= 0 and before not in ranked:
            ranked.append(before)
        return [at for at in ranked if not table.columns[at].time]


class Candidates:
    """Finds the candidates for the figures of one answer."""

    most = MOST

    def __init__(
        self,
        evidence: Evidence,
        figures: Sequence[Figure],
        scopes: Sequence[Scope],
        readings: Sequence[Sequence[Reading]],
        blocks: Sequence[int],
    ) -> None:
        self.evidence = evidence
        self.figures = figures
        self.scopes = scopes
        self.focusing = Focusing(evidence)
        self.hits = [
            hits_of(figure, readings[at], evidence, self._cited(scopes[at])) for at, figure in enumerate(figures)
        ]
        self.votes = Votes(figures, blocks, self.hits)

    def _cited(self, scope: Scope) -> list[int]:
        return [number for call in scope.calls for number in self.evidence.by_call[call]]

    def of(self, at: int) -> list[Candidate]:
        """The candidates for a figure, the likeliest first."""
        scope = self.scopes[at]
        numbers = self._numbers(at, scope)
        ranked = sorted(
            ((number, self._likely(number, at)) for number in numbers), key=lambda each: (-each[1], each[0])
        )
        found = [self._candidate(number, likely, at) for number, likely in ranked]
        if self.evidence.record is not None and not scope.calls:
            found.insert(min(len(found), MOST - 1), self._candidate(RECORD, 0.6, at))
        return found

    def _numbers(self, at: int, scope: Scope) -> set[int]:
        evidence = self.evidence
        count = len(evidence.places)
        if scope.calls:
            return set(self._cited(scope))
        if count <= FEW:
            return set(range(count))
        numbers = {*list(self.hits[at])[:MOST_FOUND], *range(count - LATEST, count)}
        for other in range(max(0, at - NEIGHBOURS), min(len(self.hits), at + NEIGHBOURS + 1)):
            numbers.update(list(self.hits[other])[: MOST_FOUND // 2])
        for names in (scope.sentence, scope.block, scope.above):
            for name in names.names:
                numbers.update(evidence.topics.get(name, ())[-MOST_FOUND:])
        return numbers

    def _likely(self, number: int, at: int) -> float:
        """The probability that a figure is about a table: by names that are said, and by the figures around it."""
        evidence, scope = self.evidence, self.scopes[at]
        place = evidence.places[number]
        if scope.calls:
            return CITED if place.table.call in scope.calls else NOT_CITED
        base = NEW / (1 + place.order / 8) if place.turn == evidence.turn else OLD
        block, whole = self.votes.table(at, number)
        said = 0.0
        for names, weight in zip((scope.sentence, scope.block, scope.above), NAMED, strict=True):
            named = names.names and (place.topic & names.names or names.names & evidence.rows_named(number).keys())
            said = max(said, weight) if named else said
        return min(0.95, base + BLOCK_VOTES * block + ALL_VOTES * whole + said)

    def _candidate(self, number: int, likely: float, at: int) -> Candidate:
        table = self.evidence.place(number).table
        scope = self.scopes[at]
        words = self.focusing.words(table, scope)
        if number == RECORD:
            whole = sum(words)
            focus = Focus(Rows(1.0, {}), tuple(word / whole for word in words))
            return Candidate(number, likely, table, focus, ())
        fits = self.focusing.fits(number, table, self.figures[at].unit)
        votes = self.votes.columns(at, number, len(words))
        weights = [word * vote * fit for word, vote, fit in zip(words, votes, fits, strict=True)]
        whole, even = sum(weights), EVEN / len(weights)
        focus = Focus(
            self.focusing.rows(number, table, scope), tuple((1 - EVEN) * weight / whole + even for weight in weights)
        )
        return Candidate(number, likely, table, focus, self.focusing.units(number, table))
