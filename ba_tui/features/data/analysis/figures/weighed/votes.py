"""Which tables and columns the figures of an answer stand in, whatever words say: each figure votes for where it is
found.

A figure has no vote on itself. Votes of its block, of figures before the same noun, and of the whole answer are told
apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.weighed.priors import kind_of
from ba_tui.features.data.analysis.figures.weighed.weighing import Reading

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
