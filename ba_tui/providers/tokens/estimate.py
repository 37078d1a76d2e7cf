"""About how many tokens a text has, in a few milliseconds and without a vocabulary in memory.

Pieces are cut as current tokenizers cut them and weighed by kind and length. Exact counts are encodings.py's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from ba_tui.core.text.patterns import regex

WHOLE = 64_000
"""Characters that are looked at as they are; of a longer text, evenly spread samples."""
SAMPLES = 16
SAMPLE = 4_000
SHORT = 64
"""Characters: in less text hardly a piece stands twice."""

_PIECE = regex(
    r"[^\w\r\n]?[A-Z]?[a-z]++(?![^\W\x00-\x7f])|[^\w\r\n]?[A-Z]++(?![a-z]|[^\W\x00-\x7f])|[^\w\r\n]?[A-Z]+(?=[A-Z][a-z])"
    r"|[^\w\r\n]?[^\W\d_]+|\d{1,3}|_+| ?[^\s\w]+[\r\n/]*|\s*[\r\n]+|\s+(?=\s)|\s+"
)
_LATIN, _CJK, _SIGN, _OTHER = 0.75, 0.78, 0.3, 0.6
# Tokens a character, from each code point on.
_RATES = (
    (0x80, _LATIN),
    (0x370, 0.4),
    (0x400, 0.24),
    (0x530, 0.33),
    (0x900, 0.33),
    (0xE00, 0.36),
    (0xE80, _OTHER),
    (0x1E00, _LATIN),
    (0x2000, _SIGN),
    (0x3000, _CJK),
    (0xA000, _OTHER),
    (0xAC00, 0.57),
    (0xD7B0, 1.0),
    (0xF900, _CJK),
    (0xFB00, _OTHER),
    (0xFF00, _CJK),
    (0xFFF0, 1.0),
    (0x10000, 2.3),
)
_WITHIN = 0.17
"""Tokens of an ASCII letter in a word that has others too."""
_STARTS = [start for start, _ in _RATES]


def estimate_tokens(text: str) -> int:
    """Tokens of ``text`` in o200k_base, roughly: within a tenth for prose and code, more often over than under."""
    if len(text) <= WHOLE:
        return round(_weight(text))
    stride = (len(text) - SAMPLE) / (SAMPLES - 1)
    sampled = sum(_weight(text[(at := int(index * stride)) : at + SAMPLE]) for index in range(SAMPLES))
    return round(sampled * len(text) / (SAMPLES * SAMPLE))


def estimate_characters(text: str) -> int:
    """The crudest count, for when no encoding can be read: 4 characters a token, 1.5 for CJK."""
    wide = sum(1 for char in text if "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or char > "\uf8ff")
    return round((len(text) - wide) / 4 + wide / 1.5)


def _weight(text: str) -> float:
    if len(text) < SHORT:
        return sum(map(_piece, _PIECE.findall(text)))
    return sum(_piece(piece) * times for piece, times in Counter(_PIECE.findall(text)).items())


def _piece(piece: str) -> float:
    if not piece.isascii():
        return sum(_RATES[bisect_right(_STARTS, ord(char)) - 1][1] if char > "\x7f" else _WITHIN for char in piece)
    last = piece[-1]
    if last.isalpha():
        return _word(piece)
    if last.isdigit():
        return 1.08
    if last == "_":
        return 0.4
    if piece.isspace():
        return 0.6 if "\n" in piece else 1.0
    signs = piece.strip()
    return 1.0 if len(set(signs)) == 1 else 0.8 + 0.15 * max(0, len(signs) - 2)


def _word(piece: str) -> float:
    lead = "" if piece[0].isalpha() else piece[0]
    size = len(piece) - len(lead)
    if size > 1 and piece.isupper():
        return 0.6 + 0.42 * max(0, size - 3)
    if lead == " ":
        return 0.76 + 0.17 * max(0, size - 4)
    within = 0.6 if piece[len(lead)].isupper() else 0.0
    return 0.92 + 0.1 * max(0, size - 4) + within + (0.55 if lead else 0.0)
