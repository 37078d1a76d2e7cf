"""Which of many named things fit some words: for searches that a model or a prompt makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ba_tui.core.text.patterns import regex

Item = TypeVar("Item")
_WORD = regex(r"[^\W_]+")
NAME_WEIGHT = 3
"""How much more a word of a name counts than one of a description."""


def matching(
    query: str, items: Sequence[Item], described: Callable[[Item], tuple[str, str]], least: float = 0
) -> list[Item]:
    """The items that share words with ``query``, the best first; beginnings of words count half. ``described`` gives an
    item's name and its other words; ``least`` is the score that an item must exceed."""
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
