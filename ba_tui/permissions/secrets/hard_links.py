"""Whether a file holds secrets, under its own name or, as a hard link, under that of another one.

Which names are secret stands in ``paths``; nothing is opened here.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePath

from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_IN_HOME, SECRET_TAILS, Workspace, folded, is_secret
from ba_tui.resources import places

MOST_FOLDERS = 50_000
"""Folders of a workspace that are looked through for secrets."""
DEEPEST = 4
"""Levels below a folder of the home that holds secrets."""
SETTLED = 2 * 10**9
"""Nanoseconds after which a change shows in the time of a folder: some file systems keep whole seconds."""
RESTING = 10
"""How many times as long as a look took, nobody looks again."""
_LAST = frozenset(folded(text.rpartition("/")[2]) for text in (*SECRET_TAILS, *SECRET_IN_HOME))


def holds_secret(path: Path, workspace: Workspace) -> bool:
    """Whether ``path`` is called as secrets are, or its file has another such name: beside it, in a folder of the
    workspace above it, or among the keys in the home folder. Quick; ``secret_file`` looks everywhere."""
    return is_secret(path) or _is_twin(path, (workspace.root, *workspace.extra))


def secret_file(path: Path, status: os.stat_result, workspace: Workspace) -> bool:
    """Whether the file at a resolved ``path``, which has this status, holds secrets under this or any other name in the
    workspace or the home folder; ba's own keys are secrets too. Blocks while folders are looked through, which only
    files with several names need."""
    if is_secret(path) or str(path) in map(os.path.realpath, places().secrets):
        return True
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - must not raise
    return (status.st_dev, status.st_ino) in _index((workspace.root, *workspace.extra), home).look(status.st_ctime_ns)


@frozen
class _Folder:
    """What was found in one folder: when it had changed last, the inodes of secrets, folders."""

    changed: int
    secrets: frozenset[tuple[int, int]]
    below: tuple[str, ...]


class _Index:
    """Devices and inodes of the secret files below some folders. A folder is read again only when
    it has changed. Any thread."""

    def __init__(self, roots: tuple[Path, ...], home: Path) -> None:
        self._roots = roots
        self._home = home
        self._lock = threading.Lock()
        self._known: dict[str, _Folder] = {}
        self._found: frozenset[tuple[int, int]] = frozenset()
        self._rests_until = float("-inf")
        self._looked = 0

    def look(self, changed: int) -> frozenset[tuple[int, int]]:
        """What there is. It may be up to ``RESTING`` looks old for a file that was the same at the last look, by
        ``changed``, nanoseconds: a new name of a file changes that time."""
        with self._lock:
            begun = time.monotonic()
            if begun < self._rests_until and changed < self._looked - SETTLED:
                return self._found
            self._looked = time.time_ns()
            self._found = frozenset(inode for folder in self._folders() for inode in folder.secrets) | _own_keys()
            took = time.monotonic() - begun
            self._rests_until = begun + took * RESTING if took > 0.05 else 0.0
            return self._found

    def _folders(self) -> Iterator[_Folder]:
        seen: set[str] = set()
        for folder, depth in (*((str(root), MOST_FOLDERS) for root in self._roots), *_stores(self._home)):
            pending = [(folder, depth)]
            while pending and len(seen) < MOST_FOLDERS:
                here, left = pending.pop()
                if here in seen or (known := self._folder(here)) is None:
                    continue
                seen.add(here)
                yield known
                if left:
                    pending += [(below, left - 1) for below in known.below]

    def _folder(self, path: str) -> _Folder | None:
        try:
            changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - a walk's inner loop
            known = self._known.get(path)
            if known is None or known.changed != changed:
                known = _scanned(path, changed if changed < time.time_ns() - SETTLED else -1)
                self._known[path] = known
        except OSError:
            self._known.pop(path, None)
            return None
        return known


@lru_cache(maxsize=8)
def _index(roots: tuple[Path, ...], home: Path) -> _Index:
    return _Index(roots, home)


def _scanned(path: str, changed: int) -> _Folder:
    secrets: list[tuple[int, int]] = []
    below: list[str] = []
    every = is_secret(PurePath(path, "any"))
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    below.append(entry.path)
            elif (every or (_possible(entry.name) and is_secret(PurePath(entry.path)))) and not entry.is_symlink():
                # Also those with one name: another name, made elsewhere, does not change the time of this folder.
                status = entry.stat(follow_symlinks=False)
                secrets.append((status.st_dev, status.st_ino))
    return _Folder(changed, frozenset(secrets), tuple(below))


@lru_cache(maxsize=16_384)
def _possible(name: str) -> bool:
    """Whether a file of this name may be secret in an ordinary folder: the whole path takes much longer to judge."""
    return is_secret(PurePath(name)) or folded(name) in _LAST


def _stores(home: Path) -> Iterator[tuple[str, int]]:
    """Where secrets lie outside of a workspace, and how many levels deep."""
    yield str(home), 0
    yield "/etc", 0
    for name in SECRET_FOLDERS:
        yield str(home / name), DEEPEST
    yield str(home / ".local" / "share" / "keyrings"), DEEPEST
    for tail in SECRET_TAILS:
        if not tail.startswith("/"):
            folder, _, last = tail.rpartition("/")
            yield str(home / folder), DEEPEST if last == "**" else 0


def _own_keys() -> frozenset[tuple[int, int]]:
    """ba's own files of keys."""
    found: set[tuple[int, int]] = set()
    for path in places().secrets:
        with suppress(OSError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _is_twin(path: Path, roots: tuple[Path, ...]) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - this is done for every word of a command
    except (OSError, ValueError):
        return False
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - must not raise
    above = [folder for folder in path.parents if any(folder.is_relative_to(root) for root in roots)]
    around = dict.fromkeys((*above, *roots, home))
    return any(_holds(folder, status) for place in around for folder in (place, *_beside(place)))


def _beside(folder: Path) -> Iterator[Path]:
    return (folder / name for name in SECRET_FOLDERS)


def _holds(folder: Path, status: os.stat_result) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(
                entry.inode() == status.st_ino
                and is_secret(Path(entry.path))
                and entry.stat(follow_symlinks=False).st_dev == status.st_dev
                for entry in entries
            )
    except OSError:
        return False
