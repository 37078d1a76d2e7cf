"""A table by rows: what two of its columns give in each row, and the sums of columns.

Which of them a sentence speaks of is judged in records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ba_tui.features.data.analysis.figures.observed.tables import Table

MOST_ROWS = 200
SUMS = -1
"""The row of the sums of all rows."""


class Fields:
    """A table by rows: what two columns give in each of them, worked out when it is first asked for."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.plain = [at for at, column in enumerate(table.columns) if not column.time and not column.key]
        self.alike = self._are_alike()
        self.details = [row for row in range(min(table.rows, MOST_ROWS)) if row not in table.totals]
        self._made: dict[tuple[str, int, int], tuple[list[float], list[tuple[float, int]]]] = {}
        self._sums: dict[int, float] = {}

    def _are_alike(self) -> bool:
        """Whether all columns may measure the same, so that a row can be added up: by unit and size."""
        columns = [self.table.columns[at] for at in self.plain]
        if len(columns) < 2 or len({column.unit for column in columns}) > 1:
            return False
        largest = [max((abs(value) for value in column.values if value == value), default=0.0) for column in columns]
        return max(largest) < 1000 * (min(largest) or 1.0)

    def value(self, at: int, row: int) -> float:
        """The value of a column in a row, or the sum of its rows that are no totals."""
        values = self.table.columns[at].values
        if row != SUMS:
            return values[row]
        if at not in self._sums:
            self._sums[at] = sum(values[row] for row in self.details if values[row] == values[row])
        return self._sums[at]

    def comparable(self, x: int, y: int) -> bool:
        """Whether two columns may measure the same, such as plan and actual: by unit and size."""
        if self.table.columns[x].unit != self.table.columns[y].unit:
            return False
        a, b = abs(self.value(x, SUMS)), abs(self.value(y, SUMS))
        return 0.3 < a / b < 3.3 if b else False

    def between(self, form: str, x: int, y: int, low: float, high: float) -> list[tuple[float, int]]:
        """What the columns ``x`` and ``y`` give within a range, with the rows: ``ratio``, ``diff``, ``sum`` or
        ``product``."""
        key = (form, x, y)
        held = self._made.get(key)
        if held is None:
            found = sorted(self._work_out(form, x, y))
            held = self._made[key] = [value for value, _ in found], found
        values, found = held
        first = bisect_left(values, low)
        return found[first : bisect_right(values, high, first)]

    def _work_out(self, form: str, x: int, y: int) -> list[tuple[float, int]]:
        found: list[tuple[float, int]] = []
        products = 0.0
        rows = range(min(self.table.rows, MOST_ROWS))
        for row in rows if self.table.rows == 1 else (*rows, SUMS):
            a, b = self.value(x, row), self.value(y, row)
            if a != a or b != b or (form == "ratio" and not b):
                continue
            if form == "product":
                products += a * b if row != SUMS and row not in self.table.totals else 0.0
                found.append((products if row == SUMS else a * b, row))
            else:
                found.append((a / b if form == "ratio" else a - b if form == "diff" else a + b, row))
        return found

    def weighted(self, x: int, y: int) -> float:
        """The mean of column ``x`` weighted by column ``y``; NaN when there is none."""
        whole = self.value(y, SUMS)
        a, b = self.table.columns[x].values, self.table.columns[y].values
        return sum(a[row] * b[row] for row in self.details) / whole if whole else whole
