"""Vectors of the entries of a store and similar words, both made once by an embedding model.

Runs in the memory helper. ``recall`` searches with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.embedding import Embedder, Traits
from ba_tui.features.memory.engine.index import unpacked
from ba_tui.features.memory.engine.likeness import Likeness
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.terms import Term
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors

_AT_ONCE = 256
_CONTEXT = 500
"""Characters of the previous turn that belong to the vector of a turn."""
_ALONE = 400
"""Characters from which a turn is understood without the one before it."""

Progress = Callable[[int, int], None]
"""Called with the number of entries that have a vector, and of all entries."""


class VectorIndex(Protocol):
    """Where the vectors of entries are searched."""

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors; they replace earlier vectors of the same ids."""
        ...

    def remove(self, ids: Iterable[str]) -> None: ...


class Embedded:
    """An embedding model with a file of the vectors that it made. Implements ``recall.Meaning``."""

    def __init__(self, embedder: Embedder, file: VectorFile) -> None:
        self._embedder = embedder
        self._file = file
        self._likeness = Likeness(embedder, file)

    @property
    def traits(self) -> Traits:
        return self._embedder.traits

    def question(self, text: str) -> Vectors:
        return self._embedder.question(text)

    def grades(
        self, asked: Sequence[Term], stems: Iterable[str], words: Callable[[Collection[str]], Mapping[str, str]]
    ) -> Grades:
        return self._likeness.grades(asked, stems, words)

    def fill(self, lookup: Lookup, into: VectorIndex, since: int = 0, progress: Progress | None = None) -> int:
        """Give ``into`` the vectors of all entries with a number above ``since``; the highest number there is.

        Embeds what the file does not have: 2 ms an entry with FUSE, 20 ms with E5. Otherwise 0.02 ms.
        """
        texts = embedded_texts(lookup, since)
        total = lookup.total()
        done = 0
        while batch := list(islice(texts, _AT_ONCE)):
            into.add([id for _, id, _ in batch], self._vectors([text for _, _, text in batch]))
            since = max(since, *(number for number, _, _ in batch))
            done += len(batch)
            if progress:
                progress(done, total)
        return since

    def learn(self, lookup: Lookup) -> None:
        """Embed the words of the store, so that no question has to: 0.4 ms a word, once."""
        stems: list[str] = lookup.index.ask(_stems)
        self._likeness.learn(stems, lookup.words)

    def forget(self, texts: Iterable[str]) -> None:
        """Delete the vectors of ``texts`` from the file."""
        self._file.drop(content_hash(self.traits.name, text) for text in texts)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        hashes = [content_hash(self.traits.name, text) for text in texts]
        kept = self._file.get(hashes)
        missing = {hash: text for hash, text in zip(hashes, texts, strict=True) if hash not in kept}
        if missing:
            made = numpy.asarray(self._embedder.entries(list(missing.values())), dtype=numpy.float16)
            fresh = {hash: vector.tobytes() for hash, vector in zip(missing, made, strict=True)}
            self._file.put(fresh)
            kept.update(fresh)
        rows = [numpy.frombuffer(kept[hash], dtype=numpy.float16) for hash in hashes]
        return numpy.asarray(rows, dtype=numpy.float32)


def embedded_texts(lookup: Lookup, since: int = 0) -> Iterator[tuple[int, str, str]]:
    """Number, id and the text to embed of the entries with a number above ``since``: of a
    short turn with the end of the turn before it, since an answer means little without its question.
    """
    query = (
        "SELECT number, id, session, record, (SELECT record FROM entries before WHERE before.session = entry.session"
        " AND (before.sequence, before.number) < (entry.sequence, entry.number) AND before.kind = 'turn'"
        " AND entry.kind = 'turn' ORDER BY before.sequence DESC, before.number DESC LIMIT 1)"
        " FROM entries entry WHERE number > ? ORDER BY number LIMIT ?"
    )
    while rows := lookup.index.ask(lambda db, since=since: db.execute(query, (since, _AT_ONCE)).fetchall()):
        for number, id, _, record, before in rows:
            yield number, id, embedded_text(unpacked(record), unpacked(before) if before else None)
        since = rows[-1][0]


def embedded_text(entry: Entry, before: Entry | None = None) -> str:
    """The text to embed for ``entry``: a short turn follows the end of the turn ``before`` it."""
    return f"{before.text[-_CONTEXT:]} {entry.text}" if before and len(entry.text) <= _ALONE else entry.text


def _stems(db: Any) -> list[str]:
    return [row[0] for row in db.execute("SELECT stem FROM words WHERE entries > 0")]
