"""Temporary folders of this process. A later start of ba removes those of killed processes.

A folder is locked while its process lives, and gets its final name only when locked: a named folder without a lock is
abandoned, whatever its age. This also works where processes cannot see each other (containers that share the folder).
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ba_tui.core.text.patterns import regex
from ba_tui.shared_files import take_lock

ScratchKind: TypeAlias = Literal[
    "data", "demo", "masks", "memory", "merge", "python", "report", "run", "skill", "stdin", "tmp", "tokens", "trial"
]
_NAME = regex(rf"ba-(?:{'|'.join(get_args(ScratchKind))})-[0-9a-f]{{16}}(\.new)?")
_NEW = ".new"
_MAKING = 60.0
"""Seconds after which an unlocked new folder counts as abandoned."""
_held: dict[Path, int] = {}
_lock = threading.Lock()


def scratch_path(kind: ScratchKind) -> Path:
    """Return an unused path; ``make_scratch`` creates the folder."""
    return Path(os.path.realpath(tempfile.gettempdir()), f"ba-{kind}-{secrets.token_hex(8)}")


def make_scratch(path: Path) -> Path:
    """Create the folder, private to the user, unless it exists. Raises OSError."""
    with _lock:
        if not path.is_dir():
            new = path.with_name(f"{path.name}{_NEW}")
            new.mkdir(mode=0o700, parents=True)
            try:
                held = _locked(new)
            except BlockingIOError:
                new.rmdir()
                raise
            except OSError:
                # Without locks, no folder ever counts as abandoned.
                held = None
            new.rename(path)
            if held is not None:
                _held[path] = held
    return path


def remove_scratch(path: Path) -> None:
    """Remove a folder of this process. Blocks."""
    _remove(path)
    with _lock:
        held = _held.pop(path, None)
    if held is not None:
        os.close(held)


@contextmanager
def scratch(kind: ScratchKind) -> Generator[Path]:
    """Create a folder and remove it at the end of the block. Raises OSError."""
    path = make_scratch(scratch_path(kind))
    try:
        yield path
    finally:
        remove_scratch(path)


def clear_scratch() -> list[Path]:
    """Remove the user's abandoned folders and return their paths. Follows no links. Blocks."""
    cleared: list[Path] = []
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in [entry for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                making = entry.name.endswith(_NEW) and time.time() - found.st_mtime < _MAKING
                if found.st_uid == os.geteuid() and not making:
                    held = _locked(Path(entry.path))
                    try:
                        _remove(Path(entry.path))
                    finally:
                        os.close(held)
                    cleared.append(Path(entry.path))
    return cleared


def _locked(folder: Path) -> int:
    """Return a locked descriptor of ``folder``. Raises OSError if it is locked elsewhere, locks are unsupported, or it
    is not a folder."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not take_lock(held):
            raise BlockingIOError(errno.EAGAIN, "another process uses it", str(folder))
    except BaseException:
        os.close(held)
        raise
    return held


def _remove(folder: Path) -> None:
    """Remove a folder, even if a command removed the user's own rights."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for path, _, _ in os.walk(folder):
            with suppress(OSError):
                Path(path).chmod(0o700)
                for inner in Path(path).iterdir():
                    if inner.is_dir() and not inner.is_symlink():
                        inner.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
