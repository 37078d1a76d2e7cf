"""How the lines of a screen are shared out while a question waits. Pure; the form asks and obeys."""

from __future__ import annotations

from textual.content import Content

from ba_tui.core.values import frozen

SHARE = 0.7
"""Of the screen, for the question; the rest is the conversation's, which stays readable meanwhile."""
LOW = 16
"""Screens with fewer lines get the short form."""
TALL = 32
"""Screens with as many lines get air around the text."""


@frozen
class WantedRows:
    """Lines that each part would take; 0 when it is not there. ``below`` is a note or a field."""

    facts: int
    body: int
    answers: int
    below: int = 0


@frozen
class Fit:
    """Lines that each part gets. The answers come first, then a line of everything, then the body."""

    facts: int
    body: int
    answers: int
    hint: int
    air: bool


def fit(height: int, wanted: WantedRows) -> Fit:
    """Share out a screen of ``height`` lines; the title takes one."""
    limit = max(5, int(height * SHARE))
    air = height >= TALL
    answers = min(wanted.answers, max(1, limit - 3))
    facts = min(wanted.facts, 1)
    spare = limit - 2 - answers - wanted.below - facts - (2 if air else 0)
    if spare < 0 and wanted.below:
        # What was just written or chosen matters more than what stood there all the time.
        facts, spare = 0, spare + facts
    hint = max(0, min(spare, 1 if height < LOW else 2))
    spare -= hint
    more = max(0, min(spare, wanted.facts - facts))
    spare -= more
    return Fit(facts + more, max(1, min(wanted.body, 1 + max(0, spare))), answers, hint, air)


def lines_of(words: Content, width: int) -> int:
    """Lines that ``words`` take when they are folded at ``width``."""
    return len(words.wrap(max(1, width))) if words else 0
