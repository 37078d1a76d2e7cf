"""Finds workspace files with secrets in their text, and provides masked copies of these and of files with secret names.

The search runs in a low-priority process (``content_process``). Commands see a file unmasked until it was searched.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.errors import started
from ba_tui.permissions.sandbox.workspace_scan import FileReach, shown_in
from ba_tui.permissions.secrets.masked_copies import FileStamp, MaskedCopies, keep, private_folder
from ba_tui.permissions.secrets.masking import KnownSecrets, MaskPlaces, ScanOrder
from ba_tui.processes.programs import PipedChild
from ba_tui.processes.scratch import remove_scratch

PROGRAM = Path(__file__).with_name("content_process.py")
RESTING = 5
"""Pause between passes as a multiple of the last pass's duration, unless that was quick."""
LONGEST_REST = 2.0
"""Maximum pause in seconds: the first pass takes much longer than later ones."""
QUICK = 0.01
"""Seconds of a pass for which a command waits."""
MOST_ATTEMPTS = 3
"""How often the process may fail."""
IDLE = 20.0
"""Seconds without a pass after which the process exits, since it takes 20 MB."""
START = 0.3
"""Seconds that a command waits for the first pass of a process."""


class ContentScan:
    """The search of one session. Thread-safe; only ``settle``, ``masks`` and ``close`` block.

    ``order`` returns what to search and is called once per process. The process exits after ``idle`` seconds without a
    pass and restarts for the next one.
    """

    def __init__(
        self, order: Callable[[], ScanOrder], copies: MaskedCopies, known: KnownSecrets, idle: float = IDLE
    ) -> None:
        self._order = order
        self._idle = idle
        self._copies = copies
        self._known = known
        self._changed = threading.Condition()
        self._wanted = 0
        """Number of passes that were requested."""
        self._done = 0
        """The last finished pass, as the number that was wanted when it began."""
        self._took = 0.0
        """Duration of the last pass in seconds."""
        self._found: dict[Path, tuple[FileStamp, Path]] = {}
        self._further: set[Path] = set()
        """Files with secrets that have no copy, because there are too many."""
        self._thread: threading.Thread | None = None
        self._child: PipedChild | None = None
        self._closed = False

    def begin(self) -> int:
        """Request a pass over the current files; return its number for ``settle``."""
        with self._changed:
            self._wanted += 1
            if self._thread is None and not self._closed:
                self._thread = started(self._work, "secret search")
            self._changed.notify_all()
            return self._wanted

    def settle(self, number: int, seconds: float) -> bool:
        """Wait for the end of a pass; return whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._done >= number or self._closed, seconds)

    def settle_if_quick(self, number: int) -> None:
        """Wait for a pass if the last one took no longer than a command may wait."""
        if self._took < QUICK:
            self.settle(number, QUICK if self._child else START)

    def count(self) -> int:
        """Return the number of files with secrets."""
        return len(self._found) + len(self._further)

    def masks(self) -> Mapping[Path, Path]:
        """Return the current masked copies by file. Blocks while changed files are masked again."""
        with self._changed:
            found = list(self._found.items())
        masks: dict[Path, Path] = {}
        for path, (stamp, copy) in found:
            if (made := self._copies.of_content(path, stamp, copy)) is not None:
                masks[path] = made
        return masks

    def close(self) -> None:
        """Stop the process."""
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
            # Release waiters: the search can't be made.
            self._done = sys.maxsize
            self._changed.notify_all()

    def _serve(self) -> None:
        """Run passes until none is requested for a while.

        Raises:
            OSError, ValueError: the process could not be started, exited, or sent unexpected output.
        """
        order = self._order()
        with PipedChild((sys.executable, "-P", str(PROGRAM)), Path("/"), _environment()) as child:
            with self._changed:
                if self._closed:
                    return
                self._child = child
                # A new process reports every file with secrets again.
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
        """Wait until a pass is wanted and the pause is over; return its number, or 0 to stop the process."""
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
        """Store a report of the process; return the file with secrets that it names, if any."""
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
    """Return variables for a Python that can import ba's package. They contain no keys."""
    kept = {name: value for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if (value := os.environ.get(name))}
    return {**kept, "PYTHONPATH": str(PROGRAM.parents[3])}


class WorkspaceMasks:
    """All masked copies of one workspace, in a private folder that exists until ``close``. Thread-safe."""

    def __init__(self, reach: FileReach, places: MaskPlaces) -> None:
        self._reach = reach
        self._places = places
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._copies = MaskedCopies(self._private, places.known, lambda path: shown_in(reach.roots, path))
        self.content = ContentScan(self._order, self._copies, places.known)

    def of_secret(self, path: Path) -> Path:
        """Return the masked copy of a file with a secret name. Blocks."""
        return self._copies.of_secret(path)

    def of_rule(self, path: Path) -> Path:
        """Return the replacement for a file that a permission rule protects. Blocks."""
        return self._copies.of_rule(path)

    def close(self) -> None:
        """Stop the search and remove the copies. Blocks."""
        self.content.close()
        with self._lock:
            folder, self._folder = self._folder, None
        if folder:
            remove_scratch(folder)

    def _order(self) -> ScanOrder:
        allowed = (*self._reach.readable, *self._reach.writable, *self._reach.hidden)
        skipped = tuple(dict.fromkeys(os.path.realpath(path) for path in allowed))
        kept = self._places.kept
        roots = tuple(str(root) for root in self._reach.roots if not _inside(root, self._reach.roots))
        return ScanOrder(roots, skipped, str(self._private()), str(kept) if kept else "")

    def _private(self) -> Path:
        with self._lock:
            known = self._folder
            if known is None or not known.is_dir():
                known = self._folder = private_folder(self._places.copies)
                # Remove it also without ``close``, as at an abrupt end.
                weakref.finalize(self, remove_scratch, known)
            return known


def _inside(root: Path, roots: tuple[Path, ...]) -> bool:
    return any(root != other and root.is_relative_to(other) for other in roots)
