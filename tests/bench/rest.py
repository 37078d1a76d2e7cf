"""At rest: what ba costs while nobody does anything, and what it holds before anybody did."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import Effort, Figure
from tests.bench.place import box, place
from tests.bench.terminal import Terminal

SETTLED = 7.0
"""Seconds until start-up work is over and the cursor has stopped blinking."""
HELLO = [sys.executable, str(Path(__file__).parent / "floors" / "hello.py")]


def idle(effort: Effort) -> Iterator[Figure]:
    with place() as spot:
        with Terminal(HELLO, spot.folder, spot.env) as terminal:
            terminal.until(lambda text: "hello" in text)
            terminal.watch(1.0)
            floor = terminal.memory()
        with spot.app() as terminal:
            terminal.until(box)
            terminal.watch(2.0)
            memory = terminal.memory()
            terminal.watch(SETTLED)
            begin, cpu = time.monotonic(), terminal.cpu()
            terminal.watch(effort.watch)
            used = (terminal.cpu() - cpu) / (time.monotonic() - begin)
    yield Figure("idle, CPU", used * 100, "%", 0.5)
    yield Figure("memory before the first key", memory, "MB", 60.0, f"hello-world {floor:.0f}")
