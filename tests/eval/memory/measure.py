"""Recall and rank of the evidence, with all parts of retrieval and without each of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean

from ba_tui.memory.embedding import EMBEDDERS, Embedder
from ba_tui.memory.entries import added
from ba_tui.memory.index import Index
from ba_tui.memory.log import Log
from ba_tui.memory.lookup import Lookup
from ba_tui.memory.meaning import Embedded
from ba_tui.memory.nearest import Exact
from ba_tui.memory.recall import Ask, Parts, Recall, Shelf
from ba_tui.memory.vectors import VectorFile
from tests.eval.memory.cases import Asked, Case

DEPTHS = (1, 5, 10, 25)
DEEPEST = 25
PARTS = tuple(field.name for field in fields(Parts))


@dataclass
class Ranks:
    """For each question the places of its evidence, from 1; those that were not found are missing."""

    places: list[tuple[int, list[int], str]] = field(default_factory=list[tuple[int, list[int], str]])
    seconds: list[float] = field(default_factory=list[float])

    def add(self, asked: Asked, ids: Sequence[str], seconds: float) -> None:
        found = [place for place, id in enumerate(ids, 1) if id in asked.evidence]
        self.places.append((len(set(asked.evidence)), found, asked.kind))
        self.seconds.append(seconds)

    def recall(self, depth: int, kind: str = "") -> float:
        """Share of the evidence in the first ``depth``, the mean over questions, in percent."""
        shares = [
            sum(place <= depth for place in found) / wanted
            for wanted, found, of in self.places
            if not kind or of == kind
        ]
        return 100 * fmean(shares) if shares else 0.0

    @property
    def mrr(self) -> float:
        return fmean(1 / min(found) if found else 0.0 for _, found, _ in self.places)

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for _, _, kind in self.places if kind})

    def line(self) -> str:
        depths = " ".join(f"recall@{depth} {self.recall(depth):.1f}" for depth in DEPTHS)
        return f"{depths} mrr {self.mrr:.2f}"


class Store:
    """One case as memory keeps it: log, index and vectors on the disk."""

    def __init__(self, case: Case, folder: Path, embedder: Embedder | None) -> None:
        log = Log(folder / "memory.jsonl")
        log.append(b"".join(map(added, case.entries)))
        index = Index(folder / "memory.sqlite", log)
        index.update()
        lookup = Lookup(index)
        self.meaning: Embedded | None = None
        nearest = None
        if embedder:
            self.meaning = Embedded(embedder, VectorFile(folder / "vectors.sqlite"))
            nearest = Exact(embedder.traits.dimensions)
            self.meaning.fill(lookup, nearest)
            self.meaning.learn(lookup)
        self.shelf = Shelf(lookup, nearest)

    def ask(self, question: Asked, parts: Parts) -> tuple[list[str], float]:
        """Ids, best first, and the seconds that it took."""
        recall = Recall([self.shelf], self.meaning, parts)
        begun = time.perf_counter()
        found = recall.search(Ask(question.text, limit=DEEPEST, explicit=True, today=question.today))
        ids = [id for hit in found.hits for id in (hit.entry.id, *hit.twins)]
        return ids, time.perf_counter() - begun


@contextmanager
def stores(cases: Sequence[Case], embedder: str) -> Generator[list[tuple[Case, Store]]]:
    """Each case in a folder of its own; all share one embedder, by the name in the settings, or none."""
    made = EMBEDDERS[embedder]() if embedder else None
    with tempfile.TemporaryDirectory(prefix="ba-memory-") as root:
        found: list[tuple[Case, Store]] = []
        for number, case in enumerate(cases):
            folder = Path(root, str(number))
            folder.mkdir()
            found.append((case, Store(case, folder, made)))
        yield found


def ranks(found: Sequence[tuple[Case, Store]], parts: Parts = Parts()) -> Ranks:  # noqa: B008 - a value
    """The places of all evidence with these parts."""
    result = Ranks()
    for case, store in found:
        for question in case.questions:
            result.add(question, *store.ask(question, parts))
    return result


def without(part: str) -> Parts:
    return replace(Parts(), **{part: False})
