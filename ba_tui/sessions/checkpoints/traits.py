"""What git keeps of no file: its rights, empty folders, and how those looked that are too large to be kept.

Noted beside each checkpoint by shadow.py, and brought back by restoring.py.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.values import frozen

MOST = 20_000
"""Files beyond which nothing is noted: looking at each of them would hold up every turn."""
EXECUTABLE = b"100755"
FILES = (b"100644", EXECUTABLE)
PASSED = frozenset({".git", "node_modules", "bower_components", ".venv", "venv", "__pycache__"})


@frozen
class Traits:
    """``usual``: the rights of most plain and of most executable files; ``rights`` of those that have others.

    ``empty`` folders; ``unkept``: size and time of change of files that are not kept.
    """

    usual: tuple[int, int]
    rights: Mapping[str, int]
    empty: tuple[str, ...]
    unkept: Mapping[str, tuple[int, int]]

    def of(self, path: bytes, mode: bytes) -> int:
        """The rights of a file that has ``mode`` in a tree."""
        return self.rights.get(os.fsdecode(path), self.usual[mode == EXECUTABLE])

    def note(self) -> dict[str, Any]:
        return {"usual": self.usual, "rights": self.rights, "empty": self.empty, "unkept": self.unkept}


def read_traits(note: object) -> Traits | None:
    """Those of a checkpoint's note; None when it has none. Raises ValueError, TypeError or KeyError for other notes."""
    if not isinstance(note, dict):
        return None
    given = cast("dict[str, Any]", note)
    plain, runs = map(int, given["usual"])
    rights = {str(path): int(mode) for path, mode in given["rights"].items()}
    unkept = {str(path): (int(size), int(at)) for path, (size, at) in given["unkept"].items()}
    return Traits((plain, runs), rights, tuple(map(str, given["empty"])), unkept)


def look(root: Path, files: Iterable[tuple[bytes, bytes]], folders: Iterable[bytes], unkept: Iterable[str]) -> Traits:
    """The traits of ``files`` (mode and path in the tree), of the empty ones among ``folders``, and of ``unkept``."""
    found: dict[bytes, dict[str, int]] = {mode: {} for mode in FILES}
    for mode, path in files:
        if mode in found and (state := _state(root, name := os.fsdecode(path))) and stat.S_ISREG(state.st_mode):
            found[mode][name] = state.st_mode & 0o777
    usual = [_usual(found[mode].values(), otherwise) for mode, otherwise in zip(FILES, (0o644, 0o755), strict=True)]
    rights = {
        path: mode
        for group, most in zip(found.values(), usual, strict=True)
        for path, mode in group.items()
        if mode != most
    }
    states = {path: state for path in unkept if (state := _state(root, path))}
    return Traits(
        (usual[0], usual[1]),
        rights,
        tuple(sorted(_empty(root, folders))),
        {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()},
    )


def holds(files: Iterable[tuple[bytes, bytes]], folder: str) -> bool:
    """Whether one of ``files`` (mode and path in a tree) is in ``folder``."""
    return any(path.startswith(os.fsencode(folder) + b"/") for _, path in files)


def changed(root: Path, unkept: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Those of ``unkept`` that are not any more as they were."""
    for path, was in unkept.items():
        state = _state(root, path)
        if state is None or (state.st_size, state.st_mtime_ns) != was:
            yield path


def _state(root: Path, path: str) -> os.stat_result | None:
    try:
        return os.lstat(root / path)
    except OSError:
        return None


def _usual(rights: Iterable[int], otherwise: int) -> int:
    return next((mode for mode, _ in Counter(rights).most_common(1)), otherwise)


def _empty(root: Path, folders: Iterable[bytes]) -> Iterator[str]:
    left = MOST
    for folder in folders:
        for place, inner, files in os.walk(root / os.fsdecode(folder)):
            left -= 1
            if left < 0:
                return
            if not inner and not files:
                yield os.path.relpath(place, root)
            inner[:] = [name for name in inner if name not in PASSED]
