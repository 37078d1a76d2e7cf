"""An embedder for several threads: questions run between the small batches of other work; and similarity of words."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy

from ba_tui.features.memory.engine.embedding import Embedder, Traits
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.terms import IndexTerm
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors


_UNLIKE = 0.4
"""Minimum cosine of similar words."""
_POWER = 1.5
_MOST_NEW = 500
"""Maximum words that one question embeds. ``learn`` embeds the words of a new index."""

Words = Callable[[Collection[str]], Mapping[str, str]]
"""Returns a written word for each stem."""


class Likeness:
    """Vectors of words in memory, 2 KB each. ``file`` stores them for later processes."""

    def __init__(self, embedder: Embedder, file: VectorFile) -> None:
        self._embedder = embedder
        self._file = file
        self._places: dict[str, int] = {}
        self._vectors: Any = numpy.empty((1_024, embedder.traits.dimensions), dtype=numpy.float32)

    def grades(self, asked: Sequence[IndexTerm], stems: Iterable[str], words: Words) -> Grades:
        """Return the similarity of the ``asked`` terms and the ``stems`` of entries. Only equal numbers are similar.

        Raises NoEmbedder.
        """
        asked = [term for term in asked if _has_meaning(term.stem)]
        self._learn({term.stem: term.word for term in asked}, len(asked))
        wanted = self._known(stems, words, _MOST_NEW)
        if not asked or not wanted:
            return {}
        cosines = self._of([term.stem for term in asked]) @ self._of(wanted).T
        grades = numpy.clip((cosines - _UNLIKE) / (1 - _UNLIKE), 0, 1) ** _POWER
        return {
            term.stem: {wanted[at]: float(row[at]) for at in numpy.flatnonzero(row)}
            for term, row in zip(asked, grades, strict=True)
        }

    def learn(self, stems: Collection[str], words: Words) -> None:
        """Embed stems in the background, 0.4 ms each, so that no question waits for embedding."""
        self._known(stems, words, len(stems))

    def _known(self, stems: Iterable[str], words: Words, most: int) -> list[str]:
        """Embed up to ``most`` new ``stems``; return those that have a vector."""
        stems = list(stems)
        new = [stem for stem in stems if stem not in self._places and _has_meaning(stem)]
        if new:
            self._learn(words(new), most)
        return [stem for stem in stems if stem in self._places]

    def _of(self, stems: Sequence[str]) -> Vectors:
        return self._vectors[[self._places[stem] for stem in stems]]

    def _learn(self, words: Mapping[str, str], most: int) -> None:
        """Load the vectors of new stems from the file; embed up to ``most`` of the missing ones."""
        new = {stem: word for stem, word in words.items() if stem not in self._places}
        if not new:
            return
        hashes = {stem: content_hash(f"word {self._embedder.traits.name}", word) for stem, word in new.items()}
        kept = self._file.get(hashes.values())
        missing = [stem for stem, hash in hashes.items() if hash not in kept][:most]
        if missing:
            made = numpy.asarray(self._embedder.entries([new[stem] for stem in missing]), dtype=numpy.float16)
            fresh = {hashes[stem]: vector.tobytes() for stem, vector in zip(missing, made, strict=True)}
            self._file.put(fresh)
            kept.update(fresh)
        for stem, hash in hashes.items():
            if hash in kept:
                self._keep(stem, kept[hash])

    def _keep(self, stem: str, vector: bytes) -> None:
        place = len(self._places)
        if place == len(self._vectors):
            self._vectors = numpy.concatenate([self._vectors, numpy.empty_like(self._vectors)])
        self._vectors[place] = numpy.frombuffer(vector, dtype=numpy.float16)
        self._places[stem] = place


def _has_meaning(stem: str) -> bool:
    return len(stem) > 1 and not any(character.isdigit() for character in stem)


_PAUSE = 0.002
_counting = threading.Lock()
_questions = 0


@contextmanager
def asking() -> Generator[None]:
    """While this context is active, no work begins. Never use it around work."""
    global _questions
    with _counting:
        _questions += 1
    try:
        yield
    finally:
        with _counting:
            _questions -= 1


def give_way() -> None:
    """Wait until no question is active."""
    while _questions:
        time.sleep(_PAUSE)


class WorkQueue:
    """Gives questions precedence over background work: Chroma blocks the interpreter while it adds vectors, and a plain
    lock would give continuous work nearly all turns. ``lock`` is for other uses.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()

    @contextmanager
    def question(self) -> Generator[None]:
        """Run the block as soon as the current turn ends."""
        with asking(), self.lock:
            yield

    @contextmanager
    def work(self) -> Generator[None]:
        """Run the block when no question waits. Never use it within another turn."""
        give_way()
        with self.lock:
            yield


_BATCH = 16
_NEW = 8
"""Words of the store that one question embeds; the others are embedded in idle time."""
_WORDS = 50
"""Texts and words that are embedded before a question gets its turn: 30 ms with FUSE."""


class Mind:
    """Implements ``recall.MeaningModel``. ``words`` stores the vectors of words."""

    def __init__(self, embedder: Embedder, words: VectorFile) -> None:
        self._embedder = embedder
        self._likeness = Likeness(embedder, words)
        self._turns = WorkQueue()
        self._learned: set[str] = set()

    @property
    def traits(self) -> Traits:
        return self._embedder.traits

    def question(self, text: str) -> Vectors:
        with self._turns.question():
            return self._embedder.question(text)

    def grades(
        self, asked: Sequence[IndexTerm], stems: Iterable[str], words: Callable[[Collection[str]], Mapping[str, str]]
    ) -> Grades:
        wanted = list(stems)
        known = [stem for stem in wanted if stem in self._learned]
        new = [stem for stem in wanted if stem not in self._learned][:_NEW]
        with self._turns.question():
            found = self._likeness.grades(asked, [*known, *new], words)
        self._learned.update(new)
        return found

    def vectors(self, texts: Sequence[str], file: VectorFile) -> Vectors:
        """Return one row per text: from ``file``, else computed and stored there. Raises NoEmbedder."""
        hashes = [content_hash(self.traits.name, text) for text in texts]
        kept = file.get(hashes)
        missing = [(hash, text) for hash, text in zip(hashes, texts, strict=True) if hash not in kept]
        missing = list(dict(missing).items())
        for at in range(0, len(missing), _BATCH):
            part = missing[at : at + _BATCH]
            with self._turns.work():
                made = numpy.asarray(self._embedder.entries([text for _, text in part]), numpy.float16)
            fresh = {hash: vector.tobytes() for (hash, _), vector in zip(part, made, strict=True)}
            file.put(fresh)
            kept.update(fresh)
        rows = [numpy.frombuffer(kept[hash], numpy.float16) for hash in hashes]
        return numpy.asarray(rows, numpy.float32)

    def unlearned(self, lookup: Lookup) -> list[str]:
        """Return the words of the store without vectors, as terms."""
        return [stem for stem in lookup.index.ask(_stems) if stem not in self._learned]

    def learn(self, stems: Sequence[str], lookup: Lookup) -> None:
        """Embed terms of the store, so that no question has to."""
        for at in range(0, len(stems), _WORDS):
            part = stems[at : at + _WORDS]
            with self._turns.work():
                self._likeness.learn(part, lookup.words)
            self._learned.update(part)


def _stems(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT stem FROM words WHERE entries > 0")]
