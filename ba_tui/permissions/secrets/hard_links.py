"""Whether a file contains secrets under its own name or, as a hard link, under another name.

No file is opened. ``paths`` defines which names are secret.
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
"""Folders of a workspace that are searched for secrets."""
DEEPEST = 4
"""Levels below a secret folder of the home folder."""
SETTLED = 2 * 10**9
"""Nanoseconds after which a change shows in a folder's time, also on file systems with whole seconds."""
RESTING = 10
"""Pause between searches as a multiple of a search's duration."""
_LAST = frozenset(folded(text.rpartition("/")[2]) for text in (*SECRET_TAILS, *SECRET_IN_HOME))


def holds_secret(path: Path, workspace: Workspace) -> bool:
    """Return whether ``path`` has a secret name, or its file has one nearby.

    Nearby: in the same folder, in a parent folder of the workspace, or among the keys in the home folder. Quick;
    ``secret_file`` searches everywhere.
    """
    return is_secret(path) or _is_twin(path, (workspace.root, *workspace.extra))


def secret_file(path: Path, status: os.stat_result, workspace: Workspace) -> bool:
    """Return whether the file at a resolved ``path`` contains secrets under any name in the workspace or home folder.

    ba's own keys count too. ``status`` is the file's. Blocks while folders are searched, only for files with several
    names.
    """
    if is_secret(path) or str(path) in map(os.path.realpath, places().secrets):
        return True
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - must not raise
    return (status.st_dev, status.st_ino) in _index((workspace.root, *workspace.extra), home).look(status.st_ctime_ns)


@frozen
class _SecretFolder:
    """The findings of one folder: its last change, the inodes of secrets, its folders."""

    changed: int
    secrets: frozenset[tuple[int, int]]
    below: tuple[str, ...]


class _Index:
    """Devices and inodes of the secret files below some folders. A folder is read again only if it has changed.
    Thread-safe."""

    def __init__(self, roots: tuple[Path, ...], home: Path) -> None:
        self._roots = roots
        self._home = home
        self._lock = threading.Lock()
        self._known: dict[str, _SecretFolder] = {}
        self._found: frozenset[tuple[int, int]] = frozenset()
        self._rests_until = float("-inf")
        self._looked = 0

    def look(self, changed: int) -> frozenset[tuple[int, int]]:
        """Return the current inodes of secrets.

        They may be up to ``RESTING`` searches old for a file with an unchanged ctime (``changed``, nanoseconds), since
        a new name changes that time.
        """
        with self._lock:
            begun = time.monotonic()
            if begun < self._rests_until and changed < self._looked - SETTLED:
                return self._found
            self._looked = time.time_ns()
            self._found = frozenset(inode for folder in self._folders() for inode in folder.secrets) | _own_keys()
            took = time.monotonic() - begun
            self._rests_until = begun + took * RESTING if took > 0.05 else 0.0
            return self._found

    def _folders(self) -> Iterator[_SecretFolder]:
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

    def _folder(self, path: str) -> _SecretFolder | None:
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


def _scanned(path: str, changed: int) -> _SecretFolder:
    secrets: list[tuple[int, int]] = []
    below: list[str] = []
    every = is_secret(PurePath(path, "any"))
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    below.append(entry.path)
            elif (every or (_possible(entry.name) and is_secret(PurePath(entry.path)))) and not entry.is_symlink():
                # Include files with one name: a name added elsewhere does not change this folder's time.
                status = entry.stat(follow_symlinks=False)
                secrets.append((status.st_dev, status.st_ino))
    return _SecretFolder(changed, frozenset(secrets), tuple(below))


@lru_cache(maxsize=16_384)
def _possible(name: str) -> bool:
    """Return whether a file of this name may be secret in an ordinary folder; judging a whole path takes much
    longer."""
    return is_secret(PurePath(name)) or folded(name) in _LAST


def _stores(home: Path) -> Iterator[tuple[str, int]]:
    """Yield folders with secrets outside of a workspace, and how deep to search them."""
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
    """Return the inodes of ba's own key files."""
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
