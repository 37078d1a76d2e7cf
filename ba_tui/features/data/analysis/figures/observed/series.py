"""A column as something to reckon with: its values in order, its sum and mean, the sums of groups of rows.

Which of them a sentence speaks of is judged in derive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.observed.tables import Table

LEADING = (2, 3, 4, 5, 10)
"""How many first rows an answer may take together."""
MOST_GROUPS = 60


@frozen
class Term:
    """A row's value, or one worked out of several rows: ``kind`` is ``row``, ``sum``, ``mean``, ``group`` or ``first``.
    ``name`` is what the rows of a group share."""

    value: float
    rows: tuple[int, ...]
    kind: str = "row"
    name: str = ""


def _telling(labels: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Labels without those that all rows share."""
    width = min((len(row) for row in labels), default=0)
    kept = [at for at in range(width) if len({row[at] for row in labels}) > 1]
    return labels if len(kept) == width else tuple(tuple(row[at] for at in kept) for row in labels)


class Series:
    """The numbers of one column without totals and gaps. ``terms`` begins with its rows."""

    def __init__(self, table: Table, at: int, named: Mapping[str, tuple[int, ...]]) -> None:
        column = table.columns[at]
        self.column = column
        values = column.values
        self.rows = [row for row, value in enumerate(values) if value == value and row not in table.totals]
        held = [values[row] for row in self.rows]
        self.count = len(held)
        self.total = sum(held)
        self.mean = self.total / self.count if held else 0.0
        self.terms = [Term(value, (row,)) for value, row in zip(held, self.rows, strict=True)]
        self.terms += [
            Term(values[row], (row,), "row", "total") for row in sorted(table.totals) if values[row] == values[row]
        ]
        self.plain = len(self.terms)
        everything = tuple(self.rows)
        if self.count > 1:
            self.terms += [Term(self.total, everything, "sum"), Term(self.mean, everything, "mean")]
            self._groups(values, named)
        self.low, self.high = min(held, default=0.0), max(held, default=0.0)
        ranked = sorted(held, reverse=True)
        self.ranked = set(ranked[:2])
        self.sorted = held == ranked or held == ranked[::-1]
        order = sorted((term.value, place) for place, term in enumerate(self.terms))
        self._values = [value for value, _ in order]
        self._places = [place for _, place in order]
        moments = [table.moments[row] for row in self.rows]
        self.timed = bool(moments) and all(moments) and len(set(moments)) == len(moments)
        self.position = {row: place for place, row in enumerate(self.rows)}
        self.marked = self._marked(held)
        self.moments = table.moments
        self.labels = _telling(table.labels)
        self.groups = sum(term.kind == "group" for term in self.terms)

    def _marked(self, held: list[float]) -> tuple[int, ...]:
        """The first and last two rows, the largest and the smallest: what comes to mind in a long column."""
        if not held:
            return ()
        ends = (0, 1, self.count - 2, self.count - 1)
        found = (*(at for at in ends if 0 <= at < self.count), held.index(self.high), held.index(self.low))
        return tuple(dict.fromkeys((*found, *range(self.count, self.plain))))

    def _groups(self, values: Sequence[float], named: Mapping[str, tuple[int, ...]]) -> None:
        inside = set(self.rows)
        seen: set[tuple[int, ...]] = set()
        for name, rows in named.items():
            if len(rows) < 2:
                continue
            kept = tuple(row for row in rows if row in inside)
            if 1 < len(kept) < self.count and kept not in seen:
                seen.add(kept)
                self.terms.append(Term(sum(values[row] for row in kept), kept, "group", name))
            if len(seen) >= MOST_GROUPS:
                break
        for count in LEADING:
            if count < self.count:
                kept = tuple(self.rows[:count])
                self.terms.append(Term(sum(values[row] for row in kept), kept, "first", str(count)))

    def between(self, low: float, high: float) -> list[int]:
        """The terms whose values lie in a range, by their place in ``terms``."""
        if low > high:
            low, high = high, low
        first = bisect_left(self._values, low)
        return self._places[first : bisect_right(self._values, high, first)]
