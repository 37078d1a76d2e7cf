"""How long until ba is there: its version, its help, its first screen, its first key."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.figures import Effort, Figure, median
from tests.bench.place import BA, Place, box, place
from tests.bench.terminal import Terminal

HELLO = [sys.executable, str(Path(__file__).parent / "floors" / "hello.py")]


def timed(command: Sequence[str | Path], spot: Place) -> float:
    start = time.monotonic()
    subprocess.run(command, cwd=spot.folder, env=spot.env, check=True, capture_output=True)
    return time.monotonic() - start


def words(effort: Effort) -> Iterator[Figure]:
    with place(model=False) as spot:
        for flag, limit in (("--version", 0.03), ("--help", 0.25)):
            taken = median([timed([BA, flag], spot) for _ in range(effort.starts + 1)][1:])
            yield Figure(f"`ba {flag}`", taken, "s", limit)
        bare = median([timed([sys.executable, "-c", "pass"], spot) for _ in range(effort.starts)])
        yield Figure("`python -c pass`, a floor for these", bare, "s", float("inf"))


def screen(effort: Effort) -> Iterator[Figure]:
    hello: list[float] = []
    boxes: list[float] = []
    usable: list[float] = []
    with place() as spot:
        for _ in range(effort.starts + 1):
            with Terminal(HELLO, spot.folder, spot.env) as terminal:
                hello.append(terminal.until(lambda text: "hello" in text) - terminal.started)
            with spot.app() as terminal:
                boxes.append(terminal.until(box) - terminal.started)
                terminal.echo("ж")
                usable.append(time.monotonic() - terminal.started)
    floor = median(hello[1:])
    yield Figure("first screen with the input", median(boxes[1:]), "s", 1.5 * floor, f"1.5 × hello-world's {floor:.2f}")
    yield Figure("first key painted", median(usable[1:]), "s", 2.5 * floor, f"2.5 × hello-world's {floor:.2f}")
