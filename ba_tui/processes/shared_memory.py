"""Memory that processes share counts in no rlimit, so a thread looks at it while a program runs. Linux tells it.

A file in ``/dev/shm`` that no process maps is counted by nobody; the limit for files holds for it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ba_tui.core.text.wording import byte_size

SOONEST, LATEST = 0.1, 1.0
"""Seconds between two looks: the more room there is, the longer."""
GROWTH = 4_000_000_000
"""Bytes a second that no process outgrows."""


class MemoryWatch:
    """Ends each process below another that has more than ``most`` bytes, its own and shared ones. None: no limit."""

    def __init__(self, most: int | None) -> None:
        self.ended = 0
        """Processes that were ended."""
        self._most = most if sys.platform == "linux" else None
        self._next = time.monotonic() + LATEST / 4

    @property
    def note(self) -> str:
        """What was done, for who reads the result; empty when it was nothing."""
        if not self.ended or self._most is None:
            return ""
        who = "a process was" if self.ended == 1 else f"{self.ended} processes were"
        return f"{who} ended: more than {byte_size(self._most)} of memory (commands: memory_gb)"

    @property
    def pause(self) -> int | None:
        """Milliseconds until the next look; None when there is nothing to look for."""
        return None if self._most is None else max(0, round((self._next - time.monotonic()) * 1_000))

    def look(self, root: int) -> None:
        """Look at what runs below the process ``root``, when it is time again."""
        now = time.monotonic()
        if self._most is None or now < self._next:
            return
        largest = 0
        for pid in _below(root):
            size = _size(pid)
            largest = max(largest, size)
            if size > self._most:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    self.ended += 1
        self._next = now + min(LATEST, max(SOONEST, (self._most - largest) / GROWTH))


def _below(root: int) -> Iterator[int]:
    left = [root]
    while left:
        pid = left.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = list(map(int, (task / "children").read_bytes().split()))
                left += children
                yield from children


def _size(pid: int) -> int:
    """Bytes in memory that belong to no file; 0 where that can't be read."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_bytes()
        lines = (line.split() for line in status.split(b"\n") if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(line[1]) for line in lines) * 1_024
    return 0
