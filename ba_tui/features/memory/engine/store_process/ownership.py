"""Which process owns the vector index of a shelf: the one that holds the lock. The kernel frees that of a dead one.

Two writers damage a Chroma folder without a word, so whoever does not own it never opens it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class Ownership:
    """The lock file ``path``, which says who holds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def held(self) -> bool:
        return self._fd >= 0

    def take(self) -> bool:
        """Whether the index is ours, now or since before. Raises OSError where no file can be locked."""
        if self.held:
            return True
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._fd = fd
        # A full disk only costs the owner's name.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return True

    def release(self) -> None:
        """Let another process take the index."""
        if self.held:
            os.close(self._fd)
            self._fd = -1

    def owner(self) -> str:
        """The process id in the file; empty when it is not known."""
        try:
            return self._path.read_text("ascii", "replace").strip()[:20]
        except OSError:
            return ""
