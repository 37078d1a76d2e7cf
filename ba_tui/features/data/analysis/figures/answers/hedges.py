"""Whether a figure is said to be approximate: ``about``, ``over``, ``knapp``, ``约`` …"""

from __future__ import annotations

from ba_tui.features.data.analysis.figures.words.lexicon import ACROSS, CJK_HEDGES, HEDGED_BEHIND, HEDGES, TILDES

_MARKS = "$€£¥₹+-−( *_"


def hedge_of(text: str, start: int, end: int, words: tuple[str, str]) -> str:
    """``"near"``, ``"over"``, ``"under"`` or nothing. ``words``: the last two before the figure, in lower case."""
    before = text[start - 1] if start else " "
    place = start
    while place and text[place - 1] in _MARKS:
        place -= 1
    before = text[place - 1] if place else " "
    if before in TILDES:
        return "near"
    if before > "\u2fff":
        return _cjk(text[max(0, place - 3) : place]) or _behind(text, end)
    if text[end : end + 1] == "+" and not text[end + 1 : end + 2].isdigit():
        return "over"
    first, last = words
    last = last.rstrip(_MARKS)
    found = HEDGES.get(f"{first} {last}") or HEDGES.get(last, "")
    if found == "over" and last == "over" and first in ACROSS:
        return ""
    return found or _behind(text, end)


def _cjk(head: str) -> str:
    return next((kind for names, kind in CJK_HEDGES for name in names.split("|") if head.endswith(name)), "")


def _behind(text: str, end: int) -> str:
    following = text[end : end + 6].lstrip()
    if not following or following[0] < "\u2fff":
        return ""
    return next((kind for name, kind in HEDGED_BEHIND.items() if name in following[:4]), "")
