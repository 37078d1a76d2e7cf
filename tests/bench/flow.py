"""Long answers: what 200 KB at once cost, and how calm the app stays while one trickles in and keys are pressed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice

from tests.bench.figures import Effort, Figure, median
from tests.bench.place import KEYS, Place, box, patiently, place, said
from tests.bench.prose import CLOSING
from tests.bench.terminal import Silent, Terminal

AGENTS = 20
ORDER = "bench:stream:200000"


def bare(spot: Place) -> float:
    assert spot.server
    command = [sys.executable, "-m", "tests.bench.floors.bare", "stream", spot.server.url, ORDER]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["cpu"]


def long_answer(effort: Effort) -> Iterator[Figure]:
    with place() as spot, spot.ready() as terminal:
        assert spot.server
        before = terminal.memory()
        terminal.type("ж\x7f")
        terminal.watch(4.0)  # what a request needs is loaded on the first key
        warm = terminal.memory()
        after = len(spot.server.lines)
        said(terminal, ORDER)
        first = spot.server.line("first", after)["at"]
        begin = terminal.cpu()
        wall = terminal.painted(CLOSING, longest=120) - first
        terminal.drain(0.5)
        cost = terminal.cpu() - begin
        grown = terminal.memory()
        floor = bare(spot)
        reached = scrolls(terminal)
    yield Figure("200 KB answer in 12,500 events, CPU", cost - floor, "s", 2.0, f"above a bare client's {floor:.2f}")
    yield Figure("200 KB answer, wall", wall, "s", float("inf"))
    yield Figure("its first line is reached by scrolling up", float(not reached), "", 0.0, "0 is yes")
    yield Figure("memory once the input echoes", before, "MB", float("inf"))
    yield Figure("memory once a request can be made", warm, "MB", 80.0)
    yield Figure("memory after 200 KB", grown, "MB", 155.0)


def scrolls(terminal: Terminal) -> bool:
    """Is the first line of the answer on the screen after a click into the conversation and Home?"""
    terminal.type("\x1b[<0;20;10M\x1b[<0;20;10m\x1b[H")
    try:
        terminal.until(lambda screen: "Step 1:" in screen, longest=5)
    except Silent:
        return False
    return True


def trickle(effort: Effort) -> Iterator[Figure]:
    with place() as spot:
        assert spot.server
        with spot.app() as terminal:
            terminal.until(box)
            early = patiently(terminal, list(islice(cycle(KEYS), 12)), 0.1)
        with spot.ready() as terminal:
            after = len(spot.server.lines)
            said(terminal, "bench:paced:2000")
            spot.server.line("first", after)
            terminal.watch(1.0)
            begin, cpu = time.monotonic(), terminal.cpu()
            keys = patiently(terminal, list(islice(cycle(KEYS), effort.keys)), 0.3)
            used = (terminal.cpu() - cpu) / (time.monotonic() - begin)
    yield Figure("answer at 2 KB/s, CPU while keys are pressed", used * 100, "%", 15.0)
    yield Figure("a key meanwhile, median", median(keys) * 1e3, "ms", 10.0)
    yield Figure("a key meanwhile, worst", max(keys) * 1e3, "ms", 40.0)
    yield Figure("a key while that is loaded, worst", max(early) * 1e3, "ms", 80.0)


def agents(effort: Effort) -> Iterator[Figure]:
    """Twenty sub-agents and the main agent stream at once; the chat shows a row for each."""
    with place() as spot:
        assert spot.server
        (spot.home / "config.yaml").write_text(f"agents: {{at_once: {AGENTS}}}\n", "utf-8")
        with spot.ready() as terminal:
            after = len(spot.server.lines)
            said(terminal, f"bench:agents:{AGENTS}")
            spot.server.line("first", after, AGENTS)
            terminal.watch(2.0)
            begin, cpu = time.monotonic(), terminal.cpu()
            keys = patiently(terminal, list(islice(cycle(KEYS), effort.keys)), 0.3)
            used = (terminal.cpu() - cpu) / (time.monotonic() - begin)
    slow = sorted(keys)[max(0, round(0.95 * len(keys)) - 1)]
    yield Figure(f"{AGENTS} sub-agents at 2 KB/s each, CPU", used * 100, "%", 80.0)
    yield Figure("a key meanwhile, median", median(keys) * 1e3, "ms", 15.0)
    yield Figure("a key meanwhile, 95th percentile", slow * 1e3, "ms", 30.0)
