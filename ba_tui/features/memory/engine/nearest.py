"""Exact search for near vectors with numpy, all in memory: for evaluation, for tests, and for stores without Chroma.

Implements ``recall.Nearest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors


class Exact:
    """Compares with every vector: 0.1 ms for 1,000 entries, 20 ms for 100,000 and 200 MB."""

    def __init__(self, dimensions: int) -> None:
        self._places: dict[str, int] = {}
        self._ids: list[str] = []
        self._vectors: Vectors = numpy.empty((0, dimensions), dtype=numpy.float32)

    def close(self) -> None:
        """Nothing is open."""

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        self.remove(ids)
        self._places.update({id: len(self._ids) + at for at, id in enumerate(ids)})
        self._ids += ids
        self._vectors = numpy.vstack([self._vectors, numpy.asarray(vectors, dtype=numpy.float32)])

    def remove(self, ids: Iterable[str]) -> None:
        gone = {self._places[id] for id in ids if id in self._places}
        if not gone:
            return
        kept = [at for at in range(len(self._ids)) if at not in gone]
        self._ids = [self._ids[at] for at in kept]
        self._places = {id: at for at, id in enumerate(self._ids)}
        self._vectors = self._vectors[kept]

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        if not self._ids or limit <= 0:
            return {}
        cosines = self._vectors @ vector
        few = min(limit, len(self._ids))
        best = numpy.argpartition(-cosines, few - 1)[:few]
        return {self._ids[at]: float(cosines[at]) for at in best[numpy.argsort(-cosines[best], kind="stable")]}

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        known = [id for id in ids if id in self._places]
        found = self._vectors[[self._places[id] for id in known]] @ vector if known else ()
        return {id: float(cosine) for id, cosine in zip(known, found, strict=True)}
