"""What naming a file costs in a folder of 100 000: each key after the ``@``, the loop meanwhile, and the memory."""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from ba_tui.context.files import FileIndex, find_ripgrep
from tests.bench.figures import Effort, Figure, p95

FILES, FOLDERS = 100_000, 6_000
WORDS = ("core", "model", "view", "parser", "token", "session", "report", "sales", "data", "index", "test", "chart")
TYPED = ("session_9", "report_99.py", "src/core/mod", "prstkn", "sales data", "zzzz", "chart_index_test", "c7/agent")
GLANCE = 0.001


def names(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        _filled(Path(place))
        kept = asyncio.run(_kept(Path(place)))
        keys, pause, first = asyncio.run(_typed(Path(place), max(1, effort.keys // 12)))
    yield Figure("100 000 files: names for a key, p95", 1_000 * p95(keys), "ms", 50.0)
    yield Figure("the first key, while they are listed", 1_000 * first, "ms", float("inf"))
    yield Figure("the loop's longest pause meanwhile", 1_000 * pause, "ms", 32.0, "two frames")
    yield Figure("memory that the names take", kept / 1e6, "MB", 32.0)


async def _kept(root: Path) -> int:
    tracemalloc.start()
    index = FileIndex(root, find_ripgrep())
    await index.search("", 1)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return kept


def _filled(root: Path) -> None:
    chance = random.Random(1)
    folders = [root / "/".join(_word(chance) for _ in range(chance.randint(1, 5))) for _ in range(FOLDERS)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        (chance.choice(folders) / f"{chance.choice(WORDS)}_{number}.py").touch()


def _word(chance: random.Random) -> str:
    return f"{chance.choice(WORDS)}{chance.randint(0, 9)}"


async def _typed(root: Path, rounds: int) -> tuple[list[float], float, float]:
    """Seconds of each key once the names are there, the longest pause of the loop, seconds of the first key."""
    index = FileIndex(root, find_ripgrep())
    pauses: list[float] = []
    beating = asyncio.create_task(_beat(pauses))
    begin = time.perf_counter()
    await index.search("", 50)
    first = time.perf_counter() - begin
    keys: list[float] = []
    for query in TYPED * rounds:
        for end in range(1, len(query) + 1):
            begin = time.perf_counter()
            await index.search(query[:end], 50)
            keys.append(time.perf_counter() - begin)
    beating.cancel()
    return keys, max(pauses), first


async def _beat(pauses: list[float]) -> None:
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(GLANCE)
        pauses.append(time.perf_counter() - begin - GLANCE)
