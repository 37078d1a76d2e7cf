"""What was worked out for tables of the evidence, kept while used: rows by name, cells by size, columns in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from ba_tui.features.data.analysis.figures.observed.fields import Fields
from ba_tui.features.data.analysis.figures.observed.names import by_date, by_label
from ba_tui.features.data.analysis.figures.observed.series import Series
from ba_tui.features.data.analysis.figures.observed.tables import Table

MOST = 128
"""Tables, and columns, whose workings are kept."""
MOST_NAMES = 2_000
"""Rows of one table that answers may name."""

Held: TypeAlias = "list[tuple[float, int, int]]"
"""Absolute values with their columns and rows."""
Names: TypeAlias = "Mapping[str, tuple[int, ...]]"
_Key = TypeVar("_Key")
_Made = TypeVar("_Made")


class Kept:
    """What was worked out for tables; the least recently made is dropped."""

    def __init__(self) -> None:
        self.fields: dict[int, Fields] = {}
        self._series: dict[tuple[int, int], Series] = {}
        self._names: dict[int, tuple[Names, Names]] = {}
        self._cells: dict[int, tuple[list[float], Held]] = {}

    def rows(self, number: int, table: Table) -> Fields:
        held = self.fields.get(number)
        if held is None:
            _make_room(self.fields)
            held = self.fields[number] = Fields(table)
        return held

    def column(self, number: int, at: int, table: Table) -> Series:
        held = self._series.get((number, at))
        if held is None:
            _make_room(self._series)
            named, dated = self.names(number, table)
            held = self._series[number, at] = Series(table, at, {**named, **dated})
        return held

    def names(self, number: int, table: Table) -> tuple[Names, Names]:
        held = self._names.get(number)
        if held is None:
            _make_room(self._names)
            held = self._names[number] = by_label(table.labels[:MOST_NAMES]), by_date(table.moments[:MOST_NAMES])
        return held

    def within(self, number: int, table: Table, low: float, high: float) -> Held:
        """The cells whose absolute values lie in a range, smallest first."""
        held = self._cells.get(number)
        if held is None:
            _make_room(self._cells)
            columns = enumerate(table.columns)
            cells = [(abs(value), at, row) for at, column in columns for row, value in enumerate(column.values)]
            cells = sorted(cell for cell in cells if cell[0] == cell[0])
            held = self._cells[number] = [size for size, _, _ in cells], cells
        sizes, cells = held
        first = bisect_left(sizes, low)
        return cells[first : bisect_right(sizes, high, first)]


def _make_room(kept: dict[_Key, _Made]) -> None:
    if len(kept) >= MOST:
        del kept[next(iter(kept))]
