"""Recall and rank of the evidence, with all parts of retrieval and without each of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.embedding import EMBEDDERS, Embedder
from ba_tui.features.memory.engine.entries import added
from ba_tui.features.memory.engine.index import Index
from ba_tui.features.memory.engine.log import Log
from ba_tui.features.memory.engine.lookup import Lookup, Nearby, Row
from ba_tui.features.memory.engine.recall import Calibration, Hit, Recall, SearchRequest, SearchShelf
from ba_tui.features.memory.engine.scoring import Grades
from ba_tui.features.memory.engine.store_process.desk import Exact, embedded_text
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.features.memory.engine.vectors import VectorFile
from tests.eval.memory.cases import Asked, Case

DEPTHS = (1, 3, 5, 10, 25)
NAMED = (1, 5, 10, 25)
"""The depths that the last line names."""
DEEPEST = 25
LIMIT, TOKENS = 5, 600
"""Entries and tokens of one reminder."""
PARTS = ("vectors", "likeness", "neighbours", "speaker", "dates", "form", "length")
WEIGHTS = {"dates": ("dated",), "form": ("statement", "when"), "length": ("length",)}
"""The signals of parts that are nothing but signals."""


class Alone(Lookup):
    """Knows no neighbours of a turn."""

    def nearby(self, rows: Iterable[Row]) -> dict[int, Nearby]:
        return {}


class Partial(Recall):
    """Retrieval without the part ``off``, to measure its benefit."""

    def __init__(self, shelf: SearchShelf, mind: Mind | None, off: str = "") -> None:
        if off == "neighbours":
            shelf = replace(shelf, lookup=Alone(shelf.lookup.index))
        super().__init__([shelf], None if off == "vectors" else mind)
        self._off = off

    def _speakers(self) -> set[str]:
        return set() if self._off == "speaker" else super()._speakers()

    def _grades(self, question: Any, telling: Any, found: Any, meaning: Any) -> Grades:
        return {} if self._off == "likeness" else super()._grades(question, telling, found, meaning)

    def _scored(
        self, found: Any, question: Any, telling: Any, grades: Grades, weights: Calibration
    ) -> Iterator[tuple[Row, Hit]]:
        none = dict.fromkeys(WEIGHTS.get(self._off, ()), 0.0)
        weights = replace(weights, turns=replace(weights.turns, **none), facts=replace(weights.facts, **none))
        return super()._scored(found, question, telling, grades, weights)


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
        depths = " ".join(f"recall@{depth} {self.recall(depth):.1f}" for depth in NAMED)
        return f"{depths} mrr {self.mrr:.2f}"


class Store:
    """One case as memory keeps it: log and index on the disk, and vectors by ``mind``, which ``vectors`` keeps."""

    def __init__(self, case: Case, folder: Path, mind: Mind | None, vectors: VectorFile | None) -> None:
        log = Log(folder / "memory.jsonl")
        log.append(b"".join(map(added, case.entries)))
        index = Index(folder / "memory.sqlite", log)
        index.update()
        lookup = Lookup(index)
        nearest = None
        if mind and vectors:
            nearest = Exact(mind.traits.dimensions)
            nearest.add([each.id for each in case.entries], mind.vectors(_texts(case.entries), vectors))
            mind.learn(mind.unlearned(lookup), lookup)
        self.mind = mind
        self.shelf = SearchShelf(lookup, nearest)

    def ask(self, ask: SearchRequest, without: str = "") -> tuple[list[str], float]:
        """Ids, best first, and the seconds that it took."""
        recall = Partial(self.shelf, self.mind, without)
        begun = time.perf_counter()
        found = recall.search(ask)
        ids = [id for hit in found.hits for id in (hit.entry.id, *hit.twins)]
        return ids, time.perf_counter() - begun


def _texts(entries: Sequence[Entry]) -> list[str]:
    """What is embedded of each entry; a turn follows the one before it in its session."""
    turns: dict[str, Entry] = {}
    texts: dict[str, str] = {}
    for entry in sorted(entries, key=lambda each: each.sequence):
        texts[entry.id] = embedded_text(entry, turns.get(entry.session) if entry.kind == "turn" else None)
        if entry.kind == "turn":
            turns[entry.session] = entry
    return [texts[entry.id] for entry in entries]


class _Kept:
    """An embedder that embeds each question once: an evaluation asks it again without each part."""

    def __init__(self, embedder: Embedder) -> None:
        self.traits = embedder.traits
        self.entries = embedder.entries
        self.question = cache(embedder.question)


@contextmanager
def stores(cases: Sequence[Case], embedder: str, vectors: Path | None = None) -> Generator[list[tuple[Case, Store]]]:
    """Each case in a folder of its own. ``embedder`` is a name in the settings or empty; ``vectors`` a file for
    the vectors that outlives the run.
    """
    with tempfile.TemporaryDirectory(prefix="ba-memory-") as root:
        made = _Kept(EMBEDDERS[embedder]()) if embedder else None
        kept = VectorFile(vectors or Path(root, "vectors.sqlite")) if made else None
        mind = Mind(made, kept) if made and kept else None
        found: list[tuple[Case, Store]] = []
        for number, case in enumerate(cases):
            folder = Path(root, str(number))
            folder.mkdir()
            found.append((case, Store(case, folder, mind, kept)))
        yield found


def ranks(found: Sequence[tuple[Case, Store]], without: str = "") -> Ranks:
    """The places of all evidence, without one of the PARTS."""
    result = Ranks()
    for case, store in found:
        for question in case.questions:
            ask = SearchRequest(question.text, limit=DEEPEST, explicit=True, today=question.today)
            result.add(question, *store.ask(ask, without))
    return result


@dataclass(frozen=True)
class Reminders:
    """How often a prompt is given entries without being a search, in percent."""

    evidence: float
    """Of the questions: those that are given some of their evidence."""
    questions: float
    """Of the questions: those that are given anything."""
    unrelated: float
    """Of prompts that have nothing to do with the memories: those that are given anything."""


def reminders(found: Sequence[tuple[Case, Store]], unrelated: Sequence[str]) -> Reminders:
    """What the reminder after a prompt would hold, with the limits of a session."""
    evidence: list[bool] = []
    given: list[bool] = []
    for case, store in found:
        for question in case.questions:
            ids, _ = store.ask(SearchRequest(question.text, LIMIT, today=question.today, tokens=TOKENS))
            evidence.append(not set(ids).isdisjoint(question.evidence))
            given.append(bool(ids))
    disturbed = [
        bool(store.ask(SearchRequest(text, LIMIT, tokens=TOKENS))[0]) for _, store in found for text in unrelated
    ]
    return Reminders(*(100 * fmean(each) if each else 0.0 for each in (evidence, given, disturbed)))
