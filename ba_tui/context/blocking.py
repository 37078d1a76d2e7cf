"""Ignore files that are pipes: ripgrep waits at them for ever, so whoever runs it and hears nothing asks here.

What is done then (another search, another list) is the asker's business.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Event

NAMES = (".gitignore", ".ignore", ".rgignore")
MOST = 100_000
"""Folders that are looked into."""


def ignoring_pipe(place: Path, stop: Event | None = None) -> Path | None:
    """One that holds for ``place`` or lies below it; None when there is none. Takes as long as a walk; ``stop`` ends
    it."""
    for count, folder in enumerate(_folders(place)):
        if count >= MOST or (stop and stop.is_set()):
            return None
        for name in NAMES:
            file = os.path.join(folder, name)  # noqa: PTH118 - a walk's inner loop
            if _pipe(file):
                return Path(file)
    return None


def _folders(place: Path) -> Iterator[str]:
    yield from map(str, place.parents)
    for folder, below, _ in os.walk(place):
        below[:] = [name for name in below if name != ".git"]
        yield folder


def _pipe(file: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(file).st_mode)  # noqa: PTH116 - a walk's inner loop
    except OSError:
        return False
