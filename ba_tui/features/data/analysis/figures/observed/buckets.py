"""An index of numbers by size: which holders have one of a range."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_FINE = 50.0
"""Buckets are 2 % wide."""


class Buckets:
    """Maps sizes to numbers of holders, in the order in which they came. 0 is not held."""

    def __init__(self) -> None:
        self._held: dict[int, list[int]] = {}

    def add(self, sizes: Iterable[float], holder: int) -> None:
        """Add the holder of some numbers; NaN and 0 count for nothing."""
        held = self._held
        for size in sizes:
            if size and size == size:
                holders = held.setdefault(math.floor(math.log(abs(size)) * _FINE), [])
                if not holders or holders[-1] != holder:
                    holders.append(holder)

    def within(self, low: float, high: float) -> Sequence[int]:
        """Those that may hold a number of a range of absolute values, each once."""
        if not 0 < low <= high < math.inf:
            return ()
        first, last = math.floor(math.log(low) * _FINE), math.floor(math.log(high) * _FINE)
        if first == last:
            return self._held.get(first, ())
        return list(dict.fromkeys(holder for key in range(first, last + 1) for holder in self._held.get(key, ())))
