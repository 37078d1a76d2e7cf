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
from ba_tui.features.memory.engine.scoring import Grades, ParsedQuestion, Scorer, Signals, rarity, read
from ba_tui.features.memory.engine.terms import IndexTerm, Sameness, compare, is_unspaced

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Traits, Vectors


# The weights of signals, per embedder and kind, and how much makes an entry relevant.
#
# ``python -m tests.eval.memory`` measures how well the weights rank, and how often something relevant or unrelated
# passes the threshold.


@frozen
class Calibration:
    """The weights of signals under one embedder. ``unlike``: the cosine of unrelated texts."""

    unlike: float
    turns: Signals
    turns_from: float
    """Minimum weighted sum of a relevant turn."""
    facts: Signals
    facts_from: float

    def rank(self, kind: Kind, signals: Signals) -> float:
        """Return the value by which entries are ordered."""
        return signals * (self.turns if kind == "turn" else self.facts)

    def relevance(self, kind: Kind, signals: Signals) -> float:
        """Return the relevance of an entry of this kind: 1 or more is relevant. The form alone makes none relevant."""
        weights, least = (self.turns, self.turns_from) if kind == "turn" else (self.facts, self.facts_from)
        form = signals.statement * weights.statement + signals.length * weights.length
        return (signals * weights - form) / least


