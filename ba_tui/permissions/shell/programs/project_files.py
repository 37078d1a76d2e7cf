"""Files of a project that change what programs do: what they load whatever they are told, and programs of its own.

Nothing is run; what is thought of that stands in ``judgement``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ba_tui.resources import read_regular

_LARGEST = 1_000_000


def lying(patterns: Sequence[str], folder: Path, root: Path) -> str:
    """The name of a file that fits one of ``patterns`` in ``folder`` or above it up to ``root``, and says what stands
    behind a ``~`` there."""
    above = [place for place in folder.parents if place.is_relative_to(root)]
    for place in (folder, *above):
        for pattern in patterns:
            name, _, said = pattern.partition("~")
            if any(place.glob(name)) if "*" in name else (place / name).exists() and _says(place / name, said):
                return name
    return ""


def _says(file: Path, said: str) -> bool:
    try:
        return not said or bool(re.search(said, read_regular(file, _LARGEST).decode("utf-8", "replace")))
    except OSError:
        return True


def shadowed(name: str, root: Path) -> bool:
    """Whether the search for a program finds one of the workspace first."""
    search = _search(os.environ.get("PATH", ""), str(root))
    place = next((place for place in search if os.path.lexists(f"{root}/{place}/{name}")), "") if search else ""
    return bool(place)


@lru_cache(maxsize=8)
def _search(path: str, root: str) -> tuple[str, ...]:
    """The places of ``path``, from the root of the workspace, that lie in there."""
    places = (
        os.path.relpath(place or ".", root) if place.startswith("/") else place for place in path.split(os.pathsep)
    )
    return tuple(place for place in places if place != ".." and not place.startswith("../"))
