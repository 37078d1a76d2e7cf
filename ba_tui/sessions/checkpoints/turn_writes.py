"""Tells the files that tools of a turn wrote from those that other programs wrote meanwhile.

The time at which a file last changed is compared with the times at which calls ran. Where that can't tell, the file
counts as written by a tool.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

SLACK = 20_000_000
"""Nanoseconds by which the clock of a file system may be behind: it moves on with the ticks of the kernel."""
SECOND = 1_000_000_000


class TurnWrites:
    """When calls of one turn ran that may change files, and which files they named. ``loose`` says whether a program
    that a call started still runs."""

    def __init__(self, loose: Callable[[], bool] = lambda: False) -> None:
        self._loose = loose
        self._unknown = False
        self._open: dict[str, int] = {}
        self._ran: list[tuple[int, int]] = []
        self._paths: set[str] = set()
        self._until = 0
        self.look()

    def look(self) -> None:
        """See whether a program runs now that may write at any time."""
        self._unknown = self._unknown or self._loose()

    def forget(self) -> None:
        """Calls ran of which nothing is known, so that no file counts as written by another program."""
        self._unknown = True

    def begin(self, call: str, paths: Iterable[str]) -> None:
        """A call begins to run; it names the files at ``paths`` as those that it writes. Relative ones start from the
        project."""
        self._open.setdefault(call, time.time_ns() - SLACK)
        self._paths.update(paths)

    def end(self, call: str) -> None:
        """A call has ended, with all that follows from it."""
        if call in self._open:
            self._ran.append((self._open.pop(call), time.time_ns()))
            self.look()

    def close(self) -> None:
        """The turn has ended."""
        for call in list(self._open):
            self.end(call)
        self.look()
        self._until = time.time_ns()

    def others(self, root: Path, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of the files ``names`` below ``root`` another program wrote last. Blocks."""
        if self._unknown or not self._ran:
            return ()
        paths = {os.path.normpath(root / path) for path in self._paths}
        named = {os.path.realpath(path) for path in paths} | paths
        return tuple(name for name in names if self._is_others(root / name, named))

    def _is_others(self, path: Path, named: set[str]) -> bool:
        if str(path) in named or os.path.realpath(path) in named:
            return False
        try:
            found = path.lstat()
        except OSError:
            return False
        at = found.st_ctime_ns
        # A file system that knows whole seconds only, or has another clock, says nothing.
        if not stat.S_ISREG(found.st_mode) or at % SECOND == 0 or at > self._until:
            return False
        return not any(begun <= at <= ended for begun, ended in self._ran)
