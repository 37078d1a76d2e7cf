"""What a chart costs: CPU for drawing 10,000 points on a screen of 200 × 50, and computing one of ten million rows."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.results import Chart, ChartKind, ChartRequest, ChartSeries
from ba_tui.plotting.canvas import DrawingArea
from ba_tui.plotting.drawing import drawn
from tests.analysis.engines import engine_in
from tests.bench.figures import Effort, Figure, median

POINTS = 10_000
ROWS = 10_000_000
FRAME = 16.0
"""Milliseconds of one frame: what may run on the loop of the screen."""


def _drawing(kind: ChartKind, times: int) -> float:
    chance = random.Random(7)
    places = tuple(float(each) for each in range(POINTS))
    values = tuple(chance.gauss(0, 100) for _ in places)
    if kind == "scatter":
        places = tuple(chance.gauss(0, 1) for _ in places)
    chart = Chart(ChartRequest("R1", kind), "number", "x", "y", (ChartSeries("y", places, values),))
    spent: list[float] = []
    for _ in range(times):
        start = time.thread_time()
        drawn(chart, DrawingArea(200, 50))
        spent.append((time.thread_time() - start) * 1000)
    return median(spent)


async def _computing() -> tuple[float, float]:
    """Milliseconds of an aggregated chart, and of the same query in the engine."""
    with tempfile.TemporaryDirectory() as folder:
        engine = engine_in(Path(folder), rows=20_000_000, memory=2 * 10**9, disk=8 * 10**9, seconds=120.0)
        columns = "DATE '2020-01-01' + (i % 2000)::INTEGER AS day, 'r' || (i % 7) AS region, i * 1.5 AS amount"
        data = (await engine.query(f"SELECT {columns} FROM range({ROWS}) AS t(i)")).handle
        request = ChartRequest(data, "line", "day", ("amount",), "region")
        start = time.perf_counter()
        await engine.chart(request)
        chart = time.perf_counter() - start
        start = time.perf_counter()
        await engine.query(f"SELECT date_trunc('week', day) AS w, region, sum(amount) FROM {data} GROUP BY ALL")
        query = time.perf_counter() - start
        await engine.close()
    return chart * 1000, query * 1000


def charts(effort: Effort) -> Iterator[Figure]:
    """Drawing and computing."""
    for kind in ("scatter", "line"):
        yield Figure(f"chart: draw {kind} of {POINTS:,} points, CPU", _drawing(kind, effort.starts), "ms", FRAME)
    chart, query = asyncio.run(_computing())
    yield Figure(f"chart of {ROWS:,} rows: computed", chart, "ms", float("inf"))
    yield Figure(f"chart of {ROWS:,} rows: the same as one query", query, "ms", float("inf"))
