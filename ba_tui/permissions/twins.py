"""Whether a file holds secrets, under its own name or, as a hard link, under that of another one.

Which names are secret stands in ``paths``; nothing is opened here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ba_tui.permissions.paths import SECRET_FOLDERS, Workspace, is_secret


def holds_secret(path: Path, workspace: Workspace) -> bool:
    """Whether ``path`` is called as secrets are, or its file has another such name: beside it, in a folder of the
    workspace above it, or among the keys in the home folder. Other places would take a search of the whole disk."""
    return is_secret(path) or _is_twin(path, (workspace.root, *workspace.extra))


def _is_twin(path: Path, roots: tuple[Path, ...]) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - this is done for every word of a command
    except (OSError, ValueError):
        return False
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - must not raise
    above = [folder for folder in path.parents if any(folder.is_relative_to(root) for root in roots)]
    places = dict.fromkeys((*above, *roots, home))
    return any(_holds(folder, status) for place in places for folder in (place, *_stores(place)))


def _stores(folder: Path) -> Iterator[Path]:
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
