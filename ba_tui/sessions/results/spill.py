"""A result on its way to disk, piece by piece: named by what is in it once it is whole, head and tail of a huge one.

Which results a session has, and what is noted of them, is artifacts.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Artifact, Kind

if TYPE_CHECKING:
    from hashlib import _Hash

UNFINISHED = ".unfinished-"
LARGEST = 64_000_000
LONGEST_TAIL = 8_000_000


class ArtifactSpill:
    """A result on its way to disk; but for the tail of one over ``largest`` bytes, none of it stays in memory.

    ``write`` and ``finish`` raise StorageError; after that nothing is kept. Left unfinished, it is removed.
    """

    def __init__(self, folder: Path, filed: Callable[[str, tuple[int, int], Kind], Artifact], largest: int) -> None:
        self.folder = folder
        self.largest = largest
        self._filed = filed
        tail = min(largest // 8, LONGEST_TAIL)
        self._tail = SpillTail(tail)
        self._head = largest - tail
        self._path = folder / f"{UNFINISHED}{secrets.token_hex(8)}"
        self._digest = hashlib.sha256()
        self._ends = 0
        self._last = b"\n"
        self.size = 0
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):
            # Held while it is written: what nobody holds was left by a process that died.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file = os.fdopen(handle, "wb")

    @property
    def left_out(self) -> int:
        """Bytes between head and tail that are not stored."""
        return self._tail.lost

    def write(self, data: bytes) -> None:
        room = max(0, self._head - self.size)
        if room:
            self._put(data[:room])
        if len(data) > room:
            self._tail.feed(data[room:])

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self.drop()
            raise unstored(error) from error
        except ValueError as error:
            raise StorageError("This result was given up before.", "Make the call again.") from error
        self._digest.update(data)
        self._ends += data.count(b"\n")
        self._last = data[-1:] or self._last
        self.size += len(data)

    def finish(self, kind: Kind = "text") -> Artifact:
        if self._tail.lost:
            self._put(f"\n[… {self._tail.lost:,} bytes are left out here …]\n".encode())
        if tail := self._tail.read():
            self._put(tail)
        name = name_of(self._digest)
        try:
            self._file.flush()
            # Also over the same content from an earlier call: so it is there even if the clean-up was just taking it.
            self._path.replace(self.folder / name)
            self._file.close()
            return self._filed(name, (self.size, self._ends + (self._last != b"\n")), kind)
        except (OSError, ValueError) as error:
            self.drop()
            raise unstored(error) from error

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._file.close()

    def __enter__(self) -> ArtifactSpill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()


class SpillTail:
    """The last ``limit`` bytes of what is fed; ``lost`` counts those before them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.lost = 0

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        while self._size > self._limit:
            first = self._pieces.popleft()
            over = min(len(first), self._size - self._limit)
            self._size -= over
            self.lost += over
            if over < len(first):
                self._pieces.appendleft(first[over:])

    def read(self) -> bytes:
        return b"".join(self._pieces)


def name_of(digest: _Hash) -> str:
    return digest.hexdigest()[:32]


def unstored(error: Exception) -> StorageError:
    why = getattr(error, "strerror", None) or error
    return StorageError(
        f"The result can't be kept in a file: {why}.", "Free some space, or check the rights of BA_HOME."
    )
