"""What git would use and show from a folder: whose repository it is, and whether secrets are stored in it.

Nothing is run: a repository is known by its files. What is thought of that stands in ``judgement``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.permissions.paths import PathRefused, TouchedPath

LARGEST_INDEX = 64_000_000
LONGEST_LINK = 4_096


def foreign_repository(place: Path, see: Callable[[str, Path], Sequence[TouchedPath]]) -> bool:
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
