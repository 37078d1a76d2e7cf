"""Questions as memory reads them, and how well an entry answers one: signals, each from 0 to about 1, and their sum.

Pure. The weights are in ``recall``; ``python -m tests.eval.memory`` measures the benefit of each signal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from operator import attrgetter, mul
from typing import TypeAlias

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.dates import Span, days, overlap, spans, without_dates
from ba_tui.features.memory.engine.entries import day_of
from ba_tui.features.memory.engine.lookup import Nearby, Row
from ba_tui.features.memory.engine.terms import READ, IndexTerm, is_unspaced, stems, terms

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


Grades: TypeAlias = Mapping[str, Mapping[str, float]]
"""For each term of the question, similar terms of entries and how similar they are, from 0 to 1."""

BESIDE = (0.8, 0.5, 0.5, 0.3)
"""Weight of a term that is not in the turn itself but in the previous, next, second previous or second next turn."""
_SAID_THEN = 0.6
_PERIOD = 45
"""Days from which a period that the question names says little about a single entry."""
_LONG = 30
"""Terms from which a longer entry is not preferred any more, and above which a turn is understood without others."""


@frozen
class Signals:
    """The signals of one entry, or the weight of each signal."""

    coverage: float = 0.0
    """Share of the question's terms, weighted by rarity, in the entry or a neighbouring turn."""
    cosine: float = 0.0
    """Likeness of the vectors."""
    speaker: float = 0.0
    """1 when the question names the speaker of the entry."""
    named: float = 0.0
    """1 when the entry contains the name of a speaker that the question names."""
    statement: float = 0.0
    """1 when the entry is no question."""
    length: float = 0.0
    """1 for entries of 30 terms or more."""
    when: float = 0.0
    """How much the entry says about time, when the question asks for one."""
    dated: float = 0.0
    """1 when the entry names a day that the question names; less when it was said then."""

    def __mul__(self, weights: Signals) -> float:
        """Return the score under ``weights``."""
        return sum(map(mul, _values(self), _values(weights)))


_values = attrgetter(*(field.name for field in fields(Signals)))


def rarity(stems: Sequence[str], counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the inverse document frequency of each stem as in BM25: highest for stems without entries."""
    return {stem: math.log(1 + (total - counts.get(stem, 0) + 0.5) / (counts.get(stem, 0) + 0.5)) for stem in stems}


class Scorer:
    """Weighs entries for one question. ``rows``: the entries and their neighbouring turns."""

    def __init__(
        self, question: ParsedQuestion, rarities: Mapping[str, float], grades: Grades, rows: Mapping[int, Row]
    ) -> None:
        self._question = question
        self._rarities = rarities
        self._all = sum(rarities.values()) or 1.0
        self._alike = [(stem, grades.get(stem, {})) for stem in rarities]
        self._rows = rows
        self._held: dict[int, tuple[float, ...]] = {}
        self._names = frozenset(stem for name in question.named for part in name_parts(name) for stem in stems(part))

    def signals(self, row: Row, nearby: Nearby | None, cosine: float) -> Signals:
        question = self._question
        return Signals(
            self._coverage(row, nearby),
            cosine,
            float(row.speaker in question.named),
            float(not self._names.isdisjoint(row.terms)),
            float(not row.asks),
            min(1.0, math.log1p(row.size) / math.log1p(_LONG)),
            row.timed / 2 if question.when else 0.0,
            _dated(question.days, row) if question.days else 0.0,
        )

    def _coverage(self, row: Row, nearby: Nearby | None) -> float:
        held = self._held_by(row.number)
        if nearby is not None and row.size <= _LONG:
            for number, share in zip(nearby.all, BESIDE, strict=True):
                if number in self._rows:
                    beside = self._held_by(number)
                    held = tuple(max(own, share * other) for own, other in zip(held, beside, strict=True))
        return sum(grade * weight for grade, weight in zip(held, self._rarities.values(), strict=True)) / self._all

    def _held_by(self, number: int) -> tuple[float, ...]:
        """Return how much of each term of the question the entry ``number`` contains."""
        if number not in self._held:
            terms = self._rows[number].terms
            self._held[number] = tuple(_grade(alike, stem, terms) for stem, alike in self._alike)
        return self._held[number]


def _grade(alike: Mapping[str, float], stem: str, terms: frozenset[str]) -> float:
    if stem in terms:
        return 1.0
    return max((alike[term] for term in alike.keys() & terms), default=0.0) if alike else 0.0


def _dated(asked: Sequence[Span], row: Row) -> float:
    exact = min(days(span) for span in asked) <= _PERIOD
    if overlap(asked, row.days):
        return 1.0 if exact else 0.5
    said = day_of(row.at)
    if said is None:
        return 0.0
    day = Span(said.toordinal(), said.toordinal())
    return (_SAID_THEN if exact else 0.3) if overlap(asked, (day,)) else 0.0
