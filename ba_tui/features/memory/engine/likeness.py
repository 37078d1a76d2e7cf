"""Find similar words by their vectors: "purchase" finds "buy", "illness" finds "disease"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.terms import IndexTerm
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Embedder, Vectors

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
