"""Memory with 100,000 entries: storing, searching through the helper, its start and size, and the start of ba.

The vectors are random, as if made before: what embedding costs is the model's, not ours.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.embedding import Fuse
from ba_tui.features.memory.engine.entries import new_id
from ba_tui.features.memory.engine.recall import SearchRequest
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash
from ba_tui.resources import folder_slug
from tests.bench.figures import Effort, Figure, median, p95
from tests.bench.place import box, place

ENTRIES = 100_000
VOCABULARY = 20_000
PROJECT = "bench-00000000"
NOW = 1_790_000_000.0


def vocabulary() -> list[str]:
    """Words of three to nine letters."""
    draw = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(VOCABULARY)]


def made(project: str, number: int = ENTRIES) -> list[Entry]:
    """Facts of six to twenty words, common and rare ones as in a language."""
    draw = random.Random(7)
    shares = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
    words = vocabulary()
    texts = (" ".join(draw.choices(words, cum_weights=shares, k=draw.randint(6, 20))) for _ in range(number))
    return [Entry(new_id(NOW + at), text, project=project, at=NOW + at) for at, text in enumerate(texts)]


def filled(folder: Path, project: str) -> Sequence[Entry]:
    """A store with all entries in its log."""
    shelf = Shelf(folder / "projects" / project)
    entries = made(project)
    for at in range(0, len(entries), 1_000):
        shelf.add(entries[at : at + 1_000])
    return entries


def embedded(folder: Path, project: str, entries: Sequence[Entry]) -> None:
    """Keep vectors for all entries, and for their words."""
    model = Fuse.traits.name
    hashes = [content_hash(model, entry.text) for entry in entries]
    _keep(VectorFile(folder / "projects" / project / "vectors.sqlite"), hashes)
    _keep(VectorFile(folder / "words.vectors.sqlite"), [content_hash(f"word {model}", word) for word in vocabulary()])


def _keep(file: VectorFile, hashes: Sequence[bytes]) -> None:
    for at in range(0, len(hashes), 1_000):
        part = hashes[at : at + 1_000]
        rows = numpy.random.default_rng(at).normal(size=(len(part), Fuse.traits.dimensions))
        rows = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float16)
        file.put({hash: row.tobytes() for hash, row in zip(part, rows, strict=True)})


async def _measured(folder: Path, entries: Sequence[Entry], effort: Effort) -> list[Figure]:
    firsts: list[float] = []
    store = MemoryStore(folder, PROJECT)
    begun = time.perf_counter()
    await store.search(SearchRequest("anything", explicit=True))
    while not (looked := await store.helper.look()) or looked.done < ENTRIES:  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(1)
    rebuilt = time.perf_counter() - begun
    await store.close()

    for _ in range(3):
        store = MemoryStore(folder, PROJECT)
        begun = time.perf_counter()
        await store.search(SearchRequest("where is the first answer", explicit=True))
        firsts.append(time.perf_counter() - begun)
        if len(firsts) < 3:
            await store.close()
    draw = random.Random(11)
    taken: list[float] = []
    for number in range(20 + effort.steps // 5):
        asked = " ".join(draw.choices(draw.choice(entries).text.split(), k=6))
        begun = time.perf_counter()
        found = await store.search(SearchRequest(asked))
        assert found.step == "vectors", found.why
        if number >= 20:
            taken.append(1_000 * (time.perf_counter() - begun))
    adding: list[float] = []
    for number in range(effort.steps // 5):
        new = Entry(new_id(NOW), f"a new fact, number {number}", project=PROJECT, at=NOW)
        begun = time.perf_counter()
        await store.add([new])
        adding.append(1_000 * (time.perf_counter() - begun))
    looked = await store.helper.look()
    begun = time.perf_counter()
    await store.forget([entries[5].id])
    forgotten = time.perf_counter() - begun
    await store.close()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    count = f"{ENTRIES:,} entries"
    return [
        Figure(f"a search of {count} through the helper, p95", p95(taken), "ms", 50.0),
        Figure("the same, median", median(taken), "ms", 20.0),
        Figure("storing an entry, p95", p95(adding), "ms", 5.0),
        Figure("forgetting an entry in all indexes", forgotten, "s", float("inf")),
        Figure("cold start of the helper to its first answer", median(firsts), "s", 2.5),
        Figure("making all indexes, vectors kept, an entry", 1_000 * rebuilt / ENTRIES, "ms", 1.0, "1,000 entries/s"),
        Figure("the helper's memory", (looked.memory if looked else 0) / 1e6, "MB", 900.0),
        Figure(f"{count} on the disk", size / 1e6, "MB", float("inf")),
    ]


def memory(effort: Effort) -> Iterator[Figure]:
    with TemporaryDirectory() as name:
        folder = Path(name) / "memory"
        entries = filled(folder, PROJECT)
        embedded(folder, PROJECT, entries)
        yield from asyncio.run(_measured(folder, entries, effort))
    starts: dict[bool, float] = {}
    for full in (False, True):
        with place() as spot:
            if full:
                filled(spot.home / "memory", folder_slug(spot.folder.resolve()))
            boxes: list[float] = []
            for _ in range(effort.starts + 1):
                with spot.app() as terminal:
                    boxes.append(terminal.until(box) - terminal.started)
            starts[full] = median(boxes[1:])
    yield Figure(f"first screen with {ENTRIES:,} entries", starts[True], "s", 1.1 * starts[False], "1.1 × without")
