"""What a step costs: from the end of an answer that calls a tool to the next request, over 50 and 1 000 steps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from tests.bench.figures import Effort, Figure, median
from tests.bench.place import Place, place, said

TURN = 500
"""Steps of one turn; the most that --max-loops allows."""


def ours(spot: Place, total: int) -> list[float]:
    """Gaps of ``total`` steps in the app, in as many turns of one session as they need."""
    assert spot.server
    gaps: list[float] = []
    with spot.ready("--max-loops", str(TURN)) as terminal:
        while len(gaps) < total:
            after = len(spot.server.lines)
            count = min(TURN - 1, total - len(gaps))
            said(terminal, f"bench:steps:{count}")
            spot.server.line("answered", after, count + 1, longest=120)
            gaps += spot.server.gaps(after)
            terminal.until(lambda screen: "All steps are done." in screen)
            terminal.drain()
    return gaps


def bare(spot: Place, count: int) -> list[float]:
    """Gaps of the SDK alone that sends the same bytes."""
    assert spot.server
    after = len(spot.server.lines)
    command = [sys.executable, "-m", "tests.bench.floors.bare", "steps", spot.server.url, spot.server.body, str(count)]
    subprocess.run(command, check=True)
    return spot.server.gaps(after)


def few(effort: Effort) -> Iterator[Figure]:
    with place() as spot:
        gaps = ours(spot, 50)
        floor = median(bare(spot, 50))
    yield Figure("gap between steps, 50 steps", median(gaps), "ms", 3.0)
    yield Figure("the same above a bare SDK loop", median(gaps) - floor, "ms", 1.0, f"bare loop {floor:.2f} ms")


def many(effort: Effort) -> Iterator[Figure]:
    with place() as spot:
        gaps = ours(spot, effort.steps)
        count = min(TURN - 1, effort.steps)
        last = gaps[-10:]
        floor = median(bare(spot, count)[-10:])
    first = median(gaps[:10])
    name = f"gap, the last 10 of {effort.steps:,} steps"
    yield Figure(name, median(last), "ms", 3.0)
    yield Figure(f"{name}, against the first 10", median(last) / first, "×", 1.5, f"the first 10: {first:.2f} ms")
    yield Figure(f"{name}, above a bare SDK loop", median(last) - floor, "ms", 1.0, f"bare loop {floor:.2f} ms")
