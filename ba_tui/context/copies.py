"""Files from elsewhere, copied to where a session keeps what came with its prompts; and how large a file is.

What is done with them is in ``attachments``.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.text.wording import byte_size

LARGEST = 100_000_000
NAMES = 1_000


def copied(path: Path, folder: Path) -> Path:
    """``path`` in ``folder``, under a name of its own; the same content is not copied twice."""
    size = path.stat().st_size
    if not path.is_file():
        raise OSError("only single files can be attached from elsewhere")
    if size > LARGEST:
        raise OSError(f"it has {size:,} bytes; at most {LARGEST:,} are copied")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place in _names(folder, path):
        if not os.path.lexists(place):
            with path.open("rb") as source, place.open("xb") as copy:
                shutil.copyfileobj(source, copy)
            place.chmod(0o600)
            return place
        if filecmp.cmp(place, path, shallow=False):
            return place
    raise OSError("there are too many of that name")


def _names(folder: Path, path: Path) -> Iterator[Path]:
    yield folder / path.name
    yield from (folder / f"{path.stem}-{number}{path.suffix}" for number in range(2, NAMES))


def stamp(path: Path | None) -> tuple[int, int]:
    """Its time and size, by which it is known whether it has changed; zeros for none."""
    if path is None:
        return 0, 0
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


def size_in_words(path: Path) -> str:
    return byte_size(stamp(path)[1])
