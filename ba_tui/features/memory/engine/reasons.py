"""Why a search found an entry, in short words for people. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ba_tui.features.memory.engine.question import Question
from ba_tui.features.memory.engine.scoring import Signals
from ba_tui.features.memory.engine.terms import is_unspaced

_MOST_WORDS = 3
_NEAR = 0.5
"""Share of the question's terms from which an entry that shares no word itself was found by the turns beside it."""


def reasons(question: Question, stems: Collection[str], signals: Signals) -> str:
    """What spoke for an entry with these ``stems``: "words: fiscal, year · date"; "meaning" when nothing else did."""
    shared = _shared_words(question, stems)
    found = [f"words: {', '.join(shared)}"] if shared else []
    if signals.speaker or signals.named:
        found.append("name")
    if signals.dated:
        found.append("date")
    if not shared and signals.coverage >= _NEAR:
        found.append("similar words")
    return " · ".join(found or (["meaning"] if signals.cosine else ["recent"]))


def _shared_words(question: Question, stems: Collection[str]) -> Sequence[str]:
    """Up to three words of the question that the entry has too, longer ones first, as the question wrote them."""
    words = [term.word for term in question.terms if term.stem in stems]
    # A character that is part of a shared pair adds nothing.
    whole = [word for word in words if not any(word != each and word in each and is_unspaced(word) for each in words)]
    return sorted(dict.fromkeys(whole), key=lambda word: -len(word))[:_MOST_WORDS]
