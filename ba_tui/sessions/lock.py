"""One writer per session: a lock that the kernel lets go of when its owner dies, however it dies.

The lock file stays; what counts is the kernel's lock on it, and its text only says who holds it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path

from ba_tui.core.errors import SessionLocked
from ba_tui.resources import open_regular, process_runs
from ba_tui.sessions.records import loads

FILE = "lock"
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_TRIES = 4
_PAUSE = 0.005


class Lock:
    """Held from ``acquire`` to ``release`` or to the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, folder: Path) -> Lock:
        """Raises SessionLocked when another holds it; OSError when there can be no lock file."""
        fd = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _taken(fd):
                raise _locked(folder)
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
            # A full disk only costs the owner's name.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
                os.pwrite(fd, json.dumps(owner).encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def left_open(folder: Path) -> bool:
    """Whether the last owner ended without letting go: a lock that is released is empty. Ask when there is no owner."""
    try:
        return (folder / FILE).stat().st_size > 0
    except OSError:
        return False


def owner(folder: Path) -> str:
    """Who writes the session in ``folder`` now (``pid 123``); empty when nobody does."""
    path = folder / FILE
    try:
        if path.stat().st_size == 0:
            return ""
        record = loads(path.read_bytes()) or {}
    except OSError:
        return ""
    pid, host = record.get("pid"), record.get("host")
    if not isinstance(pid, int):
        return "another process" if _held(path) else ""
    if host != socket.gethostname():
        return f"pid {pid} on {host}" if _held(path) else ""
    return f"pid {pid}" if process_runs(pid) and _held(path) else ""


def _taken(fd: int) -> bool:
    # A list of sessions may hold the lock for a blink while it looks whether somebody has it: hence some tries.
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            return True
        else:
            return True
    return False


def _held(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _locked(folder: Path) -> SessionLocked:
    who = owner(folder) or "another process"
    if who == f"pid {os.getpid()}":
        return SessionLocked(f"Session {folder.name} is already open here.", "Close it first, or fork it.")
    hint = f"Close it there, or take a copy: ba --resume {folder.name} --fork"
    return SessionLocked(f"Session {folder.name} is open in {who}.", hint)
