"""The selected cells of a grid: copied as text, or named for a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Cell, Row
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.grid.cells import CopyFormat, copied, letters
from ba_tui.faces.tui.grid.feed import RowFeed

MOST_ROWS = 10_000
"""Rows that are copied or named at most."""
MOST_RANGES = 20


@frozen
class CellSelection:
    """Rows of the arrangement from ``first`` on, and ``columns`` of the table in order."""

    first: int
    rows: int
    columns: tuple[int, ...]

    @property
    def words(self) -> str:
        """``3 rows × 2 columns``; empty for a single cell."""
        single = self.rows == 1 and len(self.columns) == 1
        return "" if single else f"{count(self.rows, 'row')} × {count(len(self.columns), 'column')}"

    async def text(self, feed: RowFeed, format: CopyFormat) -> tuple[str, str]:
        """The cells as text, and a note where that is not all of them."""
        rows = await feed.rows(self.first, min(self.rows, MOST_ROWS))
        columns = [feed.columns[index] for index in self.columns]
        note = f"These are the first {MOST_ROWS:,} of {self.rows:,} rows." if self.rows > MOST_ROWS else ""
        return copied(columns, [self._cells(row) for _, row in rows], format), note

    async def mention(self, feed: RowFeed) -> str:
        """``@R3[B2:C9]``: the cells by their places in the table itself, which no arrangement changes.

        Raises UsageError when they lie in too many places.
        """
        if self.rows > MOST_ROWS:
            raise UsageError(f"A mention takes at most {MOST_ROWS:,} rows.", f"Select fewer, or type @{feed.table}.")
        rows = await feed.rows(self.first, self.rows)
        areas = [(one, two) for one in _runs([number for number, _ in rows]) for two in _runs(self.columns)]
        if len(areas) > MOST_RANGES:
            hint = "Undo the sort, or select fewer rows."
            raise UsageError(f"These cells lie in {len(areas):,} separate places of {feed.table}.", hint)
        return " ".join(f"@{feed.table}[{_area(rows, columns)}]" for rows, columns in areas)

    def _cells(self, row: Row) -> tuple[Cell, ...]:
        return tuple(row[index] for index in self.columns)


def _runs(numbers: Sequence[int]) -> Sequence[tuple[int, int]]:
    """Stretches of numbers that follow each other."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _area(rows: tuple[int, int], columns: tuple[int, int]) -> str:
    first, last = f"{letters(columns[0])}{rows[0] + 1}", f"{letters(columns[1])}{rows[1] + 1}"
    return first if first == last else f"{first}:{last}"
