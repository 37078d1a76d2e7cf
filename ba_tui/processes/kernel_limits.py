"""Limits beyond rlimits: no keyrings, no sockets to hypervisors, and for root, process counts and setuid modes.

Loaded by the supervisor, so it imports only what the supervisor has loaded already.
"""

import ctypes
import os
import signal
import sys

from ba_tui.processes.process_tree import descendants, kill_all, say

NO_NEW_PRIVILEGES, SECCOMP, SECCOMP_FILTER = 38, 22, 2
SETID_BITS = 0o6000
CREATES = 0o20000100
"""Flags of ``open`` that create a file: O_CREAT and O_TMPFILE."""
LOAD, EQUAL, FROM, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOWED, REFUSED, UNKNOWN, NO_FAMILY = 0x7FFF0000, 0x00050001, 0x00050026, 0x00050061
"""Return values of a filter: continue, EPERM, ENOSYS, EAFNOSUPPORT."""
CALLS = {
    "x86_64": (
        0xC000003E,
        {90: 1, 91: 1, 268: 2, 452: 2, 85: 1, 133: 1, 259: 2},
        {2: (1, 2), 257: (2, 3)},
    ),
    "aarch64": (0xC00000B7, {52: 1, 53: 2, 452: 2, 33: 2}, {56: (2, 3)}),
}
"""By machine: its audit number, the system calls with a mode argument, and those with a flags and a mode argument."""
KEYRINGS = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}
"""System calls about keyrings, which no namespace separates: the user's keys must stay private."""
SOCKET = {"x86_64": 41, "aarch64": 198}
LATE_FAMILIES = 18
"""Socket families from here on reach other machines around this one, as AF_VSOCK does, and no namespace isolates
them."""
URING, OPENAT2 = 425, 437
"""io_uring_setup and openat2: a filter cannot inspect their arguments."""
FEW_FORKS = 48
"""Processes that may start between two checks without a count."""


def refuse_calls(libc: "ctypes.CDLL", *, setid: bool) -> None:
    """Install a filter without keyrings and sockets to hypervisors, for this process and its descendants. ``setid``
    also refuses modes with which a file runs as its owner or group.

    Raises:
        OSError: the kernel rejects the filter.
    """
    name = os.uname().machine
    known = CALLS.get(name)
    if known is None:
        return
    machine, moded, flagged = known if setid else (known[0], {}, {})
    # Each step: code, jump if true, jump if false, operand.
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, UNKNOWN), (LOAD, 0, 0, 0)]
    for call in (*KEYRINGS[name], URING, *((OPENAT2,) if setid else ())):
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, UNKNOWN)]
    steps += [(EQUAL, 0, 4, SOCKET[name]), (LOAD, 0, 0, 16), (FROM, 0, 1, LATE_FAMILIES)]
    steps += [(RETURN, 0, 0, NO_FAMILY), (RETURN, 0, 0, ALLOWED)]
    for call, mode in moded.items():
        steps += [(EQUAL, 0, 4, call), (LOAD, 0, 0, 16 + 8 * mode), (ANY_BIT, 0, 1, SETID_BITS)]
        steps += [(RETURN, 0, 0, REFUSED), (RETURN, 0, 0, ALLOWED)]
    for call, (flags, mode) in flagged.items():
        steps += [(EQUAL, 0, 6, call), (LOAD, 0, 0, 16 + 8 * flags), (ANY_BIT, 0, 3, CREATES)]
        steps += [(LOAD, 0, 0, 16 + 8 * mode), (ANY_BIT, 0, 1, SETID_BITS), (RETURN, 0, 0, REFUSED)]
        steps += [(RETURN, 0, 0, ALLOWED)]
    # On x86_64 the upper numbers are the same calls again (x32).
    steps += [(FROM, 0, 1, 0x40000000), (RETURN, 0, 0, UNKNOWN), (RETURN, 0, 0, ALLOWED)]
    order = sys.byteorder
    raw = b"".join(
        code.to_bytes(2, order) + bytes((so, not_so)) + number.to_bytes(4, order) for code, so, not_so, number in steps
    )
    filter = ctypes.create_string_buffer(raw, len(raw))
    program = ctypes.create_string_buffer(16)
    program[:2] = len(steps).to_bytes(2, order)
    program[8:16] = ctypes.addressof(filter).to_bytes(8, order)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.prctl(SECCOMP, SECCOMP_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "keyrings, and modes that make files run as their owner, can't be refused")


class ProcessWatch:
    """Count the processes below the supervisor, because the kernel's limit does not apply to root."""

    WAIT = 0.05
    """Seconds between two checks."""

    def __init__(self, limits: str) -> None:
        given = dict(item.split("=") for item in limits.split(",") if item)
        self.most = int(given["nproc"])
        self._apart = "apart" in given
        self._last = 0
        self._room = 0

    def over(self) -> bool:
        """Return whether more processes run than allowed. Counts only if enough were started since the last call."""
        try:
            with open("/proc/loadavg", "rb") as file:
                last = int(file.read().split()[-1])
        except (OSError, ValueError, IndexError):
            last = 0
        started = last - self._last if last >= self._last else self.most
        self._last = last
        self._room -= max(started, 0)
        if last and self._room > 0:
            return False
        running = descendants()[0]
        self._room = min(FEW_FORKS, self.most - len(running))
        return len(running) > self.most

    def end(self, status: int) -> None:
        """Kill all processes, and report the program's end to ``status`` if that needs no further check."""
        if self._apart:
            # When bwrap's last child ends, the kernel kills the whole process namespace.
            say(status, f"exit {-signal.SIGKILL}")
            os._exit(1)
        kill_all()
