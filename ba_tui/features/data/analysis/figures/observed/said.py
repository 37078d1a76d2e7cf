"""The person's numbers, as they are said."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.features.data.analysis.figures.answers.extract import Extraction, Figure
from ba_tui.features.data.analysis.figures.observed.buckets import Buckets

HUGE = 300
"""Powers of ten from which a number is left out of the index."""


class Said:
    """Grows with what the person says. ``figures`` are the numbers, ``turns`` their turns, ``names`` what else had
    digits, with the reason why it is no figure."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.turns: list[int] = []
        self.names: dict[str, str] = {}
        self._by_size = Buckets()

    def add(self, text: str, read: Extraction, turn: int) -> None:
        """Add what was read in the words of a turn."""
        self.names.update({text[apart.start : apart.end]: apart.reason for apart in read.apart})
        for figure in read.figures:
            size = abs(float(figure.value)) if figure.value.adjusted() < HUGE else 0.0
            self._by_size.add({size, size * (figure.unit.factor if figure.unit else 1.0)}, len(self.figures))
            self.figures.append(figure)
            self.turns.append(turn)

    def within(self, low: float, high: float) -> Sequence[int]:
        """The numbers that may lie in a range, as they stand or in the base unit: their places in ``figures``."""
        return self._by_size.within(low, high)
