"""Format names, counts and sizes, suggest near matches, and rank named items by words. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ba_tui.core.text.patterns import regex

SIMILAR = 0.5
TYPO = 0.8
"""Share of letters that must match. Below it, other words are close too: ``agents`` and ``charts`` share 0.5."""


def similar(name: str, known: Iterable[str], most: int = 3, share: float = SIMILAR) -> list[str]:
    """Return up to ``most`` names in ``known`` of which at least ``share`` is like ``name``, the closest first."""
    import difflib  # noqa: PLC0415 - only for misspelled names

    return difflib.get_close_matches(name, list(known), most, share)


def nearest(name: str, known: Iterable[str], share: float = SIMILAR) -> str:
    """Return the name in ``known`` closest to ``name``; empty if none is similar."""
    return next(iter(similar(name, known, 1, share)), "")


def slip(name: str, known: Iterable[str]) -> str:
    """Return the name in ``known`` that ``name`` misspells; empty if it only looks similar."""
    names = {each.casefold(): each for each in known}
    return names.get(nearest(name.casefold(), names, TYPO), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` as the end of a message; empty if no known name is similar."""
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def correction(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return ``Did you mean x?``, or ``otherwise`` if no known name is similar."""
    close = nearest(name, known)
    return f"Did you mean {close}?" if close else otherwise


def suggestion(name: str, known: Iterable[str], label: str = "known are") -> str:
    """Return ``did you mean 'x'?``, or all of ``known`` after ``label`` if no name is similar."""
    names = list(known)
    close = nearest(name, names)
    return f"did you mean {close!r}?" if close else f"{label} {', '.join(names) or 'none'}"


def clipped(text: str, limit: int) -> str:
    """Return ``text`` cut to at most ``limit`` characters, with an ellipsis at the cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str, limit: int) -> str:
    """Return ``text`` on one line, cut as by ``clipped``."""
    return clipped(" ".join(text.split()), limit)


def one_word(text: str, limit: int) -> str:
    """Return ``text`` as a word for paths and for names after @ and /; empty if it has no letter."""
    return re.sub(r"[^\w-]+", "-", text.strip().lower()).strip("-")[:limit]


def sentence(text: str) -> str:
    """Return ``text`` with a full stop, unless it already ends like a sentence."""
    text = text.rstrip()
    return text if not text or text.rstrip("”’\"')").endswith((".", "?", "!", "…", ":")) else f"{text}."


def with_hint(text: str, hint: str) -> str:
    """Return ``text`` as a sentence followed by ``hint``."""
    return f"{sentence(text)} {hint}".strip() if hint else text.strip()


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1,234 lines``, ``1 line``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{number:,} {noun}s"


def byte_size(size: int) -> str:
    """Return a size in bytes for people: ``1 byte``, ``830 bytes``, ``12.3 KB``, ``1.2 GB``."""
    if size < 1_000:
        return count(size, "byte")
    for unit, scale in (("KB", 1e3), ("MB", 1e6)):
        if size < 999.95 * scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"


Item = TypeVar("Item")
_WORD = regex(r"[^\W_]+")
NAME_WEIGHT = 3
"""Weight of a match in the name relative to one in the description."""


def matching(
    query: str, items: Sequence[Item], described: Callable[[Item], tuple[str, str]], least: float = 0
) -> list[Item]:
    """Return the items that share words with ``query``, best first; a shared word beginning counts half. ``described``
    returns an item's name and its other words; ``least`` is the score that an item must exceed."""
    words = _words(query)
    scored = [(_score(words, *described(item)), index, item) for index, item in enumerate(items)]
    return [item for score, _, item in sorted(scored, key=lambda each: (-each[0], each[1])) if score > least]


def _score(words: set[str], name: str, rest: str) -> float:
    return NAME_WEIGHT * _shared(words, _words(name)) + _shared(words, _words(rest))


def _shared(words: set[str], others: set[str]) -> float:
    begun = {word for word in words - others if len(word) > 2 and any(_begins(word, other) for other in others)}
    return len(words & others) + len(begun) / 2


def _begins(one: str, other: str) -> bool:
    return other.startswith(one) or (len(other) > 3 and one.startswith(other))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
