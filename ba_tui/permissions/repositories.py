"""What git would use and show from a folder: whose repository it is, and whether secrets are stored in it.

Nothing is run: a repository is known by its files. What is thought of that stands in ``judgement``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_NAMES, SECRET_TAILS, PathRefused, is_secret
from ba_tui.resources import read_regular

if TYPE_CHECKING:
    from ba_tui.permissions.rules import Seen

LARGEST_INDEX = 64_000_000
LONGEST_LINK = 4_096


def foreign_repository(place: Path, see: Callable[[str, Path], Sequence[Seen]]) -> bool:
    """Whether git would take its settings, in ``place``, from a repository that is not that of a workspace's folder.

    What has a ``HEAD`` may be a bare one, and a ``commondir`` sends git elsewhere; git needs little else.
    """
    place = Path(os.path.realpath(place))
    for folder in (place, *place.parents):
        try:
            seen = see(str(folder), folder)
        except PathRefused:
            return True
        if not any(each.inside for each in seen):
            return False
        if os.path.lexists(folder / "HEAD"):
            return True
        if os.path.lexists(folder / ".git"):
            own = any("." in each.places for each in seen)
            return not own or os.path.lexists(folder / ".git" / "commondir")
    return False


def stored_secret(place: Path) -> str:
    """The name of a file with secrets that git has among its files, seen from ``place``; empty when there is none."""
    for folder in (place, *place.parents):
        git = folder / ".git"
        try:
            if git.is_dir():
                return _in_index(git / "index")
            if git.is_file():
                link = read_regular(git, LONGEST_LINK).decode().removeprefix("gitdir:").strip()
                return _in_index(folder / link / "index")
        except (OSError, ValueError):
            return ""
    return ""


def _in_index(index: Path) -> str:
    try:
        status = index.stat()
    except FileNotFoundError:
        return ""
    return _secret_of(index, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _secret_of(index: Path, changed: int, size: int) -> str:
    """``changed`` and ``size`` tell one state of the file from the next."""
    del changed, size
    data = read_regular(index, LARGEST_INDEX)
    for match in _names().finditer(data):
        name, start = match[1], match.start(1)
        # In front of a name stands its folder, or its length where it has none.
        whole = data[start - 1 : start] in (b"/", bytes([len(name) & 0xFF]))
        if (whole or name.startswith(b"*")) and is_secret(PurePath(os.fsdecode(name))):
            return os.fsdecode(name)
    return ""


@lru_cache(maxsize=1)
def _names() -> re.Pattern[bytes]:
    tails = [tail for tail in SECRET_TAILS if tail[0] != "/"]
    texts = (*SECRET_NAMES, *(f"{folder}/**" for folder in SECRET_FOLDERS), *tails)
    made = (re.escape(text.encode()).replace(rb"\*\*", rb"[^\0]*").replace(rb"\*", rb"[^/\0]*") for text in texts)
    return re.compile(rb"(" + rb"|".join(made) + rb")\0")
