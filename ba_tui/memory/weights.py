"""The weights of signals, per embedder and kind, scaled so that a score of 1 is the threshold of relevance.

Learned by ``python -m tests.eval.memory.learn`` on the dialogues and facts beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.core.ports.memory import Kind
from ba_tui.core.values import frozen
from ba_tui.memory.scoring import Signals


@frozen
class Calibration:
    """What counts how much under one embedder. ``unlike``: the cosine of texts that have nothing in common."""

    unlike: float
    turns: Signals
    turns_from: float
    """The weighted sum from which a turn is relevant."""
    facts: Signals
    facts_from: float

    def score(self, kind: Kind, signals: Signals) -> float:
        """From 1 on, an entry of this kind is relevant."""
        weights, least = (self.turns, self.turns_from) if kind == "turn" else (self.facts, self.facts_from)
        return (signals * weights) / least


_TURNS = Signals(coverage=4.0, cosine=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_FACTS = Signals(coverage=6.0, cosine=12.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)
_WORDS = Signals(coverage=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_WORDS_FACTS = Signals(coverage=8.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)

_BY_WORDS = Calibration(0.0, _WORDS, 10.0, _WORDS_FACTS, 5.0)
_CALIBRATIONS: Mapping[str, Calibration] = {
    "fuse-0.2": Calibration(0.0, _TURNS, 10.0, _FACTS, 8.0),
    "e5-small-0.3": Calibration(0.74, _TURNS, 10.0, _FACTS, 8.0),
}


def calibration(model: str, *, likeness: bool = True) -> Calibration:
    """The weights for vectors of ``model``; without a model, or with an unknown one, those for words alone."""
    return _CALIBRATIONS.get(model, _BY_WORDS)
