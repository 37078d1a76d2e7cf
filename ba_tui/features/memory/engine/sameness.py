"""Compare two texts by their words: equal, reworded, the same with other numbers, or different.

Storing and ``recall`` decide what to do with duplicates.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from enum import Enum

from ba_tui.core.text.patterns import regex
from ba_tui.features.memory.engine.terms import stems

_WORD = regex(r"\w+")
_NUMBER = regex(r"\d+(?:[.,:/-]\d+)*")
_NOT = regex(
    r"\b(?:not|no|never|none|without|cannot|\w+n['’]t|nicht|kein\w*|nie|niemals|ohne|ne|pas|jamais|sin|nunca)\b|[不没無无别未]",
    re.IGNORECASE,
)
_ORDERED = regex(
    r"\b(?:than|over|before|after|instead|from|to|rather|versus|vs|als|statt|lieber|vor|nach|von|über)\b|比|而不|之前|之后",
    re.IGNORECASE,
)
"""Words around which the order of two things matters."""
_ALIKE = 0.8
_FEW = 3


class Sameness(Enum):
    """How two texts compare."""

    EQUAL = "equal"
    """The same words in the same order; case, spaces and punctuation may differ."""
    REWORDED = "reworded"
    NUMBERS = "numbers"
    """The same but for numbers."""
    DIFFERENT = "different"


def fingerprint(text: str) -> str:
    """A hash that two texts share when they are ``EQUAL``."""
    words = " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
    return hashlib.blake2b((words or text).encode("utf-8", "replace"), digest_size=12).hexdigest()


def compare(one: str, other: str) -> Sameness:
    """Whether ``one`` and ``other`` say the same. ``DIFFERENT`` when in doubt."""
    if fingerprint(one) == fingerprint(other):
        return Sameness.EQUAL
    if bool(_NOT.search(one)) != bool(_NOT.search(other)):
        return Sameness.DIFFERENT
    ours, theirs = _plain(one), _plain(other)
    left, right = set(ours), set(theirs)
    if min(len(left), len(right)) < _FEW or len(left & right) < _ALIKE * len(left | right):
        return Sameness.DIFFERENT
    if (_ORDERED.search(one) or _ORDERED.search(other)) and ours != theirs:
        return Sameness.DIFFERENT
    if sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other)):
        return Sameness.NUMBERS
    # A single word that differs may be the whole point: "the deadline is Monday", "… is Friday".
    return Sameness.REWORDED if left == right else Sameness.DIFFERENT


def _plain(text: str) -> list[str]:
    return stems(_NUMBER.sub(" ", text))
