"""The processes below this one: listed from /proc, signalled, and collected when they have ended.

Loaded by the supervisor, which starts with the standard library alone: it imports only what that has loaded already.
"""

import errno
import os
import select
import signal
import sys
import time

LADDER = ((0.0, signal.SIGINT), (0.6, signal.SIGTERM), (2.0, signal.SIGKILL))
GOES_ON_SECONDS = 0.15
"""What starts further programs so long after it was interrupted is not about to end: it gets the TERM then."""
STATE, PARENT, GROUP, THREADS, BEGUN = 0, 1, 2, 17, 19
"""Places in ``/proc/N/stat`` behind the name."""
GIVE_UP_SECONDS = 2.0
LOOK_SECONDS = 1.0
LINUX = sys.platform == "linux"


def say(status: int, line: str) -> None:
    try:  # noqa: SIM105 - contextlib costs start-up time
        os.write(status, line.replace("\n", "?").encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        pass


def threads() -> int:
    """How many threads the person runs; 0 where that cannot be counted."""
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
    """All processes below us, also those that have just ended: the number of each, and what its ``stat`` says behind
    its name. None without /proc.

    One look may miss what forks and ends while it is taken; ``collect`` knows whether anything is there at all.
    """
    children: dict[int, list[tuple[int, list[bytes]]]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return []
    # The newest first: what a shell starts in a loop ends within a millisecond.
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
    """All processes below us that still run, and the process groups of all, also of those that have just ended.
    Without /proc only the program's own group can be reached."""
    every = below()
    groups = {int(fields[GROUP]) for _, fields in every}
    # Of a process with threads the first one may have ended alone.
    found = [pid for pid, fields in every if fields[STATE] not in (b"Z", b"X") or int(fields[THREADS]) > 1]
    return found, groups - {os.getpgrp()}


def starters(since: float) -> "set[int]":
    """The processes below us that have started another one after ``since``, in seconds since the boot."""
    ticks = since * os.sysconf("SC_CLK_TCK")
    return {int(fields[PARENT]) for _, fields in below() if int(fields[BEGUN]) > ticks} - {os.getpid()}


def running(program: int, status: int) -> "list[int]":
    """What still runs below us. Looks again when nothing is seen although something must be there."""
    until = time.monotonic() + LOOK_SECONDS
    while True:
        found = descendants()[0]
        if found or not collect(program, status) or time.monotonic() > until:
            return found


def kill_all() -> None:
    """Stopped first, so that none forks away; a group at a time, as that also reaches what no look has seen."""
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
    """Collect what has ended: the program's exit code when it is among that, and whether children still run.

    The latter is certain where orphans become our children: while one process is left, we have a child.
    """
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
    """INT, TERM, KILL, each only for what the one before left running. A shell may have missed the INT: it goes on with
    the next command of a loop where the last one ended on its own."""
    begun = time.monotonic()
    goes_on = time.clock_gettime(time.CLOCK_BOOTTIME) + GOES_ON_SECONDS if LINUX else 0.0
    steps = list(LADDER)
    # Counted from the first KILL: however late a busy machine gets there, nothing is given up before.
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
    """The signal to all that is left, a group at a time: a shell and the command that it waits for get it together."""
    if not LINUX:
        reached(program, number)
    elif number == signal.SIGKILL:
        kill_all()
    elif running(program, status):
        for group in descendants()[1]:
            deliver(-group, number)


def reached(group: int, number: int) -> bool:
    """Send to a group; whether there was one."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def collect(program: int, status: int) -> bool:
    """Reap what has ended, and say so when it was the program; whether children still run."""
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
