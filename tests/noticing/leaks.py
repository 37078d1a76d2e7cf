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
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.logging import caplog_records_key

GRACE = 2.0
"""Seconds for threads and processes that are about to end."""
TURNS = 0.5
"""Seconds for tasks that are about to end."""
PAUSE = 0.005
LAST_STREAM = 2
"""The number of the last standard stream. They stay open; pytest itself leads them elsewhere to capture output."""
LONGEST = 65_536
"""Bytes that are read of what the kernel says about a descriptor."""

KEPT: dict[str, str] = {
    "/dev/urandom": "opened once by OpenSSL and by libraries that ask for random bytes",
    "/logs/ba.log": "the log of the process, which the next start of a log replaces",
    "/logs/ba.log (deleted)": "the same, when the test's own folder is gone",
}
"""Ends of what an open descriptor may refer to after a test, each with the reason."""
KEPT_TIMERS: dict[str, str] = {
    "_Group._lapse(": "a bus in memory needs no end; its one timer ends with the lease of a message",
}
"""Parts of the texts of timers that may stay, each with the reason."""
BY_FILE = pytest.StashKey[dict[Path, list[pytest.Item]]]()
SHARED = ("new_folder", "outside_data")
"""Fixtures of the whole session that open nothing."""


def files() -> dict[str, str]:
    """Return each open descriptor with its target, and each file lock with its kind. Only files have locks.

    ``/proc/locks`` has the same locks, but the kernel stops all locking of the machine before it shows them, for which
    a reader often waits ten milliseconds."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - called thousands of times
        # The descriptor that reads the folder is closed by now.
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 - as above
            if int(number) > LAST_STREAM and not target.endswith(tuple(KEPT)):
                found[f"descriptor {number}"] = target
            if target.startswith("/"):
                about = os.open(f"/proc/self/fdinfo/{number}", os.O_RDONLY)
                found |= locks(os.read(about, LONGEST))
                os.close(about)
    return found


def locks(about: bytes) -> dict[str, str]:
    """Return the locks in what the kernel says about a descriptor, by the device and inode of the file."""
    if b"lock:" not in about:
        return {}
    lines = [line.split() for line in about.decode("ascii").splitlines() if line.startswith("lock:")]
    return {f"{line[2]} lock of {line[6]}": line[4] for line in lines}


def threads() -> dict[str, str]:
    """Return the running threads."""
    return {f"thread {thread.ident}": thread.name for thread in threading.enumerate()}


def children() -> dict[str, str]:
    """Return the child processes, ended ones that nobody has waited for included, each with its command."""
    try:
        # One system call tells that there are none.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return {}
    found: dict[str, str] = {}
    own = str(os.getpid())
    for process in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - called thousands of times
        with suppress(OSError):
            name, _, rest = Path("/proc", process, "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            if parent == own:
                command = Path("/proc", process, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                # Whether it sleeps or works at the moment does not matter.
                ended = " (ended, and nobody waited for it)" if state == "Z" else ""
                found[f"process {process}"] = (command[:200] or name.partition("(")[2]) + ended
    return found


SOURCES: tuple[Callable[[], dict[str, str]], ...] = (files, threads, children)


def everything() -> dict[str, str]:
    """Return all that is open or runs."""
    return {name: what for source in SOURCES for name, what in source().items()}


def new(before: dict[str, str]) -> dict[str, str]:
    """Return what is there now and was not before."""
    return {name: what for name, what in everything().items() if before.get(name) != what}


def check(node: pytest.Item | pytest.Module, before: dict[str, str]) -> None:
    """Fail when something is new and stays."""
    found = new(before)
    if found:
        # Captured log records keep errors, whose tracebacks keep the frames that opened something.
        for records in node.stash.get(caplog_records_key, {}).values():
            records.clear()
        # So do the values of the fixtures, all of which are torn down.
        getattr(node, "funcargs", {}).clear()
        gc.collect()
        # The next collection need not visit what outlived this one: among the modules and tests it would take a second.
        # A journal of a long history ends what was set aside before when it is closed.
        gc.freeze()
    deadline = time.monotonic() + GRACE
    while (found := found and new(before)) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    if found:
        # What was set aside while it was in use may be garbage by now.
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        found = new(before)
    if found:
        pytest.fail("left behind: " + ", ".join(f"{name}: {what}" for name, what in found.items()), pytrace=False)


def wide(item: pytest.Item, *scopes: str) -> list[str]:
    """Return the names of the fixtures with one of ``scopes`` that ``item`` uses, those that it asked for included."""
    if not isinstance(item, pytest.Function):
        return []
    known = {name: made[-1] for name, made in item._fixtureinfo.name2fixturedefs.items()}
    known |= getattr(item._request, "_fixture_defs", {})
    return [
        name
        for name, made in known.items()
        if made.scope in scopes and made.baseid.startswith("tests") and name not in SHARED
    ]


def tests_by_file(session: pytest.Session) -> dict[Path, list[pytest.Item]]:
    """Return the tests of the session by file, which are grouped once: there are thousands, and hundreds of files."""
    if BY_FILE not in session.stash:
        found = session.stash[BY_FILE] = defaultdict(list)
        for item in session.items:
            found[item.path].append(item)
    return session.stash[BY_FILE]


def pending(loop: asyncio.AbstractEventLoop) -> set[Any]:
    """Return the tasks of ``loop`` that have not ended and its timers that have not run."""
    timers: list[TimerHandle] = getattr(loop, "_scheduled", [])
    left = (timer for timer in timers if not timer.cancelled() and not any(kept in repr(timer) for kept in KEPT_TIMERS))
    return {*asyncio.all_tasks(loop), *left}


@pytest.fixture(scope="module", autouse=True)
def nothing_outlives_its_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the last test of the module when what its tests share stays open."""
    for item in tests_by_file(request.session)[request.path]:
        for name in wide(item, "session", "package"):
            request.getfixturevalue(name)
    before = everything()
    yield
    check(request.node, before)


@pytest.fixture(autouse=True)
def nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test when a descriptor, a lock, a thread or a child process stays."""
    scope = getattr(request.node, "_loop_scope", "function")
    if scope != "function" or wide(request.node, "class", "module"):
        # What several tests share may open something for all of them.
        yield
        return
    before = everything()
    yield
    if not wide(request.node, "class", "module"):
        check(request.node, before)


@pytest.fixture(autouse=True)
def nothing_stays_scheduled(request: pytest.FixtureRequest, nothing_stays_open: None) -> Iterator[None]:
    """Fail the asynchronous test when a task or a timer stays in its loop."""
    scope = getattr(request.node, "_loop_scope", None)
    if scope != "function":
        yield
        return
    loop: asyncio.AbstractEventLoop = request.getfixturevalue("_function_scoped_runner").get_loop()
    before = pending(loop)
    yield
    found = pending(loop) - before
    deadline = time.monotonic() + TURNS
    while found and time.monotonic() < deadline:
        loop.run_until_complete(asyncio.sleep(PAUSE))
        found = found & pending(loop)
    if found:
        pytest.fail("left in the loop: " + ", ".join(repr(each)[:500] for each in found), pytrace=False)
