"""An embedder for several threads: questions run between the small batches of other work."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy

from ba_tui.features.memory.engine.embedding import Embedder, Traits
from ba_tui.features.memory.engine.likeness import Likeness
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.terms import IndexTerm
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors


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
