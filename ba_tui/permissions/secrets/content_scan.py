"""Which files of the workspace hold secrets by their content: the side of ba that starts the search and keeps results.

The search runs in a process of low priority (``content_process``). Until a file was searched, commands see it as it is.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.errors import started
from ba_tui.permissions.secrets.content_process import ScanOrder
from ba_tui.permissions.secrets.copies import FileStamp, MaskedCopies, keep
from ba_tui.permissions.secrets.known import KnownSecrets
from ba_tui.processes.streams import PipedChild

PROGRAM = Path(__file__).with_name("content_process.py")
RESTING = 5
"""How many times as long as a pass took, no further one begins, unless it was quick."""
LONGEST_REST = 2.0
"""Seconds after which a pass may begin in any case: the first one takes much longer than later ones."""
QUICK = 0.01
"""Seconds of a pass for which a command waits."""
MOST_ATTEMPTS = 3
"""How often the process may fail."""
IDLE = 20.0
"""Seconds without a pass after which the process ends: it takes 20 MB."""
START = 0.3
"""Seconds that a command waits for the first pass of a process."""


class ContentScan:
    """One session's search. ``order`` says what is searched; it is asked for once. Thread-safe; nothing blocks but
    ``settle`` and ``close``. The process ends after ``idle`` seconds without a pass, and starts again for the next."""

    def __init__(
        self, order: Callable[[], ScanOrder], copies: MaskedCopies, known: KnownSecrets, idle: float = IDLE
    ) -> None:
        self._order = order
        self._idle = idle
        self._copies = copies
        self._known = known
        self._changed = threading.Condition()
        self._wanted = 0
        """Passes that were asked for."""
        self._done = 0
        """The last pass that ended, by the number that was wanted when it began."""
        self._took = 0.0
        """Seconds that the last pass took."""
        self._found: dict[Path, tuple[FileStamp, Path]] = {}
        self._further: set[Path] = set()
        """Files with secrets of which no copy was made: there are too many."""
        self._thread: threading.Thread | None = None
        self._child: PipedChild | None = None
        self._closed = False

    def begin(self) -> int:
        """Ask for a pass that sees the files as they are now; return its number for ``settle``."""
        with self._changed:
            self._wanted += 1
            if self._thread is None and not self._closed:
                self._thread = started(self._work, "secret search")
            self._changed.notify_all()
            return self._wanted

    def settle(self, number: int, seconds: float) -> bool:
        """Wait until the pass of that number has ended; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._done >= number or self._closed, seconds)

    def settle_if_quick(self, number: int) -> None:
        """Wait for the pass of that number where the last one took no longer than a command may wait."""
        if self._took < QUICK:
            self.settle(number, QUICK if self._child else START)

    def count(self) -> int:
        """Files with secrets that were found."""
        return len(self._found) + len(self._further)

    def masks(self) -> Mapping[Path, Path]:
        """What is to be seen at the files with secrets, as they are at this moment. Blocks while changed files are
        masked again."""
        with self._changed:
            found = list(self._found.items())
        masks: dict[Path, Path] = {}
        for path, (stamp, copy) in found:
            if (made := self._copies.of_content(path, stamp, copy)) is not None:
                masks[path] = made
        return masks

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self._closed = True
            child = self._child
            self._changed.notify_all()
        if child:
            child.kill()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _work(self) -> None:
        failures = 0
        while failures < MOST_ATTEMPTS:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted > self._done or self._closed)
                if self._closed:
                    return
            try:
                self._serve()
            except (OSError, ValueError):
                failures += 1
            finally:
                self._child = None
        with self._changed:
            # Nobody waits for a search that can't be made.
            self._done = sys.maxsize
            self._changed.notify_all()

    def _serve(self) -> None:
        """Run passes until none is wanted for a while.

        Raises:
            OSError, ValueError: the process could not be started, ended, or says what is not expected.
        """
        order = self._order()
        with PipedChild((sys.executable, "-P", str(PROGRAM)), Path("/"), _environment()) as child:
            with self._changed:
                if self._closed:
                    return
                self._child = child
                # A new process names every file with secrets again.
                missing = self._found.keys() | self._further
            child.input.write(order.text().encode() + b"\n")
            rests_until = 0.0
            while number := self._next(rests_until):
                begun = time.monotonic()
                child.input.write(b"\n")
                child.input.flush()
                for line in child.output:
                    told = json.loads(line)
                    if told.get("done"):
                        break
                    missing.discard(self._take(told))
                else:
                    raise ValueError("the search ended")
                took = time.monotonic() - begun
                rests_until = time.monotonic() + (min(RESTING * took, LONGEST_REST) if took > QUICK else 0.0)
                with self._changed:
                    self._drop(missing)
                    missing.clear()
                    self._took = took
                    self._done = max(self._done, number)
                    self._changed.notify_all()

    def _next(self, rests_until: float) -> int:
        """Wait until a pass is wanted, and the last one is long enough ago; its number, or 0 to end the process."""
        ends = time.monotonic() + self._idle
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                wanted = self._wanted > self._done
                if wanted and now >= rests_until:
                    return self._wanted
                if not wanted and now >= ends:
                    return 0
                self._changed.wait((rests_until if wanted else ends) - now)
            return 0

    def _drop(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self._found.pop(path, None)
            self._further.discard(path)

    def _take(self, told: Mapping[str, Any]) -> Path | None:
        """Keep what the process found; return the file with secrets, if it names one."""
        with self._changed:
            self._drop(_path(text) for text in told.get("gone", ()))
        if "path" not in told:
            return None
        path, copy = _path(told["path"]), told.get("copy")
        keep(self._known, ((value, kind) for value, kind in told["values"]))
        with self._changed:
            if copy:
                device, inode, size, modified, changed = told["stamp"]
                self._found[path] = ((device, inode, size, modified, changed), Path(copy))
            else:
                self._further.add(path)
        return path


def _path(text: str) -> Path:
    return Path(os.fsdecode(bytes.fromhex(text)))


def _environment() -> dict[str, str]:
    """Variables for a Python that finds ba's package, wherever that lies. No key is among them."""
    kept = {name: value for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if (value := os.environ.get(name))}
    return {**kept, "PYTHONPATH": str(PROGRAM.parents[3])}
