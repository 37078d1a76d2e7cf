"""The data engine against DuckDB in the same run: a query, the start of the helper, the profile of a gigabyte."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psutil

from ba_tui.features.data.analysis.engine import Analysis
from tests.analysis.engines import engine_in
from tests.bench.figures import Effort, Figure, median

ROWS = 12_000_000
"""Rows of about 85 bytes."""
COLUMNS = (
    "i AS id, 'region ' || (i % 7) AS region, (i * 7919 % 100003) * 1.5 AS amount, md5(i::VARCHAR) AS note, "
    "i % 97 AS units, DATE '2015-01-01' + (i % 3650)::INT AS day, 'customer ' || (hash(i) % 200000) AS customer"
)
QUERY = "SELECT region, sum(amount) AS amount FROM small GROUP BY ALL ORDER BY region"
SMALL = f"SELECT {COLUMNS} FROM range(1000) t(i)"
THREADS = 2


async def _ready(folder: Path, starts: int) -> tuple[float, float]:
    """Seconds and CPU seconds from the first request to its reply."""
    spent: list[float] = []
    cpu: list[float] = []
    for number in range(starts):
        engine = engine_in(folder, state=folder / f"state{number}")
        begun = time.perf_counter()
        await engine.statements("SELECT 1")
        spent.append(time.perf_counter() - begun)
        cpu.append(_cpu())
        await engine.close()
    return median(spent), median(cpu)


async def _queries(folder: Path, rounds: int) -> tuple[float, float]:
    """Milliseconds of a query through the helper, and of the same in this process."""
    (folder / "small.csv").write_text("")
    with duckdb.connect(str(folder / "direct.duckdb"), config={"threads": THREADS}) as base:
        base.execute(f"CREATE TABLE small AS {SMALL}")
        base.execute(f"COPY small TO '{folder / 'small.csv'}'")
        engine = engine_in(folder)
        await engine.register("small.csv")
        helper: list[float] = []
        direct: list[float] = []
        for _ in range(rounds):
            begun = time.perf_counter()
            base.execute(QUERY).fetchall()
            middle = time.perf_counter()
            await engine.query(QUERY)
            direct.append(1_000 * (middle - begun))
            helper.append(1_000 * (time.perf_counter() - middle))
        await engine.close()
    return median(helper), median(direct)


def _processes() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _cpu() -> float:
    """CPU seconds of the helper's processes."""
    times: list[Any] = [each.cpu_times() for each in _processes()]
    return sum(each.user + each.system for each in times)


def _memory() -> float:
    """Megabytes of all processes but this one."""
    found = 0
    for each in _processes():
        try:
            found += each.memory_info().rss
        except psutil.Error:
            continue
    return found / 1e6


class _Peak:
    """The most memory within a ``with``."""

    def __enter__(self) -> _Peak:
        self.megabytes = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self.megabytes = max(self.megabytes, _memory())

    def __exit__(self, *args: object) -> None:
        self._done.set()
        self._thread.join()


async def _profile(engine: Analysis, file: Path) -> tuple[float, float, float]:
    """Seconds and CPU seconds of a profile, and the memory that it took."""
    await engine.query("SELECT 1")
    with _Peak() as peak:
        begun, cpu = time.perf_counter(), _cpu()
        (dataset,) = await engine.register(file.name)
        await engine.profile(dataset.name)
        return time.perf_counter() - begun, _cpu() - cpu, peak.megabytes


async def _cancelled(engine: Analysis, file: Path) -> float:
    """Seconds from a cancelled load until the engine has answered another request."""
    os.utime(file)
    loading = asyncio.create_task(engine.register(file.name))
    await asyncio.sleep(2.0)
    loading.cancel()
    begun = time.perf_counter()
    await asyncio.wait([loading])
    await engine.query("SELECT 1")
    return time.perf_counter() - begun


def _summarize(file: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of DuckDB's own SUMMARIZE, on the file."""
    with duckdb.connect(config={"threads": THREADS}) as base:
        begun, cpu = time.perf_counter(), time.process_time()
        base.execute(f"SUMMARIZE FROM '{file}'").fetchall()
        return time.perf_counter() - begun, time.process_time() - cpu


async def _large(folder: Path, file: Path) -> tuple[float, float, float, float]:
    engine = engine_in(folder, memory=4 * 10**9, disk=8 * 10**9, threads=THREADS)
    try:
        return (*await _profile(engine, file), await _cancelled(engine, file))
    finally:
        await engine.close()


def data(effort: Effort) -> Iterator[Figure]:
    """A query, the start, and the profile of a CSV of a gigabyte."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, cpu = asyncio.run(_ready(folder, effort.starts))
        yield Figure("data engine ready after the first mention", seconds, "s", 0.6, f"{cpu:.2f} s of CPU")
        helper, direct = asyncio.run(_queries(folder, effort.keys * 5))
        told = f"DuckDB in process {direct:.1f}"
        yield Figure("a query through the helper, above DuckDB in process", helper - direct, "ms", 5.0, told)
        file = folder / "large.csv"
        with duckdb.connect() as base:
            base.execute(f"COPY (SELECT {COLUMNS} FROM range({ROWS}) t(i)) TO '{file}'")
        own, own_cpu = _summarize(file)
        taken, cpu, memory, cancel = asyncio.run(_large(folder, file))
        size = f"{file.stat().st_size / 1e9:.1f} GB"
        yield Figure(f"profile of a CSV of {size}, CPU, against SUMMARIZE", cpu / own_cpu, "×", 1.5, f"{own_cpu:.0f} s")
        yield Figure("the same, wall", taken / own, "×", float("inf"))
        yield Figure("its memory in all processes", memory, "MB", 500.0)
        yield Figure("its cancel, until the next query has run", cancel, "s", 0.3)
