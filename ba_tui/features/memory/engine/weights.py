"""The weights of signals, per embedder and kind, and how much makes an entry relevant.

``python -m tests.eval.memory`` measures both: how well the weights rank, and how often something relevant or unrelated
passes the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.core.ports.memory import Kind
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.scoring import Signals


@frozen
class Calibration:
    """What counts how much under one embedder. ``unlike``: the cosine of texts that have nothing in common."""

    unlike: float
    turns: Signals
    turns_from: float
    """The weighted sum of what the question has to do with a turn from which the turn is relevant."""
    facts: Signals
    facts_from: float

    def rank(self, kind: Kind, signals: Signals) -> float:
        """What entries are ordered by."""
        return signals * (self.turns if kind == "turn" else self.facts)

    def relevance(self, kind: Kind, signals: Signals) -> float:
        """From 1 on, an entry of this kind is relevant. The form of the entry alone makes nothing relevant."""
        weights, least = (self.turns, self.turns_from) if kind == "turn" else (self.facts, self.facts_from)
        form = signals.statement * weights.statement + signals.length * weights.length
        return (signals * weights - form) / least


_TURNS = Signals(coverage=4.0, cosine=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_FACTS = Signals(coverage=6.0, cosine=12.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)
_WORDS = Signals(coverage=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_WORDS_FACTS = Signals(coverage=8.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)

# The thresholds let 2 to 4 % of unrelated prompts pass, over the cases of the evaluation.
_BY_WORDS = Calibration(0.0, _WORDS, 2.9, _WORDS_FACTS, 2.3)
_CALIBRATIONS: Mapping[str, Calibration] = {
    "fuse-0.2": Calibration(0.0, _TURNS, 3.4, _FACTS, 6.6),
    "e5-small-0.3": Calibration(0.74, _TURNS, 3.4, _FACTS, 6.6),
}


def calibration(model: str) -> Calibration:
    """The weights for vectors of ``model``; without a model, or with an unknown one, those for words alone."""
    return _CALIBRATIONS.get(model, _BY_WORDS)
