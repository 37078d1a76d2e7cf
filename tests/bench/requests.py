"""How long until the model is asked: print mode over HTTP and HTTPS, with a session to go on with, and in the app.

The figures of others are from one run beside ba on a quiet machine: Claude Code 2.1.330, Codex 0.169.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

from tests.bench.figures import Effort, Figure, median
from tests.bench.long import write_session
from tests.bench.place import Place, box, place, said

PRINTS = "Claude Code 0.39, Codex 0.17"
TYPED = "Claude Code 0.80, Codex 0.68"
HELD = "at rest: Claude Code 215, Codex 362"


def printed(spot: Place, *flags: str) -> tuple[float, float]:
    """Seconds from the start of print mode until its request is there, and the size of that in kilobytes."""
    assert spot.server
    after, begin = len(spot.server.lines), time.monotonic()
    command = spot.command(*flags, "-p", "hello")
    subprocess.run(command, cwd=spot.folder, env=spot.env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    request = spot.server.line("request", after)
    return request["at"] - begin, request["size"] / 1000


def typed(spot: Place) -> float:
    """Seconds from the start of the app until a prompt is there that was typed before anything showed."""
    assert spot.server
    after = len(spot.server.lines)
    with spot.app() as terminal:
        terminal.type("hello\r")
        return spot.server.line("request", after)["at"] - terminal.started


def held(spot: Place) -> float:
    """Megabytes of the app after three turns with a call each."""
    assert spot.server
    with spot.ready() as terminal:
        for _ in range(3):
            after = len(spot.server.lines)
            said(terminal, "bench:steps:1")
            spot.server.line("answered", after, 2)
            terminal.drain(0.5)
        return terminal.memory()


def requests(effort: Effort) -> Iterator[Figure]:
    with place() as plain, place(tls=True) as secure, place() as old:
        write_session(old, 100)
        # In turns, so that what else the machine does is in all of them; the first fills caches.
        runs = range(effort.starts + 1)
        looks = [(printed(plain), printed(secure)[0], printed(old, "-c")[0], typed(plain)) for _ in runs][1:]
        memory = held(plain)
    first, https, again, app = zip(*looks, strict=True)
    yield Figure("print mode, start to first request", median([taken for taken, _ in first]), "s", 0.35, PRINTS)
    yield Figure("the same over HTTPS", median(https), "s", 0.35)
    yield Figure("`-c -p` in a session of 100 messages, the same", median(again), "s", 0.40)
    yield Figure("typed at once into the app, start to first request", median(app), "s", 0.70, TYPED)
    yield Figure("memory in a conversation", memory, "MB", 80.0, HELD)
    yield Figure("first request with all tools", median([size for _, size in first]), "KB", 12.0)


def flags(effort: Effort) -> Iterator[Figure]:
    """What flags cost the first screen."""
    with place() as spot:
        bare, flagged = list[float](), list[float]()
        for _ in range(effort.starts + 1):
            for taken, given in ((bare, ()), (flagged, ("--trust", "--permission-mode", "plan"))):
                with spot.app(*given) as terminal:
                    taken.append(terminal.until(box) - terminal.started)
    floor = median(bare[1:])
    what = "first screen with `--trust` and a mode, beyond the one without"
    yield Figure(what, (median(flagged[1:]) - floor) * 1e3, "ms", 30.0, f"without: {floor:.2f} s")
