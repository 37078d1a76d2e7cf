"""How much each part of a conversation counts before its words are looked at.

It only orders what competes for room: nothing is so important that a conversation can't be made to fit.
"""

from __future__ import annotations

from enum import IntEnum
from math import sqrt

FADING = 0.45
"""How much less the oldest counts than the newest."""


class Importance(IntEnum):
    """The person's words and errors, then what tools saw, then thoughts, then what a call was given."""

    LOW = 1
    MEDIUM = 3
    HIGH = 4
    CRITICAL = 8


def weight(level: Importance, age: float, parts: int) -> float:
    """What each of the ``parts`` of something counts: less the older it is (0 to 1) and the larger the whole is."""
    return level * (1 - FADING * age) / sqrt(max(1, parts))
