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


def descendants() -> "tuple[list[int], set[int]]":
    """All processes below us that still run, and the process groups of all, also of those that have just ended.

    One look may miss what forks and ends while it is taken; ``collect`` knows whether anything is there at all.
    Without /proc only the program's own group can be reached.
    """
    below: dict[int, list[int]] = {}
    group: dict[int, int] = {}
    ended: set[int] = set()
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return [], set()
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
            below.setdefault(int(fields[1]), []).append(int(name))
            group[int(name)] = int(fields[2])
            # Of a process with threads the first one may have ended alone.
            if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:
                ended.add(int(name))
    found: list[int] = []
    groups: set[int] = set()
    todo = [os.getpid()]
    while todo:
        children = below.get(todo.pop(), [])
        found += [child for child in children if child not in ended]
        groups.update(group[child] for child in children)
        todo += children
    return found, groups - {os.getpgrp()}


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
    """INT, TERM, KILL, each only for what the one before left running."""
    begun = time.monotonic()
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
        select.select([wake], [], [], 0.05)
        drain(wake)


def send(number: int, program: int, status: int) -> None:
    """The signal to all that is left."""
    if not LINUX:
        reached(program, number)
    elif number == signal.SIGKILL:
        kill_all()
    else:
        for pid in running(program, status):
            deliver(pid, number)


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
