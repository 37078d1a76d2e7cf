"""What a request to a worker process costs beside its payload, and what a start costs. CPU of both processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.processes.values import WorkerEntry, WorkerSettings
from ba_tui.processes.worker import WorkerClient
from tests.bench.figures import Effort, Figure, median

ENTRY = "tests.processes.sample_worker:main"


async def _measured(folder: Path, requests: int) -> tuple[float, float]:
    """CPU milliseconds of one request to a warm worker, ours and the worker's; milliseconds until the first reply."""
    worker = WorkerClient(WorkerEntry(ENTRY), WorkerSettings(folder, {"PATH": os.defpath}))

    async def spent() -> float:
        theirs: Any = await worker.request("cpu")
        return time.process_time() + theirs

    begun = time.perf_counter()
    await spent()
    started = time.perf_counter() - begun
    for _ in range(requests // 10):
        await worker.request("echo", 1)
    before = await spent()
    for number in range(requests):
        await worker.request("echo", number)
    taken = await spent() - before
    await worker.close()
    return 1_000 * taken / requests, 1_000 * started


def worker(effort: Effort) -> Iterator[Figure]:
    """A request to a worker, its start, and a short program without a supervisor."""
    with TemporaryDirectory() as name:
        rounds = [asyncio.run(_measured(Path(name), 10 * effort.steps)) for _ in range(3)]
    yield Figure("a request to a warm worker, CPU of both processes", median([cpu for cpu, _ in rounds]), "ms", 0.3)
    yield Figure("a worker's start until its first reply", median([start for _, start in rounds]), "ms", 300.0)
    taken: list[float] = []
    for _ in range(effort.keys):
        begun = time.perf_counter()
        run_briefly(BriefRun(("/bin/true",), 10))
        taken.append(1_000 * (time.perf_counter() - begun))
    yield Figure("a short program without a supervisor", median(taken), "ms", 10.0)
