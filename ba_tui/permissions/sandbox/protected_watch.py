"""Detects protected files that appear or change while commands run, and remembers them until the user decides.

Pending changes are saved to a file for later sessions. Files are moved only on request; tools ask the user.
``workspace_scan`` defines protected names.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ba_tui.core.effects import Profile
from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.workspace_scan import GIT, GIT_SETTINGS, VENV, ScanResult, WorkspaceScan
from ba_tui.resources import read_regular, save_whole

log = logging.getLogger(__name__)
MOST_PENDING_BYTES = 1_000_000


@frozen
class PendingChange:
    """A file that the command ``by`` created (``new``) or changed; ``outermost``: the highest path that appeared with
    it."""

    path: Path
    outermost: Path
    by: str
    new: bool


@frozen
class PendingChanges:
    """``folder``: where the file is saved, next to files that were set aside."""

    folder: Path

    @property
    def _file(self) -> Path:
        return self.folder / "pending.json"

    def read(self) -> list[PendingChange]:
        """Return the files; empty if none are saved or the file is unreadable."""
        try:
            entries: Any = json.loads(read_regular(self._file, MOST_PENDING_BYTES))
        except (OSError, ValueError, RecursionError):
            return []
        found = cast("list[Any]", entries) if isinstance(entries, list) else []
        return [_read(cast("dict[str, Any]", entry)) for entry in found if isinstance(entry, dict) and "path" in entry]

    def write(self, pending: Iterable[PendingChange]) -> None:
        """Replace the saved files. A failure is logged; the files still count in this session."""
        entries = [
            {"path": str(each.path), "outermost": str(each.outermost), "by": each.by, "new": each.new}
            for each in pending
        ]
        try:
            if entries or self._file.exists():
                save_whole(self._file, json.dumps(entries, indent=1))
        except (StorageError, OSError, UnicodeError) as error:
            log.warning("protected files that wait for a decision could not be kept: %s", error)


def _read(entry: Mapping[str, Any]) -> PendingChange:
    path = str(entry["path"])
    outermost, by = str(entry.get("outermost", path)), str(entry.get("by", ""))
    return PendingChange(Path(path), Path(outermost), by, entry.get("new") is not False)


MOST_FILES = 5_000
LARGEST = 100_000
"""Maximum bytes of a protected file whose content is kept, so that a change can be shown and undone."""
MOST_KEPT = 8_000_000
SAMPLE = ".sample"
"""The suffix of hook files that git never runs."""


@frozen
class FileMark:
    """Identifies a state of a file. ``content`` if it was kept; ``folder``: the inode of its folder."""

    stamp: tuple[int, ...]
    folder: int
    outermost: Path
    """The protected folder that contains it, or the file itself."""
    content: bytes | None = None


@frozen
class ProtectedChange:
    """A protected file that appeared (``new``), changed, or vanished (``after`` None) while ``by`` ran. ``outermost``:
    the highest path that appeared with it."""

    path: Path
    by: str
    new: bool
    before: bytes | None = None
    after: bytes | None = None
    outermost: Path | None = None
    moved: bool = False
    """Whether its folder was replaced by another one."""


@frozen
class WatchedRun:
    """A running command, its profile, and whether protected files are write-protected (``guarded``)."""

    by: str
    profile: Profile
    guarded: bool = False
    running: Callable[[], bool] = bool
    """Whether it still runs in the background."""


class ProtectedWatch:
    """The protected files of one workspace. Thread-safe; all methods block for some milliseconds.

    ``scan`` finds them; ``kept`` stores pending changes, also of earlier sessions.
    """

    def __init__(self, scan: WorkspaceScan, kept: PendingChanges, shown: Callable[[Path], str] = str) -> None:
        self.shown = shown
        """Returns a path for display."""
        self._scan = scan
        self._kept = kept
        self._lock = threading.RLock()
        self._runs: list[WatchedRun] = []
        self._before: dict[Path, FileMark] = {}
        self._contents: dict[tuple[int, ...], bytes] = {}
        self._pending: dict[Path, ProtectedChange] = {}
        self._loaded = False

    @property
    def pending(self) -> tuple[ProtectedChange, ...]:
        """Existing changes that the user has not decided about."""
        with self._lock:
            if not self._loaded:
                self._loaded = True
                for kept in self._kept.read():
                    after = _content(kept.path)
                    change = ProtectedChange(kept.path, kept.by, kept.new, after=after, outermost=kept.outermost)
                    self._pending.setdefault(kept.path, change)
            decided = ((path, change.new or change.before is None) for path, change in self._pending.items())
            gone = [path for path, lost in decided if lost and not os.path.lexists(path)]
            for path in gone:
                del self._pending[path]
            if gone:
                self._keep()
            return tuple(self._pending.values())

    def begin(self, run: WatchedRun, findings: ScanResult | None = None) -> None:
        """Record the state before a command runs. Changes since the last command ended are the user's.

        ``findings``: fresh scan results, to spare another scan.
        """
        with self._lock:
            if not self._runs:
                self._before = self._look(findings, contents=run.profile.git or not run.guarded)
            self._runs.append(run)

    def replace(self, run: WatchedRun, by: WatchedRun) -> None:
        """Replace a run that continues as ``by``."""
        with self._lock:
            self._runs = [by if each is run else each for each in self._runs]

    def end(self, run: WatchedRun) -> tuple[ProtectedChange, ...]:
        """Return changes that an ended command may have made to protected files."""
        with self._lock:
            found = self._compare(run)
            if run in self._runs:
                self._runs.remove(run)
            return found

    def check(self) -> tuple[ProtectedChange, ...]:
        """Return changes by background commands so far; forget commands that have ended."""
        with self._lock:
            for run in tuple(self._runs):
                self._compare(run)
                if not run.running():
                    self._runs.remove(run)
            return self.pending

    @property
    def running(self) -> tuple[str, ...]:
        """The running commands, servers and workers."""
        return tuple(run.by for run in self._runs)

    @property
    def active(self) -> bool:
        """Whether something runs that may change protected files."""
        return bool(self._runs)

    def keep(self, changes: Iterable[ProtectedChange]) -> None:
        """Accept ``changes``: the user wants the files as they are."""
        with self._lock:
            for change in changes:
                self._pending.pop(change.path, None)
            if self._runs:
                self._before = self._look(contents=True)
            self._keep()

    def set_aside(self, changes: Sequence[ProtectedChange]) -> Path:
        """Move new files into a folder of ba, which is returned, and restore changed files.

        Raises:
            OSError: a file can't be moved or written; earlier steps are not undone.
        """
        with self._lock:
            folder = (
                self._kept.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10_000}"
            )
            for change in changes:
                self._set_aside(change, folder)
                self._pending.pop(change.path, None)
            self._keep()
            return folder

    def _set_aside(self, change: ProtectedChange, folder: Path) -> None:
        path = (change.outermost or change.path) if change.new else change.path
        if os.path.lexists(path):
            place = folder / path.relative_to(path.anchor)
            place.parent.mkdir(parents=True, exist_ok=True)
            if change.new or change.before is None:
                shutil.move(path, place)
            else:
                shutil.copy2(path, place, follow_symlinks=False)
        if not change.new and change.before is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(change.before)

    def _keep(self) -> None:
        here = (change for change in self._pending.values() if os.path.lexists(change.path))
        self._kept.write(PendingChange(each.path, each.outermost or each.path, each.by, each.new) for each in here)

    def _compare(self, run: WatchedRun) -> tuple[ProtectedChange, ...]:
        now = self._look(contents=True)
        found = [change for change in self._changes(now, run) if not _expected(change, run)]
        for change in found:
            self._pending.setdefault(change.path, change)
        self._before = now
        if found:
            self._keep()
        return tuple(found)

    def _changes(self, now: Mapping[Path, FileMark], run: WatchedRun) -> Iterator[ProtectedChange]:
        known = {path for each in self._before for path in (each, *each.parents)}
        for path, mark in now.items():
            before = self._before.get(path)
            if before is None:
                outermost = path if mark.outermost in known else mark.outermost
                yield ProtectedChange(path, run.by, True, None, mark.content, outermost)
            elif before.stamp != mark.stamp and (before.content is None or before.content != mark.content):
                yield ProtectedChange(
                    path, run.by, False, before.content, mark.content, moved=before.folder != mark.folder
                )
        for path, mark in self._before.items():
            if path not in now and mark.content is not None:
                yield ProtectedChange(path, run.by, False, mark.content)

    def _look(self, findings: ScanResult | None = None, *, contents: bool) -> dict[Path, FileMark]:
        findings = findings or self._scan.look()
        marks: dict[Path, FileMark] = {}
        folders: dict[Path, int] = {}
        size = 0
        for outermost, path in islice(_watched(findings), MOST_FILES):
            try:
                status = path.lstat()
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                continue
            folders.setdefault(path.parent, _inode(path.parent))
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
            content = self._contents.get(stamp)
            if content is None and contents and size < MOST_KEPT:
                content = _content(path)
            size += len(content or b"")
            marks[path] = FileMark(stamp, folders[path.parent], outermost, content)
        self._contents = {mark.stamp: mark.content for mark in marks.values() if mark.content is not None}
        return marks


def _expected(change: ProtectedChange, run: WatchedRun) -> bool:
    """Return whether the command could not have made the change, or was allowed to."""
    if run.profile.packages and _is_installed(change.path):
        return True
    if change.new or change.moved or not run.guarded:
        return False
    # It was read-only for the command, so another program of the user's changed it.
    return not run.profile.git or GIT in change.path.parts


def _is_installed(path: Path) -> bool:
    return "node_modules" in path.parts or any((folder / VENV).exists() for folder in path.parents) or path.name == VENV


def _watched(findings: ScanResult) -> Iterator[tuple[Path, Path]]:
    """Yield every watched file, preceded by its outermost protected parent."""
    for path in sorted(findings.protected, key=lambda path: len(path.parts)):
        if (path / VENV).exists():
            yield from ((each, each) for each in _programs_of(path))
        elif path.is_dir() and not path.is_symlink():
            yield from ((path, each) for each in _files(path))
        else:
            yield path, path
    for folder in findings.git:
        places = [folder]
        modules = folder / "modules"
        if modules.is_dir():
            places += [config.parent for config in modules.rglob("config") if (config.parent / "HEAD").exists()]
        for place in places:
            files = [place / "HEAD"] if folder.name != GIT else []
            for path in (place / name for name in GIT_SETTINGS):
                files += (each for each in _files(path) if each.suffix != SAMPLE) if path.is_dir() else (path,)
            yield from ((folder if folder.name == GIT else each, each) for each in files)


def _programs_of(venv: Path) -> Iterator[Path]:
    """Yield files that a virtual environment runs: its programs, and code that Python loads at startup."""
    yield venv / VENV
    yield from _files(venv / "bin")
    for packages in venv.glob("lib/python*/site-packages"):
        yield from (path for path in packages.iterdir() if path.suffix == ".pth" or path.name.endswith("customize.py"))


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _inode(folder: Path) -> int:
    try:
        return folder.stat().st_ino
    except OSError:
        return 0


def _content(path: Path) -> bytes | None:
    """Return a file's content; None for a large file, a link, or an unreadable file."""
    if path.is_symlink():
        return None
    try:
        content = read_regular(path, LARGEST + 1)
    except OSError:
        return None
    return content if len(content) <= LARGEST else None


def watch_in(scan: WorkspaceScan, kept: Path, shown: Callable[[Path], str]) -> ProtectedWatch:
    """Return the watch of a session; files that wait for the user's decision are kept in the folder ``kept``."""
    return ProtectedWatch(scan, PendingChanges(kept), shown)
