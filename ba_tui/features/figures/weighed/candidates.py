"""The tables that a figure may be about, how probable each is, and where in them to look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.columns import Column
from ba_tui.features.figures.observed.evidence import RECORD, TURNED, Evidence
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.units import YEARS, FigureUnit, factors
from ba_tui.features.figures.weighed.scope import Focus, FocusFinder, Rows, Scope
from ba_tui.features.figures.weighed.weighing import ALL, Explanations, Recipe, RoundingRange, kind_of
from ba_tui.features.figures.wording import concepts, hints

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
    figure: Figure, readings: Sequence[RoundingRange], evidence: Evidence, tables: Sequence[int]
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
    """The first and the last of many tables: a value in very many of them says little."""
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
    """All votes of an answer. ``blocks`` are the numbers of the blocks that its figures are in."""

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
COLUMNS, TURNED_COLUMNS = 3, 8
"""Columns of a table in which derivations are looked for."""
CITED, NOT_CITED = 0.9, 1e-4
"""That a figure is about a call that its block names, and about another one."""
NEW, OLD = 0.15, 0.05
"""That it is about a table of this turn, the first one; and about one of an earlier turn."""
BLOCK_VOTES, ALL_VOTES = 0.4, 0.3
NAMED = (0.3, 0.2, 0.3)
"""How much it adds that the sentence, the block or the text above names the table, or a row of it."""
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
    units: tuple[FigureUnit | None, ...]

    def columns(self, before: int) -> list[int]:
        """The likeliest columns that can be reckoned with, ``before`` among them."""
        table, weights = self.table, self.focus.columns
        if self.number == RECORD or table.loose:
            return []
        most = COLUMNS if self.number < TURNED else TURNED_COLUMNS
        ranked = sorted(range(len(table.columns)), key=lambda at: -weights[at])[:most]
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
        readings: Sequence[Sequence[RoundingRange]],
        blocks: Sequence[int],
    ) -> None:
        self.evidence = evidence
        self.figures = figures
        self.scopes = scopes
        self.focusing = FocusFinder(evidence)
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

    def turned(self, found: Candidate, at: int) -> Iterator[Candidate]:
        """Yield the candidate ``found`` with its rows as columns, for each group of columns that measure the same."""
        for number in () if found.number == RECORD else self.evidence.turned(found.number):
            yield self._turned(found, number, at)

    def _turned(self, found: Candidate, number: int, at: int) -> Candidate:
        table, scope = self.evidence.place(number).table, self.scopes[at]
        words = self.focusing.words(table, scope)
        fits = self.focusing.fits(number, table, self.figures[at].unit)
        weights = [
            word * fit * len(words) * found.focus.rows[row]
            for row, (word, fit) in enumerate(zip(words, fits, strict=True))
        ]
        whole, even = sum(weights), EVEN / len(weights)
        columns = tuple((1 - EVEN) * weight / whole + even for weight in weights)
        focus = Focus(self.focusing.rows(number, table, scope), columns)
        return Candidate(number, found.likely, table, focus, self.focusing.units(number, table))

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


# The cells that print as a figure, after rounding and conversion of units.

BROKEN_COUNT = 0.1
"""That a small whole number without a unit is a rounded one: it rather counts something."""
MOST_HITS = 500
"""Cells of a table that are weighed one by one; they stand for the others that print alike."""
NO_AGE = 0.2
"""That a figure in years is in a column whose name speaks of no time."""
_AGES = listed("age ages life lifeexp tenure duration years year time span old alter dauer 年龄 寿命 edad vida")


def cells(weighing: Explanations, evidence: Evidence, found: Candidate, operations: Mapping[str, float]) -> None:
    """Collect the cells of a table that print as the figure."""
    figure, table, focus = weighing.figure, found.table, found.focus
    prior = found.likely * operations.get("cell", 0.0)
    summed = prior + found.likely * operations.get("sum", 0.0)
    counted = figure.unit is None and figure.step == 1 and abs(figure.value) < 1000
    columns = table.columns
    for held in found.units:
        for factor, share in factors(figure.unit, held, figure.scale, table.scale):
            for reading in weighing.readings:
                hits = evidence.within(found.number, reading.low / factor, reading.high / factor)
                share *= max(1.0, len(hits) / MOST_HITS)
                weighing.work += min(len(hits), MOST_HITS)
                for size, at, row in hits[:MOST_HITS]:
                    column = columns[at]
                    value = column.values[row]
                    opposed = figure.sign and value and (value < 0) != (figure.sign == "-")
                    if column.unit != held or (opposed and not weighing.paired):
                        continue
                    weight = (summed if row in table.totals else prior) * share * reading.weight
                    weight *= focus.columns[at] * focus.rows[row]
                    if figure.unit is YEARS and not column.time and not _AGES.intersection(column.words):
                        weight *= NO_AGE
                    if counted and size % 1:
                        weight *= BROKEN_COUNT
                    weighing.add(weight, Recipe("cell", "", found.number, (at, row), value * factor, factor))


# Small whole numbers: how many rows or columns there are, how many lie above the mean or a limit, spans of years.

LARGEST_COUNT = 100_000
MEANT = 0.4
"""Columns less probable than this part of the likeliest one are not compared with their mean."""


def may_count(figure: Figure) -> bool:
    """Whether a figure can be a count at all."""
    family = figure.unit.family if figure.unit else ""
    return figure.step == 1 and not figure.sign and 0 <= figure.value <= LARGEST_COUNT and family in {"", "years"}


class CountCandidates:
    """The counts that a figure may be. ``before`` is the word before it."""

    def __init__(self, weighing: Explanations, scope: Scope, before: str) -> None:
        self.weighing = weighing
        self.figure = weighing.figure
        self.value = int(self.figure.value)
        self.before = before
        around = scope.near.hints | scope.sentence.hints
        mean = "mean" in around
        self.sides = [side for side, hint in ((1, "up"), (-1, "down")) if mean and hint in around]
        self.kinds = _kinds_of(self.figure.noun)
        self.asked = "counting" in around

    def all(self, found: Candidate, operations: Mapping[str, float], below: Collection[int]) -> None:
        """Collect the counts of one table; ``below`` are the numbers of rows below headings that the sentence says."""
        prior, table, focus, number = found.likely, found.table, found.focus, found.number
        rows = table.rows - len(table.totals)
        self.weighing.work += table.rows * table.width // 8
        if self.value == rows > 1 and not table.loose:
            self._add(prior * operations.get("count", 0.0) * self._counted(table), "rows", number)
        if self.asked and self.value in below:
            self._add(prior * 0.6, "rows below a heading", number)
        if self.figure.noun and focus.rows.near and self.value == len(focus.rows.near) > 1 and not table.loose:
            self._add(prior * 0.2, "rows named so", number)
        if "columns" in self.kinds and self.value == table.width:
            self._add(prior * operations.get("count", 0.0) * 0.5, "columns", number)
        if rows > 2:
            self.beside_mean(found, operations)
            self._steps(prior, table, focus, number)
        years = [int(moment[:4]) for moment in table.moments if moment[:4].isdigit()]
        if len(years) > 1 and (self.figure.unit or "年" in self.figure.noun):
            span = max(years) - min(years)
            if self.value in (span, span + 1):
                self._add(prior * 0.3, "span", number)
            named = {int(table.moments[row][:4]) for row in focus.rows.named if table.moments[row][:4].isdigit()}
            if len(named) == 2 and self.value == max(named) - min(named):
                self._add(prior * 0.3, "span", number)

    def _add(self, probability: float, name: str, number: int, at: int = -1) -> None:
        self.weighing.add(probability, Recipe("count", name, number, (at,), float(self.value)))

    def _counted(self, table: Table) -> float:
        """The probability that this noun counts the rows of a table."""
        noun = self.figure.noun
        if "rows" in self.kinds or self.asked:
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

    def beside_mean(self, found: Candidate, operations: Mapping[str, float]) -> None:
        """Collect the rows above or below the mean, where the words speak of it."""
        table, focus, number = found.table, found.focus, found.number
        most = max(focus.columns, default=0.0)
        for at, column in enumerate(table.columns if self.sides else ()):
            values = _values(column, table)
            if focus.columns[at] < MEANT * most or column.time or len(values) < (3 if number < TURNED else 2):
                continue
            mean = sum(values) / len(values)
            for side in self.sides:
                if self.value == sum((value - mean) * side > 0 for value in values):
                    likely = found.likely * operations.get("above", 0.0) * focus.columns[at]
                    self._add(likely, f"{'above' if side > 0 else 'below'} the mean", number, at)

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
