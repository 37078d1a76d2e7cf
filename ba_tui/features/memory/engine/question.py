"""Parse a question: its terms, the speakers and days that it names, and whether it asks for a time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.dates import Span, spans, without_dates
from ba_tui.features.memory.engine.terms import READ, IndexTerm, is_unspaced, terms

MOST_TERMS = 24
"""Terms of a long question that are searched: the first ones."""
_WHEN = regex(
    r"^\W*(?:(?:and|so|but|und) )?(?:since |until |by |from |seit |bis |ab )?(?:when|wann)\b"
    r"|\b(?:what|which|welche[mnrs]?) (?:day|date|month|year|time|season|week|tag|datum|monat|jahr|zeit)\b"
    r"|\bhow (?:long|often|old)\b|\bwie (?:lange|oft|alt)\b|\bin welche[mr] (?:jahr|monat|woche)\b"
    r"|什么时候|哪一?天|哪一?年|几月|几号|多久|何时|几点|多长时间|星期几|周几",
    re.IGNORECASE,
)
_WORD = regex(r"[^\W\d_]+")


@frozen
class ParsedQuestion:
    """A parsed request."""

    text: str
    terms: tuple[IndexTerm, ...] = ()
    """Without the names of speakers and without dates, each once."""
    named: frozenset[str] = frozenset()
    """The speakers that the text names."""
    when: bool = False
    days: tuple[Span, ...] = ()
    plain: str = ""
    """The text to embed: without the names of speakers, which do not describe a subject."""


def read(text: str, speakers: Iterable[str] = (), today: date | None = None) -> ParsedQuestion:
    """Parse the question in ``text``; of a long text, its end.

    ``today`` tells what "yesterday" and dates without a year mean.
    """
    text = clean_text(text[-READ:]).strip()
    words = {word.casefold() for word in _WORD.findall(text)}
    parts = {speaker: name_parts(speaker) for speaker in speakers}
    named = frozenset(speaker for speaker, names in parts.items() if any(_names(name, words, text) for name in names))
    dropped = {name for speaker in named for name in parts[speaker]}
    undated = without_dates(text, today)
    kept = dict.fromkeys(term for term in terms(undated) if term.word.casefold() not in dropped)
    return ParsedQuestion(
        text,
        tuple({term.stem: term for term in kept}.values())[:MOST_TERMS],
        named,
        bool(_WHEN.search(text)),
        tuple(spans(text, today)),
        " ".join(word for word in text.split() if not _is_name(word, dropped)) or text,
    )


def name_parts(speaker: str) -> frozenset[str]:
    """Return the words that can replace a name: "Ross Geller" is also Ross."""
    words = [speaker] if is_unspaced(speaker) else _WORD.findall(speaker)
    return frozenset(word.casefold() for word in words if len(word) > 1)


def _names(name: str, words: set[str], text: str) -> bool:
    return name in text if is_unspaced(name) else name in words


def _is_name(word: str, names: set[str]) -> bool:
    found = _WORD.search(word)
    return found is not None and found[0].casefold() in names
