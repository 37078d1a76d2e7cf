"""The files in the folder of a kernel. For both sides: one sees what a call wrote, the app lists all."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 1_000


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the regular files of ``folder`` by their paths in it, hidden ones aside: bytes, and when each was changed.

    Blocks. At most ``MOST`` of them; links are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(above, name)
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            try:
                status = path.stat()
            except OSError:
                continue
            found[path.relative_to(folder).as_posix()] = (status.st_size, status.st_mtime_ns)
            if len(found) >= MOST:
                return found
    return found
