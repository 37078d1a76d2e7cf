"""What a key costs in the grid until everything in sight is painted: at a thousand rows, at ten million, sorted, from a
Parquet file, and in textual-fastdatatable with the same file. The screen has 200 × 50 cells."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
from textual.app import App
from textual.pilot import Pilot

from ba_tui.core.ports.tables import Arrangement, RowOrder
from ba_tui.faces.tui.grid.pane import GridPane, GridScreen
from ba_tui.features.data.analysis.engine import Analysis
from tests.analysis.engines import engine_in
from tests.bench.figures import Effort, Figure, median, p95

MOVES = "down pagedown right down pagedown end home pageup down G g pagedown shift+down left"
KEYS = MOVES.split(" ")
SIZES = (1_000, 10_000_000)
COLUMNS = "i AS id, 'region ' || (i % 7) AS region, i * 1.5 AS amount, md5(i::VARCHAR) AS note, i % 97 AS units"
PEER = "textual-fastdatatable==0.19.*"
CHECKOUT = Path(__file__).resolve().parents[2]


class Shown(App[None]):
    """Notes when it painted; ``whole`` says whether nothing in sight was missing."""

    painted = 0.0
    whole: Callable[[], bool] = staticmethod(lambda: True)

    def _display(self, screen: object, renderable: object) -> None:
        super()._display(screen, renderable)  # pyright: ignore[reportArgumentType]
        if self.whole():
            self.painted = time.perf_counter()


async def pressed(app: Shown, pilot: Pilot[None], keys: Sequence[str], rested: Callable[[], bool]) -> list[float]:
    """Milliseconds from each key to the paint that shows all of what it did."""
    spent: list[float] = []
    for key in keys:
        await pilot.pause()
        app.painted, start = 0.0, time.perf_counter()
        app.simulate_key(key)
        while not app.painted:  # noqa: ASYNC110 - what is measured
            await asyncio.sleep(0.0005)
        spent.append((app.painted - start) * 1000)
        while not rested():  # noqa: ASYNC110 - what is measured
            await asyncio.sleep(0.001)
    return spent


async def _ours(engine: Analysis, table: str, keys: Sequence[str], wanted: Arrangement) -> list[float]:
    app = Shown()
    async with app.run_test(size=(200, 50)) as pilot:
        screen = GridScreen(engine, table)  # pyright: ignore[reportArgumentType]
        await app.push_screen(screen)
        view = screen.query_one(GridPane).view

        def rested() -> bool:
            return view.feed.ready and not view.busy and not view._reading

        while not rested():  # noqa: ASYNC110 - what is measured
            await asyncio.sleep(0.01)
        if wanted != Arrangement():
            view.show(wanted)
            while not rested() or view.feed.arrangement != wanted:  # noqa: ASYNC110 - what is measured
                await asyncio.sleep(0.01)
        app.whole = lambda: all(view.feed.row(at) for at in range(*view._seen()) if at < view.feed.total)
        return await pressed(app, pilot, keys, rested)


async def _measured(folder: Path, rounds: int) -> dict[str, list[float]]:
    engine = engine_in(folder, rows=20_000_000, memory=2 * 10**9, disk=8 * 10**9, seconds=120.0)
    found: dict[str, list[float]] = {}
    for number, rows in enumerate(SIZES, 1):
        await engine.query(f"SELECT {COLUMNS} FROM range({rows}) AS t(i)")
        found[f"{rows:,} rows"] = await _ours(engine, f"R{number}", KEYS * rounds, Arrangement())
    found["10,000,000 sorted rows"] = await _ours(engine, "R2", KEYS * rounds, Arrangement((RowOrder("note"),)))
    (file,) = await engine.register("peer.parquet")
    found["a Parquet file of 10,000,000 rows"] = await _ours(engine, file.name, KEYS * rounds, Arrangement())
    await engine.close()
    return found


def _peer(file: Path, rounds: int) -> list[float]:
    """The same of textual-fastdatatable; nothing where it can't be installed."""
    target = file.parent / "peer"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    for packages in (("--no-deps", PEER), ("pyarrow", "pytz", "tzdata")):
        if subprocess.run([*install, *packages], capture_output=True, check=False).returncode:
            return []
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(target), str(CHECKOUT)))}
    command = [sys.executable, "-m", "tests.bench.floors.fast_table", str(file), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=CHECKOUT)
    return [float(each) for each in json.loads(done.stdout.splitlines()[-1])]


def grid(effort: Effort) -> Iterator[Figure]:
    """Key to paint."""
    rounds = max(1, effort.keys // len(KEYS))
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "peer.parquet"
        with duckdb.connect() as base:
            base.execute(f"COPY (SELECT {COLUMNS} FROM range({SIZES[-1]}) AS t(i)) TO '{file}'")
        found = asyncio.run(_measured(Path(name), rounds))
        peer = _peer(file, rounds)
    told = f"textual-fastdatatable {median(peer):.0f} median, {p95(peer):.0f} p95" if peer else ""
    for what, spent in found.items():
        yield Figure(f"grid of {what}: key to paint, median", median(spent), "ms", float("inf"))
        yield Figure(f"grid of {what}: key to paint, p95", p95(spent), "ms", 30.0, told)
