"""Heights in a row, with sums and look-up in logarithmic time (a Fenwick tree), so that length costs nothing."""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """Numbers from 0 up, by place."""

    __slots__ = ("_sums", "values")

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.values = list(values)
        self._sums = [0]
        for at, value in enumerate(self.values, 1):
            total, step = value, 1
            while step < at & -at:
                total += self._sums[at - step]
                step <<= 1
            self._sums.append(total)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> int:
        return self.before(len(self.values))

    def append(self, value: int) -> None:
        self.values.append(value)
        at = len(self.values)
        total, step = value, 1
        while step < at & -at:
            total += self._sums[at - step]
            step <<= 1
        self._sums.append(total)

    def pop(self) -> None:
        self.values.pop()
        self._sums.pop()

    def set(self, place: int, value: int) -> None:
        change = value - self.values[place]
        if not change:
            return
        self.values[place] = value
        at = place + 1
        while at < len(self._sums):
            self._sums[at] += change
            at += at & -at

    def before(self, place: int) -> int:
        """The sum of all values before ``place``."""
        total = 0
        while place:
            total += self._sums[place]
            place &= place - 1
        return total

    def find(self, offset: int) -> tuple[int, int]:
        """The place that holds ``offset`` and how far into it; the last place's end when it is beyond all."""
        place, left = 0, max(0, offset)
        step = 1 << max(0, len(self.values).bit_length() - 1)
        while step:
            if place + step < len(self._sums) and self._sums[place + step] <= left:
                place += step
                left -= self._sums[place]
            step >>= 1
        if place >= len(self.values):
            return max(0, len(self.values) - 1), self.values[-1] if self.values else 0
        return place, left
