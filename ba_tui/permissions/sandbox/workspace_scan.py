"""Finds the secret files, the protected files and the git folders of a workspace, and keeps the answer current.

Every folder is listed once. Later looks list only folders whose change time moved. No file is opened here.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_IN_HOME, SECRET_NAMES, folded, is_secret
from ba_tui.permissions.sandbox.protected_files import (
    FOLDERS,
    GIT,
    INSTRUCTIONS,
    LAST,
    NAMES,
    VENV,
    is_protected,
    respelled,
)

FIRST_SECONDS = 3.0
"""Seconds that the first look may take; what is left is looked at a little at a time, with ``complete`` false."""
LATER_SECONDS = 0.05
COLD_SECONDS = 0.004
"""Processor seconds that one look spends on folders of dependencies, which it takes in turns."""
MOST_FOLDERS = 300_000
SETTLED = 100_000_000
"""Nanoseconds after which a change shows in a folder's change time, however coarse the clock of the file system is."""
COLD = frozenset({"node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache"})
_MARKS = frozenset({"HEAD", "commondir", "objects", "refs", VENV})
_NOT_FILES = ("/dev/", "/proc/", "/sys/")
_SECRET_LAST = ("config.json", "hosts.yml", "credentials", "credentials.toml", "rclone.conf", "gcloud")
_TELLING = (*SECRET_NAMES, *SECRET_FOLDERS, *SECRET_IN_HOME, *_SECRET_LAST, *NAMES, *FOLDERS, *LAST, *INSTRUCTIONS)
_NAMES = frozenset(name for name in _TELLING if "*" not in name)
_HEADS = tuple({name.partition("*")[0] for name in _TELLING if "*" in name} - {""})
_ENDS = tuple(name[1:] for name in _TELLING if name[0] == "*")


@frozen
class ScanResult:
    """``secrets`` are regular files, ``hidden`` folders whose files are all secret, ``protected`` the outermost
    protected files and folders, ``git`` the folders that git takes its settings from. ``linked``: see ``with_links``.

    ``complete``: every folder was listed. ``cost``: processor seconds that the look took."""

    secrets: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    git: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()
    complete: bool = True
    cost: float = 0.0

    def concealed(self) -> frozenset[tuple[Path, int]]:
        """Return what is hidden with its inode: a file that was written anew under its name is another one."""
        return frozenset((path, _inode(path)) for path in (*self.secrets, *self.hidden))


def _inode(path: Path) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


@frozen
class _Linked:
    """A file with several names: its path, device and inode, and how many names it has."""

    path: str
    inode: tuple[int, int]
    names: int


@dataclass(slots=True)
class _Folder:
    """One listed folder. ``stamp``: inode and change time, None when it may have changed unnoticed."""

    cold: bool
    guarded: bool
    stamp: tuple[int, int] | None = None
    folders: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    git: tuple[str, ...] = ()
    linked: tuple[_Linked, ...] | None = None
    """Files with several names; None when nobody looked for them yet, as a program that only reads needs none."""

    @property
    def bare(self) -> bool:
        return not (self.secrets or self.hidden or self.protected or self.git)


@dataclass(slots=True)
class _Found:
    """What one folder holds, while it is read."""

    secrets: list[str] = field(default_factory=list[str])
    hidden: list[str] = field(default_factory=list[str])
    protected: list[str] = field(default_factory=list[str])
    git: list[str] = field(default_factory=list[str])


