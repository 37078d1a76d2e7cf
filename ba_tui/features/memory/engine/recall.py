"""Retrieval: the entries that answer a request, best first. Works over an index, vectors and an embedding model.

When a part is missing or broken, a search uses words without vectors, then the newest entries; the result says which.
``scoring`` computes the signals of an entry, ``weights`` weighs them.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Protocol

from ba_tui.core.errors import BaError
from ba_tui.core.ports.memory import Entry, Kind, Step
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.lookup import Lookup, Nearby, Row, merged
from ba_tui.features.memory.engine.question import Question, read
from ba_tui.features.memory.engine.sameness import Sameness, compare
from ba_tui.features.memory.engine.scoring import Grades, Scorer, Signals, rarity
from ba_tui.features.memory.engine.terms import Term, is_unspaced
from ba_tui.features.memory.engine.weights import Calibration, calibration

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Traits, Vectors

_MOST_WORDS = 3
_NEAR = 0.5
"""Share of the question's terms from which an entry that shares no word itself was found by the turns beside it."""


def reasons(question: Question, stems: Collection[str], signals: Signals) -> str:
    """What spoke for an entry with these ``stems``: "words: fiscal, year · date"; "meaning" when nothing else did."""
    shared = _shared_words(question, stems)
    found = [f"words: {', '.join(shared)}"] if shared else []
    if signals.speaker or signals.named:
        found.append("name")
    if signals.dated:
        found.append("date")
    if not shared and signals.coverage >= _NEAR:
        found.append("similar words")
    return " · ".join(found or (["meaning"] if signals.cosine else ["recent"]))


def _shared_words(question: Question, stems: Collection[str]) -> Sequence[str]:
    """Up to three words of the question that the entry has too, longer ones first, as the question wrote them."""
    words = [term.word for term in question.terms if term.stem in stems]
    # A character that is part of a shared pair adds nothing.
    whole = [word for word in words if not any(word != each and word in each and is_unspaced(word) for each in words)]
    return sorted(dict.fromkeys(whole), key=lambda word: -len(word))[:_MOST_WORDS]


log = logging.getLogger(__name__)

CANDIDATES = 200
"""Entries by words, and as many by vectors, that are weighed."""
_COMPARED = 100
"""The best entries by words whose vectors are compared too, when they are not among the nearest."""
_LED = 50
"""The best entries by words whose neighbours may answer too."""
_MOST_TERMS = 24
_LOWERED = 0.85
"""The threshold is lowered to this share when no entry reaches it."""
_BROKEN = (BaError, sqlite3.Error, OSError)
"""What a search raises when a part of memory is missing or damaged."""


class Nearest(Protocol):
    """The vectors of one store. ``ids`` are those of entries."""

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        """The ids with the highest cosines, highest first."""
        ...

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        """The cosines of those ids that have a vector."""
        ...


class Meaning(Protocol):
    """An embedding model: vectors of questions and how alike words are. Raises BaError when it cannot be used."""

    @property
    def traits(self) -> Traits: ...

    def question(self, text: str) -> Vectors: ...

    def grades(
        self, asked: Sequence[Term], stems: Iterable[str], words: Callable[[Collection[str]], Mapping[str, str]]
    ) -> Grades: ...


@frozen
class Shelf:
    """One store: the project's or the global one. ``nearest`` is None while the store has no vectors."""

    lookup: Lookup
    nearest: Nearest | None = None


@frozen
class Parts:
    """Parts of retrieval that an evaluation switches off, to see what each is worth."""

    vectors: bool = True
    likeness: bool = True
    neighbours: bool = True
    speaker: bool = True
    dates: bool = True
    form: bool = True
    """Statements before questions, times for a question about a time."""
    length: bool = True


@frozen
class Ask:
    """A request to memory."""

    text: str
    limit: int = 5
    explicit: bool = False
    """The person searches: the threshold is not applied, and superseded entries are found too."""
    today: date | None = None
    kinds: frozenset[Kind] | None = None
    tokens: int | None = None
    """The most tokens that all returned texts may have."""
    leave_out: frozenset[str] = frozenset()
    """Ids of entries to leave out, for instance those that the conversation already contains."""


@frozen
class Hit:
    """An entry that was found. It is relevant when its ``score`` is at least 1."""

    entry: Entry
    score: float
    signals: Signals = Signals()
    twins: tuple[str, ...] = ()
    """Ids of entries that say the same; they are not returned as hits of their own."""
    rank: float = 0.0
    """What hits are ordered by. Unlike ``score`` it prefers statements to questions and long turns to short ones."""
    why: str = ""
    """What spoke for the entry, for people."""


