"""An embedder for several threads: questions go between the small batches of what has to be embedded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from ba_tui.features.memory.engine.embedding import Embedder, Traits
from ba_tui.features.memory.engine.likeness import Likeness
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.store_process.turns import Turns
from ba_tui.features.memory.engine.terms import Term
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors

_BATCH = 16
_NEW = 8
"""Words of the store that one question embeds; the others are embedded while nobody waits."""
_WORDS = 50
"""Texts and words that are embedded before a question gets its turn: 30 ms with FUSE."""


class Mind:
    """Implements ``recall.Meaning``. ``words`` keeps the vectors of words."""

    def __init__(self, embedder: Embedder, words: VectorFile) -> None:
        self._embedder = embedder
        self._likeness = Likeness(embedder, words)
        self._turns = Turns()
        self._learned: set[str] = set()

    @property
    def traits(self) -> Traits:
        return self._embedder.traits

    def question(self, text: str) -> Vectors:
        with self._turns.question():
            return self._embedder.question(text)

    def grades(
        self, asked: Sequence[Term], stems: Iterable[str], words: Callable[[Collection[str]], Mapping[str, str]]
    ) -> Grades:
        wanted = list(stems)
        known = [stem for stem in wanted if stem in self._learned]
        new = [stem for stem in wanted if stem not in self._learned][:_NEW]
        with self._turns.question():
            found = self._likeness.grades(asked, [*known, *new], words)
        self._learned.update(new)
        return found

    def vectors(self, texts: Sequence[str], file: VectorFile) -> Vectors:
        """One row a text: from ``file``, else made and kept there. Raises NoEmbedder."""
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
        """The words of the store that no question has been prepared for, as terms."""
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
