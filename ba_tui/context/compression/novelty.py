"""How unlike the rest of the conversation something is: what is said over and over says little.

It needs no list of words, and so works for any language and any tool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from math import log2
from typing import NamedTuple

from ba_tui.context.compression.keywords import RAISING, body, code, masked, shaped_score
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

_WORD = regex(r"[^\W\d_]+|\d", re.UNICODE)
_WIDE = regex(r"[\u3040-\u9fff\uac00-\ud7af]")
_FORM = str.maketrans("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a" * 26 + "A" * 26 + "0" * 10)
_BEGINNING = 14
_FEW = 8
STRANGER = 3.0
RARE = 4.0
"""One of 2 to the power of so many lines: that often a line of code raises an error in usual conversations."""


class Phrases:
    """How often each pair of neighbouring words occurs in the sentences it has heard."""

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        self._often: Counter[tuple[str, str]] = Counter()
        for sentence in sentences:
            self._often.update(set(_pairs(sentence)))

    def novelty(self, sentence: str) -> float:
        """From 0.2, nothing but phrases, to 1, said only once."""
        found = [1 / (1 + log2(max(1, self._often[pair]))) for pair in _pairs(sentence)]
        return 0.2 + 0.8 * sum(found) / len(found) if found else 0.6


def _pairs(sentence: str) -> Iterator[tuple[str, str]]:
    words: list[str] = []
    for word in _WORD.findall(sentence.casefold()):
        # Scripts without spaces: each character counts as a word.
        words += word if not word.isascii() and _WIDE.match(word) else [word]
    return pairwise(words)


class _Look(NamedTuple):
    form: str
    shape: str
    code: bool


@lru_cache(maxsize=16_384)
def _look(line: str) -> _Look:
    """What a line is by itself. The same lines are looked at for the facts, for stubs and for the newest steps."""
    return _Look(body(line)[:_BEGINNING].translate(_FORM), masked(line), code(line))


@lru_cache(maxsize=16_384)
def _score(line: str) -> float:
    look = _look(line)
    return shaped_score(line, look.shape, program=look.code)


@frozen
class KnownWords:
    """What is known of all lines that tools printed. ``shapes``: how many different lines are alike but for their
    digits; ``raising``: what a line of code that raises or catches an error counts, the more the fewer there are."""

    shapes: Counter[str] = field(default_factory=Counter[str])
    raising: float = 1.0

    @staticmethod
    def of(texts: Iterable[str]) -> KnownWords:
        """A line that comes again and again, as when a file is read anew, counts once."""
        lines = {line for text in texts for line in text.splitlines()}
        looks = list(map(_look, lines))
        raising = sum(look.code and _score(line) >= RAISING for line, look in zip(lines, looks, strict=True))
        rarity = log2(len(lines) / raising) / RARE if raising else 1.0
        return KnownWords(Counter(look.shape for look in looks), min(1.5, max(0.5, rarity)))


def scored_lines(found: Sequence[str], known: KnownWords, each: float) -> Iterator[tuple[float, int]]:
    """Score and place of each line of a result: more for one that is unlike the others, less for what repeats.
    ``each``: what any line of this result counts."""
    count = len(found)
    looks = list(map(_look, found))
    beginnings = Counter(look.form for look in looks)
    uniform = 1 - len(beginnings) / count if count >= _FEW else 0.0
    for place, (look, scored) in enumerate(zip(looks, map(_score, found), strict=True)):
        alike = beginnings[look.form]
        # Each place where a program raises an error tells something else, however alike they look.
        raises = look.code and scored >= RAISING
        often = 1 if raises else max(1, known.shapes[look.shape])
        said = scored * known.raising if look.code else scored
        if count >= _FEW and alike > 2 and not raises:
            said /= 1 + log2(alike) / 3
        score = each * (1.5 if place < 2 or place >= count - 3 else 1.0) + said
        if alike == 1 and not look.code:
            score += STRANGER * uniform
        yield score / (1 + 0.35 * (often - 1)) if often < 20 else score / (4 + often / 10), place
