"""How names, counts and sizes are put into words, alike in every message for people and models. Pure.

What is said with them is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SIMILAR = 0.5
TYPO = 0.8
"""Of the letters; with less, other words are near too: ``agents`` and ``charts`` share 0.5."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The one of ``known`` that ``name`` was probably meant to be; empty when none is like it."""
    import difflib  # noqa: PLC0415 - for a slip alone

    return next(iter(difflib.get_close_matches(name, list(known), 1, SIMILAR)), "")


def slip(name: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that ``name`` is, but for a slip of the finger; empty when it only looks alike."""
    import difflib  # noqa: PLC0415 - for a slip alone

    names = {each.casefold(): each for each in known}
    return next((names[each] for each in difflib.get_close_matches(name.casefold(), names, 1, TYPO)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` to end a message with; empty when nothing known is like ``name``."""
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def suggestion(name: str, known: Iterable[str], label: str = "known are") -> str:
    """``did you mean 'x'?``, or else all of ``known`` after ``label``."""
    names = list(known)
    close = nearest(name, names)
    return f"did you mean {close!r}?" if close else f"{label} {', '.join(names) or 'none'}"


def clipped(text: str, limit: int) -> str:
    """``text``, cut to at most ``limit`` characters; the last is an ellipsis then."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str, limit: int) -> str:
    """``text`` on one line, cut as by ``clipped``."""
    return clipped(" ".join(text.split()), limit)


def one_word(text: str, limit: int) -> str:
    """``text`` as a word that can stand in a path and after @ and /; empty when it has no letter."""
    return re.sub(r"[^\w-]+", "-", text.strip().lower()).strip("-")[:limit]


def sentence(text: str) -> str:
    """``text`` with a full stop, unless it ends like a sentence already."""
    text = text.rstrip()
    return text if not text or text.rstrip("”’\"')").endswith((".", "?", "!", "…", ":")) else f"{text}."


def with_hint(text: str, hint: str) -> str:
    """What happened, and after a full stop what to do."""
    return f"{sentence(text)} {hint}".strip() if hint else text.strip()


def count(number: int, noun: str) -> str:
    """``1,234 lines``, ``1 line``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{number:,} {noun}s"


def byte_size(size: int) -> str:
    """``1 byte``, ``830 bytes``, ``12.3 KB``, ``1.2 GB``."""
    if size < 1_000:
        return count(size, "byte")
    for unit, scale in (("KB", 1e3), ("MB", 1e6)):
        if size < 999.95 * scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"