class WorkspaceScan:
    """The files below ``roots``, links not followed. ``allowed``: secret files that the person lets commands see;
    ``started``: further protected files.

    Thread-safe. ``look`` blocks: some hundredths of a second the first time, some milliseconds later.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        allowed: Iterable[Path] = (),
        home: Path | None = None,
        started: Iterable[Path] = (),
    ) -> None:
        self._started = tuple(sorted(started))
        self._roots = _outermost(roots)
        self._allowed = {os.path.realpath(path) for path in allowed}
        self._home = home
        self._folders: dict[str, _Folder] = {}
        self._telling: set[str] = set()
        """Folders in which something was found."""
        self._todo: deque[tuple[str, bool, bool]] = deque()
        self._cold: deque[str] = deque()
        self._twins: set[int] = set()
        """Inodes of secret files with more than one name."""
        self._lock = threading.Lock()
        self._begun = False
        self._last = ScanResult(complete=False)
        self._looked = float("-inf")

    @property
    def roots(self) -> tuple[Path, ...]:
        """The outermost folders that are searched."""
        return self._roots

    @property
    def last(self) -> ScanResult:
        """What the last look found."""
        return self._last

    def look(self, recent: float = 0) -> ScanResult:
        """What is there now, or what was there at most ``recent`` seconds ago."""
        with self._lock:
            if time.monotonic() - self._looked < recent:
                return self._last
            begun, patience = time.thread_time(), LATER_SECONDS if self._begun else FIRST_SECONDS
            if not self._begun:
                self._begun = True
                self._twins.update(_keys_with_other_names(self._home))
                self._todo.extend((str(root), False, False) for root in self._roots)
            else:
                self._revisit()
            cost = time.thread_time() - begun
            until = time.monotonic() + patience
            known = -1
            while known != len(self._twins):
                # Another name of a secret may lie in a folder that was listed before.
                if known >= 0:
                    self._relist()
                known = len(self._twins)
                self._work(until)
            self._last, self._looked = self._findings(cost), time.monotonic()
            return self._last

    def with_links(self) -> ScanResult:
        """What ``look`` finds, and the files with a hard link that is not in the workspace. Those in folders of
        dependencies are left out: package managers link them to their stores, and replace them."""
        found = self.look()
        with self._lock:
            for path, folder in self._folders.items():
                if folder.linked is None:
                    folder.linked = () if folder.cold else tuple(_linked(path))
            every = (each for folder in self._folders.values() for each in folder.linked or ())
            return replace(found, linked=tuple(_leaving(every)))

    def _work(self, until: float) -> None:
        while self._todo and len(self._folders) < MOST_FOLDERS and time.monotonic() < until:
            path, cold, guarded = self._todo.popleft()
            if path not in self._folders:
                self._folders[path] = _Folder(cold, guarded)
                if cold:
                    self._cold.append(path)
            self._list(path)

    def _revisit(self) -> None:
        """List the folders again that changed; of dependencies only as many as there is time for."""
        for path, folder in list(self._folders.items()):
            if not folder.cold and path in self._folders:
                self._check(path, folder)
        until = time.thread_time() + COLD_SECONDS
        for count in range(len(self._cold)):
            path = self._cold.popleft()
            if folder := self._folders.get(path):
                self._cold.append(path)
                self._check(path, folder)
            if not count % 32 and time.thread_time() > until:
                return

    def _check(self, path: str, folder: _Folder) -> None:
        try:
            status = os.stat(path)  # noqa: PTH116 - for thousands of folders
        except OSError:
            self._drop(path)
            return
        if folder.stamp != (status.st_ino, status.st_ctime_ns):
            self._todo.append((path, folder.cold, folder.guarded))

    def _relist(self) -> None:
        self._todo.extend((path, folder.cold, folder.guarded) for path, folder in self._folders.items())

    def _list(self, path: str) -> None:
        folder = self._folders[path]
        try:
            before = os.lstat(path)
            if not stat.S_ISDIR(before.st_mode):
                self._drop(path)
                return
            with os.scandir(path) as entries:
                found = list(entries)
        except OSError:
            self._drop(path)
            return
        known = set(folder.folders)
        self._read(path, folder, found)
        settled = before.st_ctime_ns < time.time_ns() - SETTLED
        folder.stamp = (before.st_ino, before.st_ctime_ns) if settled else None
        for gone in known.difference(folder.folders):
            self._drop(gone)
        if folder.bare:
            self._telling.discard(path)
        else:
            self._telling.add(path)

    def _read(self, path: str, folder: _Folder, entries: list[os.DirEntry[str]]) -> None:
        """Sort the entries of one folder into its record."""
        folders: list[str] = []
        found = _Found()
        twins = self._twins
        for entry in entries:
            name = entry.name
            lower = name.lower() if name.isascii() else folded(name)
            telling = lower in _NAMES or lower.startswith(_HEADS) or lower.endswith(_ENDS)
            below = entry.is_dir(follow_symlinks=False)
            guarded = folder.guarded
            if telling or (twins and entry.inode() in twins):
                if below and lower == GIT:
                    found.git.append(entry.path)
                    continue
                guarded = self._sort(entry, found, guarded=guarded)
            if below:
                folders.append(entry.path)
                if entry.path not in self._folders:
                    self._todo.append((entry.path, folder.cold or lower in COLD, guarded))
        names = {entry.name for entry in entries if entry.name in _MARKS}
        if "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names):
            found.git.append(path)
        folder.folders, folder.secrets, folder.hidden = tuple(folders), tuple(found.secrets), tuple(found.hidden)
        if VENV in names and not folder.guarded:
            found.protected = [path]
        folder.protected = tuple(each for each in found.protected if not folder.cold or _is_installed(each, path))
        folder.git, folder.linked = tuple(found.git), None

    def _sort(self, entry: os.DirEntry[str], found: _Found, *, guarded: bool) -> bool:
        """Put one entry where it belongs; whether it lies in something protected, or is that."""
        below = entry.is_dir(follow_symlinks=False)
        (found.hidden if below else found.secrets).extend(self._secret(entry))
        if guarded:
            return True
        relative = self._relative(entry.path)
        if not is_protected(relative / "x" if below else relative) and (below or not respelled(Path(entry.path))):
            return False
        found.protected.append(entry.path)
        return True

    def _secret(self, entry: os.DirEntry[str]) -> Iterator[str]:
        """The file or folder that has to be hidden for an entry whose name may be that of a secret."""
        relative = self._relative(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if is_secret(relative / "x"):
                yield entry.path
            return
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode) and is_secret(relative):
                target = os.path.realpath(entry.path)
                if stat.S_ISREG(os.lstat(target).st_mode) and not target.startswith(_NOT_FILES):
                    yield from () if target in self._allowed else (target,)
            elif stat.S_ISREG(status.st_mode) and (is_secret(relative) or status.st_ino in self._twins):
                if status.st_nlink > 1:
                    self._twins.add(status.st_ino)
                yield from () if entry.path in self._allowed else (entry.path,)
        except OSError:
            return

    def _relative(self, path: str) -> Path:
        root = next((root for root in self._roots if path.startswith(f"{root}/")), None)
        return Path(path[len(str(root)) + 1 :]) if root else Path(path)

    def _drop(self, path: str) -> None:
        """Forget a folder and all below it."""
        folder = self._folders.pop(path, None)
        self._telling.discard(path)
        for below in folder.folders if folder else ():
            self._drop(below)

    def _findings(self, cost: float) -> ScanResult:
        found = [self._folders[path] for path in sorted(self._telling)]

        def every(lists: Iterable[tuple[str, ...]]) -> tuple[Path, ...]:
            return tuple(dict.fromkeys(Path(path) for paths in lists for path in paths))

        return ScanResult(
            every(folder.secrets for folder in found),
            every(folder.hidden for folder in found),
            (*every(folder.protected for folder in found), *filter(os.path.lexists, self._started)),
            every(folder.git for folder in found),
            complete=not self._todo,
            cost=cost,
        )


def _linked(folder: str) -> Iterator[_Linked]:
    """The files in ``folder`` that have several names."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_nlink > 1:
                        yield _Linked(entry.path, (status.st_dev, status.st_ino), status.st_nlink)
    except OSError:
        return


def _leaving(linked: Iterable[_Linked]) -> Iterator[Path]:
    """The files of which not every name was found."""
    names: dict[tuple[int, int], list[_Linked]] = {}
    for each in linked:
        names.setdefault(each.inode, []).append(each)
    for found in names.values():
        if len(found) < max(each.names for each in found):
            yield from (Path(each.path) for each in found)


def _is_installed(path: str, folder: str) -> bool:
    """Whether a protected path among dependencies counts: a virtual environment, or the programs of packages. Packages
    bring many other protected names, which nobody's tools look at there."""
    return path == folder or path.endswith("/node_modules/.bin")


def _outermost(roots: Iterable[Path]) -> tuple[Path, ...]:
    """``roots`` without those that lie in another one."""
    given = tuple(dict.fromkeys(roots))
    return tuple(root for root in given if not any(root != other and root.is_relative_to(other) for other in given))


def _keys_with_other_names(home: Path | None) -> Iterator[int]:
    """Inodes of the person's own keys that have more than one name: the other one may lie in the workspace."""
    if home is None:
        return
    for folder in (home, *(home / name for name in SECRET_FOLDERS)):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False) and is_secret(Path(entry.path)):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_nlink > 1:
                            yield status.st_ino
        except OSError:
            continue
