"""What a key costs in the grid: at a thousand rows and at ten million, on a screen of 200 × 50."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from textual.app import App

from ba_tui.faces.tui.grid.pane import GridPane
from ba_tui.faces.tui.grid.screen import GridScreen
from tests.analysis.engines import engine_in
from tests.bench.figures import Effort, Figure, median, p95

MOVES = "down pagedown right down pagedown end home pageup down G g pagedown shift+down left"
KEYS = MOVES.split(" ")
SIZES = (1_000, 10_000_000)
COLUMNS = "i AS id, 'region ' || (i % 7) AS region, i * 1.5 AS amount, md5(i::VARCHAR) AS note, i % 97 AS units"


class Shown(App[None]):
    """Notes when it painted."""

    painted = 0.0

    def _display(self, screen: object, renderable: object) -> None:
        super()._display(screen, renderable)  # pyright: ignore[reportArgumentType]
        self.painted = time.perf_counter()


async def _keys(rows: int, rounds: int) -> list[float]:
    """Milliseconds from each key to the paint that shows it."""
    with tempfile.TemporaryDirectory() as folder:
        engine = engine_in(Path(folder), rows=20_000_000, memory=2 * 10**9, disk=8 * 10**9, seconds=120.0)
        result = await engine.query(f"SELECT {COLUMNS} FROM range({rows}) AS t(i)")
        app, spent = Shown(), list[float]()
        async with app.run_test(size=(200, 50)) as pilot:
            screen = GridScreen(engine, result.handle)  # pyright: ignore[reportArgumentType]
            await app.push_screen(screen)
            view = screen.query_one(GridPane).view
            while not view.feed.ready or view._reading:  # noqa: ASYNC110 - what is measured comes after it
                await asyncio.sleep(0.01)
            await pilot.pause()
            for key in KEYS * rounds:
                app.painted, start = 0.0, time.perf_counter()
                app.simulate_key(key)
                while not app.painted:  # noqa: ASYNC110 - the paint is what is waited for
                    await asyncio.sleep(0)
                spent.append((app.painted - start) * 1000)
                while view._reading:  # noqa: ASYNC110 - the next key finds a grid at rest
                    await asyncio.sleep(0.001)
        await engine.close()
    return spent


def grid(effort: Effort) -> Iterator[Figure]:
    """Key to paint."""
    for rows in SIZES:
        spent = asyncio.run(_keys(rows, max(1, effort.keys // len(KEYS))))
        yield Figure(f"grid of {rows:,} rows: key to paint, median", median(spent), "ms", float("inf"))
        yield Figure(f"grid of {rows:,} rows: key to paint, p95", p95(spent), "ms", 30.0)