_TURNS = Signals(coverage=4.0, cosine=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_FACTS = Signals(coverage=6.0, cosine=12.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)
_WORDS = Signals(coverage=8.0, speaker=2.0, named=0.5, statement=1.2, length=3.0, when=2.0, dated=2.5)
_WORDS_FACTS = Signals(coverage=8.0, speaker=2.0, named=0.5, when=0.5, dated=2.0)

# The thresholds let 2 to 4 % of unrelated prompts pass, over the cases of the evaluation.
_BY_WORDS = Calibration(0.0, _WORDS, 2.9, _WORDS_FACTS, 2.3)
_CALIBRATIONS: Mapping[str, Calibration] = {
    "fuse-0.2": Calibration(0.0, _TURNS, 3.4, _FACTS, 6.6),
    "e5-small-0.3": Calibration(0.74, _TURNS, 3.4, _FACTS, 6.6),
}


def calibration(model: str) -> Calibration:
    """Return the weights for vectors of ``model``; for an unknown or empty name, those of a search by words."""
    return _CALIBRATIONS.get(model, _BY_WORDS)


_MOST_WORDS = 3
_NEAR = 0.5
"""Minimum coverage at which similar words or neighbouring turns are the reason, for entries without a shared word."""


def reasons(question: ParsedQuestion, stems: Collection[str], signals: Signals) -> str:
    """Return why an entry with these ``stems`` was found: "words: fiscal, year · date"; else "meaning" or "recent"."""
    shared = _shared_words(question, stems)
    found = [f"words: {', '.join(shared)}"] if shared else []
    if signals.speaker or signals.named:
        found.append("name")
    if signals.dated:
        found.append("date")
    if not shared and signals.coverage >= _NEAR:
        found.append("similar words")
    return " · ".join(found or (["meaning"] if signals.cosine else ["recent"]))


def _shared_words(question: ParsedQuestion, stems: Collection[str]) -> Sequence[str]:
    """Return up to three words that question and entry share, longer ones first, as spelled in the question."""
    words = [term.word for term in question.terms if term.stem in stems]
    # A character that is part of a shared pair adds nothing.
    whole = [word for word in words if not any(word != each and word in each and is_unspaced(word) for each in words)]
    return sorted(dict.fromkeys(whole), key=lambda word: -len(word))[:_MOST_WORDS]


log = logging.getLogger(__name__)

CANDIDATES = 200
"""Maximum entries by words, and maximum entries by vectors, that are weighed."""
_COMPARED = 100
"""Number of best entries by words whose vectors are compared even if they are not among the nearest."""
_LED = 50
"""Number of best entries by words whose neighbours are candidates too."""
_MOST_TERMS = 24
_LOWERED = 0.85
"""The threshold is lowered to this share when no entry reaches it."""
_BROKEN = (BaError, sqlite3.Error, OSError)
"""Exceptions of a search when a part of memory is missing or damaged."""


class Nearest(Protocol):
    """Searches the vectors of one store, by ids of entries."""

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        """Return the ids with the highest cosines, highest first."""
        ...

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        """Return the cosines of those ids that have a vector."""
        ...


class MeaningModel(Protocol):
    """An embedding model: vectors of questions, and similarity of words. Raises BaError when the model is unusable.

    The implementation runs in the helper process.
    """

    @property
    def traits(self) -> Traits: ...

    def question(self, text: str) -> Vectors: ...

    def grades(
        self, asked: Sequence[IndexTerm], stems: Iterable[str], words: Callable[[Collection[str]], Mapping[str, str]]
    ) -> Grades: ...


@frozen
class SearchShelf:
    """One store: the project's or the global one. ``nearest`` is None while the store has no vectors."""

    lookup: Lookup
    nearest: Nearest | None = None


@frozen
class SearchRequest:
    """A request to memory."""

    text: str
    limit: int = 5
    explicit: bool = False
    """The user searches: the threshold is not applied, and superseded entries are found too."""
    today: date | None = None
    kinds: frozenset[Kind] | None = None
    tokens: int | None = None
    """Maximum tokens of all returned texts together."""
    leave_out: frozenset[str] = frozenset()
    """Ids of entries to leave out, for instance those that the conversation already contains."""


@frozen
class Hit:
    """An entry found by a search. It is relevant when its ``score`` is at least 1."""

    entry: Entry
    score: float
    signals: Signals = Signals()
    twins: tuple[str, ...] = ()
    """Ids of entries with the same content, which are not returned as separate hits."""
    rank: float = 0.0
    """The value by which hits are ordered. Unlike ``score`` it prefers statements to questions and long turns to short
    ones.
    """
    why: str = ""
    """The reason for the hit, for the user."""


@frozen
class RecallResult:
    """The hits of a search, best first, and the step that found them."""

    hits: tuple[Hit, ...] = ()
    step: Step = "vectors"
    why: str = ""
    """Why vectors, or words, could not be used; empty without a failure."""


@dataclass(slots=True)
class _Candidates:
    """Candidates of one store, and the turns around them."""

    shelf: SearchShelf
    numbers: list[int]
    cosines: dict[str, float]
    rows: dict[int, Row]
    nearby: dict[int, Nearby]


class Recall:
    """Searches ``shelves`` together. ``count`` estimates the tokens of a text."""

    def __init__(
        self,
        shelves: Sequence[SearchShelf],
        meaning: MeaningModel | None = None,
        count: Callable[[str], int] = lambda text: len(text.encode()) // 4 + 1,
    ) -> None:
        self._shelves = shelves
        self._meaning = meaning
        self._count = count

    def search(self, ask: SearchRequest) -> RecallResult:
        """Return the entries that answer ``ask``. Never raises: ``why`` of the result names a broken part."""
        why = "" if self._meaning else "No embedding model is in use."
        try:
            question = read(ask.text, self._speakers(), ask.today)
            if self._meaning:
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
        return {speaker for shelf in self._shelves for speaker in shelf.lookup.speakers()}

    def _weighed(self, question: ParsedQuestion, meaning: MeaningModel | None) -> list[tuple[Row, SearchShelf, Hit]]:
        """Return all candidates with their scores, best first. Their hits contain only the id of the entry."""
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
        # Age decides only between equal ranks.
        return sorted(weighed, key=lambda each: (-round(each[2].rank, 6), -each[0].at, -each[0].number))

    def _candidates(self, shelf: SearchShelf, stems: Collection[str], vector: Vectors | None) -> _Candidates:
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
        question: ParsedQuestion,
        telling: Collection[str],
        found: Sequence[_Candidates],
        meaning: MeaningModel | None,
    ) -> Grades:
        if meaning is None:
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
        question: ParsedQuestion,
        telling: Mapping[str, float],
        grades: Grades,
        weights: Calibration,
    ) -> Iterator[tuple[Row, Hit]]:
        scorer = Scorer(question, telling, grades, found.rows)
        for number in found.numbers:
            if (row := found.rows.get(number)) is not None:
                cosine = max(0.0, found.cosines.get(row.id, 0.0) - weights.unlike) / (1 - weights.unlike)
                signals = scorer.signals(row, found.nearby.get(number), cosine)
                relevance, rank = weights.relevance(row.kind, signals), weights.rank(row.kind, signals)
                yield row, Hit(Entry(row.id, ""), relevance, signals, rank=rank)

    def _chosen(
        self, ask: SearchRequest, weighed: Sequence[tuple[Row, SearchShelf, Hit]], step: Step, why: str
    ) -> RecallResult:
        """Return the best relevant entries of ``weighed`` within the limits of ``ask``."""
        for least in (0.0,) if ask.explicit else (1.0, _LOWERED):
            hits = self._told_apart(ask, (each for each in weighed if ask.explicit or each[2].score >= least))
            if hits:
                return RecallResult(tuple(hits), step, why)
        return RecallResult((), step, why)

    def _told_apart(self, ask: SearchRequest, weighed: Iterable[tuple[Row, SearchShelf, Hit]]) -> list[Hit]:
        """Return the first hits within the request's limits. Entries with the same content become twins of one hit."""
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

    def _recent(self, ask: SearchRequest, why: str) -> RecallResult:
        hits: list[Hit] = []
        for shelf in self._shelves if ask.explicit else ():
            try:
                entries = shelf.lookup.recent(CANDIDATES)
                hits += [Hit(entry, 0.0) for entry in entries if _wanted(ask, entry.id, entry.kind)]
            except _BROKEN as error:
                log.warning("memory cannot be read: %s", error)
                why = why or str(error)
        newest = sorted(hits, key=lambda hit: -hit.entry.at)[: ask.limit]
        return RecallResult(tuple(newest), "recent", why or "No entry has a word of the request.")


def _explained(
    question: ParsedQuestion, weighed: Iterable[tuple[Row, SearchShelf, Hit]], found: RecallResult
) -> RecallResult:
    stems = {row.id: row.terms for row, _, _ in weighed}
    hits = tuple(replace(hit, why=reasons(question, stems[hit.entry.id], hit.signals)) for hit in found.hits)
    return replace(found, hits=hits)


def _wanted(ask: SearchRequest, id: str, kind: Kind) -> bool:
    return id not in ask.leave_out and (ask.kinds is None or kind in ask.kinds)


def _share_words(one: Row, other: Row) -> bool:
    """Return whether the rows share at least half of their terms, so that comparing the texts is worthwhile."""
    return 2 * len(one.terms & other.terms) >= len(one.terms | other.terms)


def _same(one: Entry, other: Entry) -> bool:
    return compare(one.text, other.text) in (Sameness.EQUAL, Sameness.REWORDED)
