"""Files that several processes share: locks on them, and appends that survive a crash.

A lock belongs to an open descriptor: two descriptors contend even within one process, and the kernel releases a lock
when its descriptor is closed or its process ends in any way. Lock files stay, because removing one would let two
processes lock two files of the same name.

The package ``filelock`` does not serve here: it has no shared locks on descriptors, it polls where the kernel can wait,
and its import would delay the first paint by 25 ms.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import time
from contextlib import suppress
from pathlib import Path

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_PAUSE = 0.002


def take_lock(fd: int, *, wait: float = 0.0) -> bool:
    """Lock an open file or folder; return False if it is still locked elsewhere after ``wait`` seconds.

    Raises:
        OSError: it cannot be locked, as on some network file systems.
    """
    if wait == math.inf:
        fcntl.flock(fd, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def take_lock_if_supported(fd: int, *, wait: float = 0.0) -> bool:
    """Do as ``take_lock``, but return True, without a lock, on file systems that have none."""
    try:
        return take_lock(fd, wait=wait)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return True


def is_locked(fd: int) -> bool:
    """Return whether an open file is locked elsewhere. Close it soon: if it is not, a shared lock is left on it.

    Raises:
        OSError: that is unknown.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def open_lock_file(path: Path) -> int:
    """Open a lock file, or create it, private to the user. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def write_owner(fd: int, owner: str) -> None:
    """Replace the text of a lock file by the name of its owner; on a full disk, only the name is lost."""
    with suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, owner.encode(), 0)


def append_whole(fd: int, data: bytes | bytearray) -> None:
    """Write all of ``data`` to a file that is open for appending, or remove the part that was written.

    Raises:
        OSError: nothing was appended, unless the file could not be shortened either.
    """
    size = os.fstat(fd).st_size
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def sync_path(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
