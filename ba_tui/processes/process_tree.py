"""List, signal and reap the processes below this one, from /proc.

Loaded by the supervisor, which starts with the standard library only: imports only what the supervisor has loaded.
"""

import errno
import os
import select
import signal
import sys
import time

LADDER = ((0.0, signal.SIGINT), (0.6, signal.SIGTERM), (2.0, signal.SIGKILL))
GOES_ON_SECONDS = 0.15
"""A process that starts others this long after the INT is not about to end: it gets the TERM then."""
STATE, PARENT, GROUP, THREADS, BEGUN = 0, 1, 2, 17, 19
"""Indexes in ``/proc/N/stat`` after the name."""
GIVE_UP_SECONDS = 2.0
LOOK_SECONDS = 1.0
LINUX = sys.platform == "linux"


def say(status: int, line: str) -> None:
    try:  # noqa: SIM105 - contextlib costs start-up time
        os.write(status, line.replace("\n", "?").encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        pass


def threads() -> int:
    """Return the number of threads of the user; 0 if it cannot be counted."""
    mine, found = os.getuid(), 0
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return 0
    for name in names:
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == mine:  # noqa: PTH116 - as above
                    found += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208 - as above
            except OSError:
                continue
    return found


def below() -> "list[tuple[int, list[bytes]]]":
    """Return all processes below this one, including ended ones, with the fields of their ``stat``. Empty without
    /proc. One scan may miss processes that fork and end meanwhile; ``collect`` knows whether any are left."""
    children: dict[int, list[tuple[int, list[bytes]]]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return []
    # Newest first: processes that a shell starts in a loop may end within a millisecond.
    for name in reversed(names):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
            children.setdefault(int(fields[PARENT]), []).append((int(name), fields))
    found: list[tuple[int, list[bytes]]] = []
    todo = [os.getpid()]
    while todo:
        their = children.get(todo.pop(), [])
        found += their
        todo += [pid for pid, _ in their]
    return found


def descendants() -> "tuple[list[int], set[int]]":
    """Return the running processes below this one, and the process groups of all, including ended ones. Without /proc
    only the program's own group can be reached."""
    every = below()
    groups = {int(fields[GROUP]) for _, fields in every}
    # The first thread of a running process may have ended.
    found = [pid for pid, fields in every if fields[STATE] not in (b"Z", b"X") or int(fields[THREADS]) > 1]
    return found, groups - {os.getpgrp()}


def starters(since: float) -> "set[int]":
    """Return the processes below this one that started another one after ``since``, in seconds since boot."""
    ticks = since * os.sysconf("SC_CLK_TCK")
    return {int(fields[PARENT]) for _, fields in below() if int(fields[BEGUN]) > ticks} - {os.getpid()}


def running(program: int, status: int) -> "list[int]":
    """Return the running processes below this one. Scans again if none is seen although some must exist."""
    until = time.monotonic() + LOOK_SECONDS
    while True:
        found = descendants()[0]
        if found or not collect(program, status) or time.monotonic() > until:
            return found


def kill_all() -> None:
    """Stop all processes first, so that none can fork, then kill them; by group, to reach those that no scan has
    seen."""
    known: set[int] = set()
    below, groups = descendants()
    while not known.issuperset(below):
        for pid in (*(-group for group in groups), *below):
            deliver(pid, signal.SIGSTOP)
        known.update(below)
        below, groups = descendants()
    for pid in (*(-group for group in groups), *below):
        deliver(pid, signal.SIGKILL)


def deliver(pid: int, number: int) -> None:
    try:  # noqa: SIM105 - contextlib costs start-up time
        os.kill(pid, number)
    except OSError:
        pass


def reap(program: int) -> "tuple[int | None, bool]":
    """Reap ended processes; return the program's exit code if it was one of them, and whether children still run. The
    latter is certain where orphans become our children: while one process is left, we have a child."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError as error:
            if error.errno == errno.EINTR:
                continue
            return code, False
        if pid == 0:
            return code, True
        if pid == program:
            code = os.waitstatus_to_exitcode(status)


def end_all(program: int, status: int, wake: int) -> None:
    """Send INT, TERM and KILL to the processes that the previous signal left running. A shell may miss the INT: it
    continues with the next command of a loop if the last one ended on its own."""
    begun = time.monotonic()
    goes_on = time.clock_gettime(time.CLOCK_BOOTTIME) + GOES_ON_SECONDS if LINUX else 0.0
    steps = list(LADDER)
    # Counted from the first KILL, so that a busy machine does not give up earlier.
    until = float("inf")
    while time.monotonic() < until:
        if not collect(program, status) and (LINUX or not reached(program, 0)):
            return
        if not steps:
            send(signal.SIGKILL, program, status)
        elif time.monotonic() - begun >= steps[0][0]:
            send(steps.pop(0)[1], program, status)
            if not steps:
                until = time.monotonic() + GIVE_UP_SECONDS
        elif LINUX and steps[0][1] == signal.SIGTERM:
            for pid in starters(goes_on):
                deliver(pid, signal.SIGTERM)
        select.select([wake], [], [], 0.05)
        drain(wake)


def send(number: int, program: int, status: int) -> None:
    """Signal all remaining processes, a group at a time, so that a shell and its current command get the signal
    together."""
    if not LINUX:
        reached(program, number)
    elif number == signal.SIGKILL:
        kill_all()
    elif running(program, status):
        for group in descendants()[1]:
            deliver(-group, number)


def reached(group: int, number: int) -> bool:
    """Send a signal to a group; return whether the group exists."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def collect(program: int, status: int) -> bool:
    """Reap ended processes, and report the program's end; return whether children still run."""
    code, more = reap(program)
    if code is not None:
        say(status, f"exit {code}")
    return more


def drain(wake: int) -> None:
    try:
        while os.read(wake, 4096):
            pass
    except OSError:
        pass
