"""Which columns of a grid are shown, how wide they are, and where: hidden, frozen and scrolled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

GAP = 2
NARROWEST = 4
"""Columns of the terminal that the last column of the grid needs to be begun."""
MOST_WIDTH = 300


class ColumnPlace(NamedTuple):
    """The column ``column`` of the table stands at ``x``, ``width`` wide; ``whole``: nothing of it is cut off."""

    column: int
    x: int
    width: int
    frozen: bool
    whole: bool


class ColumnPlan:
    """``measure`` returns the width that a column needs for what is seen of it. A column gets narrower only where
    the person says so."""

    def __init__(self, count: int, measure: Callable[[int], int]) -> None:
        self._count = count
        self._measure = measure
        self._widths: dict[int, int] = {}
        self._chosen: dict[int, int] = {}
        """Widths that the person set."""
        self._hidden: set[int] = set()
        self._frozen = 0
        self._left = 0
        self.visible: Sequence[int] = range(count)
        """In order."""

    @property
    def hidden(self) -> int:
        return len(self._hidden)

    @property
    def frozen(self) -> int:
        """How many columns stay in sight."""
        return sum(index < self._frozen for index in self.visible) if self._frozen else 0

    def hide(self, index: int) -> int:
        """Take a column out of sight, unless it is the last one; return the one that is there now."""
        if len(self.visible) > 1:
            after = self.step(index, 1)
            self._hidden.add(index)
            self._show()
            return after if after != index else self.visible[-1]
        return index

    def show_all(self) -> None:
        self._hidden.clear()
        self._show()

    def freeze(self, index: int) -> None:
        """Keep the columns up to ``index`` in sight; the same again lets them go."""
        self._frozen = 0 if self._frozen == index + 1 else index + 1
        self._left = 0

    def widen(self, index: int, by: int) -> None:
        """Make a column wider or, with less than 0, narrower."""
        self._chosen[index] = max(NARROWEST, min(MOST_WIDTH, self.width(index) + by))

    def step(self, index: int, by: int) -> int:
        """The visible column that many places from ``index``, or the last on that side."""
        place = self.visible.index(index) if index in self.visible else 0
        return self.visible[max(0, min(len(self.visible) - 1, place + by))]

    def between(self, one: int, other: int) -> Sequence[int]:
        """The visible columns from one to the other, both included."""
        low, high = sorted((one, other))
        return [index for index in self.visible[self._at(low) :] if index <= high]

    def places(self, width: int, start: int) -> Sequence[ColumnPlace]:
        """Where columns stand between ``start`` and ``width``."""
        places: list[ColumnPlace] = []
        for index, frozen in self._shown():
            limit = width - width // 3 if frozen else width
            room = limit - start
            needed = self.width(index)
            if room < min(needed, NARROWEST):
                if frozen:
                    continue
                break
            places.append(ColumnPlace(index, start, min(needed, room), frozen, needed <= room))
            start += places[-1].width + GAP
        return places

    def reveal(self, index: int, width: int, start: int) -> None:
        """Scroll sideways so that a column is seen whole."""
        if index < self._frozen:
            return
        if index < self._left:
            self._left = index
            return
        places = self.places(width, start)
        if any(place.column == index and place.whole for place in places):
            return
        frozen = [place for place in places if place.frozen]
        room = width - (frozen[-1].x + frozen[-1].width + GAP if frozen else start)
        first, at = index, self._at(index)
        used = self.width(index)
        while at > 0 and self.visible[at - 1] >= self._frozen:
            used += self.width(self.visible[at - 1]) + GAP
            if used > room:
                break
            at -= 1
            first = self.visible[at]
        self._left = max(self._left, first)

    def width(self, index: int) -> int:
        """How wide a column is: as the person set it, else as what is seen of it needs."""
        if index in self._chosen:
            return self._chosen[index]
        width = self._widths[index] = max(self._widths.get(index, 1), self._measure(index))
        return width

    def _at(self, index: int) -> int:
        """The place of the first visible column from ``index`` on."""
        if not self._hidden:
            return index
        return next((place for place, each in enumerate(self.visible) if each >= index), len(self.visible) - 1)

    def _shown(self) -> Sequence[tuple[int, bool]]:
        frozen = [(index, True) for index in self.visible[: self.frozen]]
        start = self._at(max(self._left, self._frozen))
        return [*frozen, *((index, False) for index in self.visible[start : start + 400] if index >= self._frozen)]

    def _show(self) -> None:
        self.visible = [index for index in range(self._count) if index not in self._hidden]
