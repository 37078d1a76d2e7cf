"""Which row each line takes between two layers, so that no two lines are mistaken for one another."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from ba_tui.core.values import frozen


@frozen
class Wire:
    """A line down from the column ``source`` to the columns ``targets``."""

    source: int
    targets: tuple[int, ...]

    @property
    def straight(self) -> bool:
        return set(self.targets) == {self.source}

    @property
    def span(self) -> tuple[int, int]:
        return min(self.source, *self.targets), max(self.source, *self.targets)


def tracks(wires: Sequence[Wire]) -> dict[Wire, int]:
    """The row of each line, from 1; those that go straight down need none."""
    bent = [wire for wire in wires if not wire.straight]
    found: dict[Wire, int] = {}
    taken: list[list[tuple[int, int]]] = []
    above = _above(bent)
    for wire in _sorted(bent, above):
        first = max((found[other] for other in above[wire] if other in found), default=0)
        while first < len(taken) and any(_touch(wire.span, span) for span in taken[first]):
            first += 1
        while first >= len(taken):
            taken.append([])
        taken[first].append(wire.span)
        found[wire] = first + 1
    return found


def _above(wires: Sequence[Wire]) -> dict[Wire, list[Wire]]:
    """The lines that must lie above each one: where one comes down in the column in which another goes up."""
    return {wire: [other for other in wires if other is not wire and other.source in wire.targets] for wire in wires}


def _sorted(wires: Sequence[Wire], above: dict[Wire, list[Wire]]) -> Sequence[Wire]:
    try:
        return tuple(TopologicalSorter(above).static_order())
    except CycleError:
        return wires


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] + 1 and other[0] <= one[1] + 1