@frozen
class Found:
    """The hits of a search, best first, and the step that found them."""

    hits: tuple[Hit, ...] = ()
    step: Step = "vectors"
    why: str = ""
    """Why vectors, or words, could not be used; empty when everything worked."""


@dataclass(slots=True)
class _Candidates:
    """Entries of one store that may answer, and the turns around them."""

    shelf: Shelf
    numbers: list[int]
    cosines: dict[str, float]
    rows: dict[int, Row]
    nearby: dict[int, Nearby]


class Recall:
    """Searches ``shelves`` together. ``count`` estimates the tokens of a text."""

    def __init__(
        self,
        shelves: Sequence[Shelf],
        meaning: Meaning | None = None,
        parts: Parts = Parts(),  # noqa: B008 - a value
        count: Callable[[str], int] = lambda text: len(text.encode()) // 4 + 1,
    ) -> None:
        self._shelves = shelves
        self._meaning = meaning
        self._parts = parts
        self._count = count

    def search(self, ask: Ask) -> Found:
        """The entries that answer ``ask``. Never raises: ``why`` names what is broken."""
        why = "" if self._meaning and self._parts.vectors else "No embedding model is in use."
        try:
            question = read(ask.text, self._speakers(), ask.today)
            if self._meaning and self._parts.vectors:
                try:
                    weighed = self._weighed(question, self._meaning)
                    return _explained(question, weighed, self._chosen(ask, weighed, "vectors", ""))
                except _BROKEN as error:
                    log.warning("memory is searched by words: %s", error)
                    why = str(error)
            weighed = self._weighed(question, None)
            found = _explained(question, weighed, self._chosen(ask, weighed, "words", why))
            if found.hits or not ask.explicit:
                return found
        except _BROKEN as error:
            log.warning("memory cannot be searched: %s", error)
            why = str(error)
        return self._recent(ask, why)

    def _speakers(self) -> set[str]:
        if not self._parts.speaker:
            return set()
        return {speaker for shelf in self._shelves for speaker in shelf.lookup.speakers()}

    def _weighed(self, question: Question, meaning: Meaning | None) -> list[tuple[Row, Shelf, Hit]]:
        """All candidates with their scores, best first. Their hits contain only the id of the entry."""
        counts = merged(shelf.lookup.counts(term.stem for term in question.terms) for shelf in self._shelves)
        total = sum(shelf.lookup.total() for shelf in self._shelves)
        telling = rarity([term.stem for term in question.terms], counts, total)
        rarest = sorted(telling, key=lambda stem: -telling[stem])[:_MOST_TERMS]
        telling = {stem: telling[stem] for stem in telling if stem in rarest}
        vector = meaning.question(question.plain) if meaning and question.text else None
        found = [self._candidates(shelf, telling, vector) for shelf in self._shelves]
        grades = self._grades(question, telling, found, meaning)
        weights = calibration(meaning.traits.name if meaning else "")
        weighed = [
            (row, each.shelf, hit)
            for each in found
            for row, hit in self._scored(each, question, telling, grades, weights)
        ]
        # Age only decides between equals.
        return sorted(weighed, key=lambda each: (-round(each[2].rank, 6), -each[0].at, -each[0].number))

    def _candidates(self, shelf: Shelf, stems: Collection[str], vector: Vectors | None) -> _Candidates:
        lookup = shelf.lookup
        numbers = lookup.matching(stems, CANDIDATES)
        cosines: dict[str, float] = {}
        if vector is not None and shelf.nearest is not None:
            cosines.update(shelf.nearest.nearest(vector, CANDIDATES))
            numbers = list(dict.fromkeys([*numbers, *lookup.numbers(cosines)]))
        rows = lookup.rows(numbers)
        if vector is not None and shelf.nearest is not None:
            ids = [rows[number].id for number in numbers[:_COMPARED] if number in rows]
            unknown = [id for id in ids if id not in cosines]
            cosines.update(shelf.nearest.cosines(vector, unknown))
        nearby: dict[int, Nearby] = {}
        if self._parts.neighbours:
            nearby = lookup.nearby(rows.values())
            # An answer may share no word with a question that is asked like the turn before it.
            beside = dict.fromkeys(
                each for number in numbers[:_LED] if number in nearby for each in nearby[number].all[:2] if each
            )
            answers = lookup.rows(beside.keys() - rows.keys())
            nearby.update(lookup.nearby(answers.values()))
            numbers = [*numbers, *answers]
            rows.update(answers)
        rows.update(lookup.rows({number for each in nearby.values() for number in each.all} - rows.keys()))
        return _Candidates(shelf, numbers, cosines, rows, nearby)

    def _grades(
        self,
        question: Question,
        telling: Collection[str],
        found: Sequence[_Candidates],
        meaning: Meaning | None,
    ) -> Grades:
        if meaning is None or not self._parts.likeness:
            return {}
        stems = {stem for each in found for row in each.rows.values() for stem in row.terms}
        asked = [term for term in question.terms if term.stem in telling]

        def words(wanted: Collection[str]) -> Mapping[str, str]:
            known: dict[str, str] = {}
            for shelf in self._shelves:
                known.update(shelf.lookup.words(wanted))
            return known

        return meaning.grades(asked, stems, words)

    def _scored(
        self,
        found: _Candidates,
        question: Question,
        telling: Mapping[str, float],
        grades: Grades,
        weights: Calibration,
    ) -> Iterator[tuple[Row, Hit]]:
        scorer = Scorer(question, telling, grades, found.rows)
        for number in found.numbers:
            if (row := found.rows.get(number)) is not None:
                cosine = max(0.0, found.cosines.get(row.id, 0.0) - weights.unlike) / (1 - weights.unlike)
                signals = self._switched(scorer.signals(row, found.nearby.get(number), cosine))
                relevance, rank = weights.relevance(row.kind, signals), weights.rank(row.kind, signals)
                yield row, Hit(Entry(row.id, ""), relevance, signals, rank=rank)

    def _switched(self, signals: Signals) -> Signals:
        parts = self._parts
        if not parts.dates:
            signals = replace(signals, dated=0.0)
        if not parts.form:
            signals = replace(signals, statement=0.0, when=0.0)
        return signals if parts.length else replace(signals, length=0.0)

    def _chosen(self, ask: Ask, weighed: Sequence[tuple[Row, Shelf, Hit]], step: Step, why: str) -> Found:
        """The best relevant entries of ``weighed`` within the limits of ``ask``."""
        for least in (0.0,) if ask.explicit else (1.0, _LOWERED):
            hits = self._told_apart(ask, (each for each in weighed if ask.explicit or each[2].score >= least))
            if hits:
                return Found(tuple(hits), step, why)
        return Found((), step, why)

    def _told_apart(self, ask: Ask, weighed: Iterable[tuple[Row, Shelf, Hit]]) -> list[Hit]:
        """The first hits that fit the request and its limits; entries that say the same become twins of one hit."""
        hits: list[Hit] = []
        rows: list[Row] = []
        left = ask.tokens
        for row, shelf, hit in weighed:
            if len(hits) == ask.limit:
                break
            if not _wanted(ask, row.id, row.kind):
                continue
            entry = shelf.lookup.entries([row.id]).get(row.id)
            if entry is None or (entry.superseded_by and not ask.explicit):
                continue
            alike = (at for at, each in enumerate(rows) if _share_words(each, row) and _same(hits[at].entry, entry))
            twin = next(alike, None)
            if twin is not None:
                hits[twin] = replace(hits[twin], twins=(*hits[twin].twins, entry.id))
                continue
            if left is not None:
                left -= self._count(entry.text)
                if left < 0:
                    break
            hits.append(replace(hit, entry=entry))
            rows.append(row)
        return hits

    def _recent(self, ask: Ask, why: str) -> Found:
        hits: list[Hit] = []
        for shelf in self._shelves if ask.explicit else ():
            try:
                entries = shelf.lookup.recent(CANDIDATES)
                hits += [Hit(entry, 0.0) for entry in entries if _wanted(ask, entry.id, entry.kind)]
            except _BROKEN as error:
                log.warning("memory cannot be read: %s", error)
                why = why or str(error)
        newest = sorted(hits, key=lambda hit: -hit.entry.at)[: ask.limit]
        return Found(tuple(newest), "recent", why or "No entry has a word of the request.")


def _explained(question: Question, weighed: Iterable[tuple[Row, Shelf, Hit]], found: Found) -> Found:
    stems = {row.id: row.terms for row, _, _ in weighed}
    hits = tuple(replace(hit, why=reasons(question, stems[hit.entry.id], hit.signals)) for hit in found.hits)
    return replace(found, hits=hits)


def _wanted(ask: Ask, id: str, kind: Kind) -> bool:
    return id not in ask.leave_out and (ask.kinds is None or kind in ask.kinds)


def _share_words(one: Row, other: Row) -> bool:
    """Whether it is worth the time to compare the texts: they share at least half of their terms."""
    return 2 * len(one.terms & other.terms) >= len(one.terms | other.terms)


def _same(one: Entry, other: Entry) -> bool:
    return compare(one.text, other.text) in (Sameness.EQUAL, Sameness.REWORDED)
