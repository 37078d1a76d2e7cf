"""Fails a test that leaves something behind: descriptors, file locks, threads, child processes, tasks or timers.

``tests/conftest.py`` registers this module as a plugin, so its fixtures are set up before and torn down after all
others. A test without a leak costs two reads of ``/proc``. Only when something new is found are garbage, threads and
processes waited for, at most ``GRACE`` seconds: what ends in that time is no leak.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from asyncio import TimerHandle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

GRACE = 2.0
"""Seconds for threads and processes that are about to end."""
TURNS = 0.5
"""Seconds for tasks that are about to end."""
PAUSE = 0.005

KEPT_THREADS: dict[str, str] = {}
"""Beginnings of names of threads that serve the whole process, each with the reason."""
KEPT_FILES: dict[str, str] = {
    "/dev/urandom": "opened once by OpenSSL and by libraries that ask for random bytes",
}
"""Beginnings of what a descriptor of the whole process refers to, each with the reason."""
EXEMPT: dict[str, str] = {}
"""Folders below ``tests`` that are not checked yet, each with the reason."""


def descriptors() -> dict[str, str]:
    """Return each open descriptor with its target, without the one that reads the folder."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found[f"descriptor {number}"] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 - called thousands of times
    return {name: target for name, target in found.items() if not target.startswith(tuple(KEPT_FILES))}


def locks() -> dict[str, str]:
    """Return the file locks of this process, each with the device and inode of its file."""
    own = str(os.getpid())
    lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    return {f"{line[1]} lock": line[5] for line in lines if line[4] == own}


def threads() -> dict[str, str]:
    """Return the running threads."""
    kept = tuple(KEPT_THREADS)
    return {
        f"thread {thread.ident}": thread.name
        for thread in threading.enumerate()
        if not (kept and thread.name.startswith(kept))
    }


def children() -> dict[str, str]:
    """Return the child processes, ended ones that nobody has waited for included, each with its command."""
    try:
        # One system call tells that there are none.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return {}
    found: dict[str, str] = {}
    own = str(os.getpid())
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            name, _, rest = Path("/proc", process, "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            if parent == own:
                command = Path("/proc", process, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[f"process {process} ({state})"] = command[:200] or name.partition("(")[2]
    return found


SOURCES: tuple[Callable[[], dict[str, str]], ...] = (descriptors, locks, threads, children)


def new(before: dict[str, str]) -> dict[str, str]:
    """Return what is there now and was not before."""
    now = {name: what for source in SOURCES for name, what in source().items()}
    return {name: what for name, what in now.items() if before.get(name) != what}


def leaked(before: dict[str, str]) -> dict[str, str]:
    """Return what is new and stays."""
    found = new(before)
    if found:
        gc.collect()
    deadline = time.monotonic() + GRACE
    while (found := found and new(before)) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return found


def pending(loop: asyncio.AbstractEventLoop) -> dict[Any, str]:
    """Return the tasks of ``loop`` that have not ended and its timers that have not run."""
    timers: list[TimerHandle] = getattr(loop, "_scheduled", [])
    found: dict[Any, str] = {task: repr(task) for task in asyncio.all_tasks(loop)}
    return found | {timer: repr(timer) for timer in timers if not timer.cancelled()}


def exempt(node: pytest.Item) -> bool:
    place = node.nodeid.partition("::")[0]
    return any(f"tests/{folder}/" in place for folder in EXEMPT)


@pytest.fixture(autouse=True)
def nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test when a descriptor, a lock, a thread or a child process stays."""
    scope = getattr(request.node, "_loop_scope", "function")
    if scope != "function":
        # The loop of several tests is there before the first of them.
        request.getfixturevalue(f"_{scope}_scoped_runner")
    before = {name: what for source in SOURCES for name, what in source().items()}
    yield
    if not exempt(request.node) and (found := leaked(before)):
        pytest.fail("left behind: " + ", ".join(f"{name}: {what}" for name, what in found.items()), pytrace=False)


@pytest.fixture(autouse=True)
def nothing_stays_scheduled(request: pytest.FixtureRequest, nothing_stays_open: None) -> Iterator[None]:
    """Fail the asynchronous test when a task or a timer stays in its loop."""
    scope = getattr(request.node, "_loop_scope", None)
    if scope is None:
        yield
        return
    loop: asyncio.AbstractEventLoop = request.getfixturevalue(f"_{scope}_scoped_runner").get_loop()
    before = pending(loop)
    yield
    found = pending(loop).keys() - before.keys()
    deadline = time.monotonic() + TURNS
    while found and time.monotonic() < deadline:
        loop.run_until_complete(asyncio.sleep(PAUSE))
        found = found & pending(loop).keys()
    if found and not exempt(request.node):
        pytest.fail("left in the loop: " + ", ".join(repr(each)[:500] for each in found), pytrace=False)
