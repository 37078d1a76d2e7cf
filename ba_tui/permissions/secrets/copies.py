"""Masked copies on disk: what a confined command sees in place of a file with secrets.

A copy belongs to one state of its file. When the file has changed, the copy is made again before the next command, so a
change between the search and the start of a command shows nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from ba_tui.permissions.secrets.known import KnownSecrets
from ba_tui.permissions.secrets.masking import MaskedText, masked_places
from ba_tui.permissions.secrets.secret_files import masked_copy
from ba_tui.processes.scratch import make_scratch, scratch_path
from ba_tui.resources import process_runs

LARGEST = 1_000_000
"""Bytes of a file that is searched, or masked value by value."""
ATTEMPTS = 3
HIDDEN = "allow it with commands.read in your settings (ba config edit)"

FileStamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, time of the last change of the content, and of anything: nobody can set the last one back."""


def stamp_of(status: os.stat_result) -> FileStamp:
    """Return what tells one state of a file from another."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stamp_at(path: str | Path) -> FileStamp | None:
    """Return the stamp of a regular file; None for everything else, links too."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return stamp_of(status) if stat.S_ISREG(status.st_mode) else None


def read_stable(path: str | Path, most: int = LARGEST) -> tuple[os.stat_result, bytes] | None:
    """Return a regular file's status and content, which belong together; no content of a larger one than ``most``.
    None for what can't be read, is a link, or changes all the time."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for _ in range(ATTEMPTS):
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size > most:
                return status, b""
            data = os.pread(number, most + 1, 0)
            if stamp_of(os.fstat(number)) == stamp_of(status) and len(data) == status.st_size:
                return status, data
    except OSError:
        return None
    finally:
        os.close(number)
    return None


def save_copy(folder: Path, path: str | Path, status: os.stat_result, data: bytes) -> Path:
    """Write a copy that has the time of its file and is only the user's; return its path. Its name tells nothing."""
    name = hashlib.sha256(os.fsencode(path) + repr(stamp_of(status)).encode()).hexdigest()[:32]
    target, draft = folder / name, folder / f"{name}.{os.getpid()}-{threading.get_ident()}"
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(number, "wb") as file:
            file.write(data)
            # The rest of a large file is a hole, which takes no space.
            file.truncate(status.st_size)
        if status.st_mode & stat.S_IXUSR:
            draft.chmod(0o700)
        os.utime(draft, ns=(status.st_atime_ns, status.st_mtime_ns))
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return target


class MaskedCopies:
    """The copies of one session. ``folder`` makes the private folder that they lie in; what is replaced gets
    ``known``; ``shown`` names a file for people. Thread-safe. Blocks."""

    def __init__(self, folder: Callable[[], Path], known: KnownSecrets, shown: Callable[[Path], str]) -> None:
        self._folder = folder
        self._known = known
        self._shown = shown
        self._lock = threading.Lock()
        self._made: dict[Path, tuple[FileStamp, Path | None]] = {}

    def of_secret(self, path: Path) -> Path:
        """The copy of a file that is named as secret."""
        made = self._current(path, lambda data: masked_copy(data, path))
        return made or self._line(path)

    def of_rule(self, path: Path) -> Path:
        """A line in place of a file that a permission rule is about."""
        return self._line(path, "a permission rule is about reading it (ba permissions list)")

    def of_content(self, path: Path, stamp: FileStamp, copy: Path) -> Path | None:
        """The copy of another file, of which ``copy`` was made when it had this ``stamp``; None for one that holds no
        secret any more."""
        with self._lock:
            if stamp_at(path) == stamp and copy.exists():
                return copy
        made = self._current(path, masked_places)
        # What can't be read now may be what it was before.
        return made or (self._line(path) if self._made.get(path) is None and stamp_at(path) else None)

    def _current(self, path: Path, mask: Callable[[bytes], MaskedText | None]) -> Path | None:
        with self._lock:
            stamp, known = stamp_at(path), self._made.get(path)
            if stamp and known and known[0] == stamp and (known[1] is None or known[1].exists()):
                return known[1]
            read = read_stable(path)
            if read is None:
                self._made.pop(path, None)
                return None
            status, data = read
            made = mask(data) if status.st_size <= LARGEST else None
            if made:
                keep(self._known, made.values)
            copy = save_copy(self._folder(), path, status, made.data) if made else None
            if status.st_size > LARGEST:
                copy = save_copy(self._folder(), path, status, self._told(path))
            if known and known[1] and known[1] != copy:
                # Commands that run have it open.
                with suppress(OSError):
                    known[1].unlink()
            self._made[path] = (stamp_of(status), copy)
            return copy

    def _told(self, path: Path, why: str = HIDDEN) -> bytes:
        shown = self._shown(path)
        line = f"ba hides {shown!r}" if not shown.isprintable() or "'" in shown else f"ba hides {shown}"
        return f"{line}; {why}\n".encode()

    def _line(self, path: Path, why: str = HIDDEN) -> Path:
        """A line that says that the file is hidden, and why."""
        target = self._folder() / hashlib.sha256(os.fsencode(path) + b"\0" + why.encode()).hexdigest()[:32]
        if not target.exists():
            number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(number, "wb") as file:
                file.write(self._told(path, why))
        return target


def private_folder(base: Path | None) -> Path:
    """Make a folder for copies that only the user can read, in ``base`` or among temporary files. Folders in ``base``
    whose process has ended are removed first."""
    if base is None:
        return make_scratch(scratch_path("masks"))
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in base.iterdir():
        number = folder.name.partition("-")[0]
        if number.isdigit() and int(number) != os.getpid() and not process_runs(int(number)):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(os.path.realpath(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base)))


def keep(known: KnownSecrets, values: Iterable[tuple[str, str]]) -> None:
    """Add replaced values, each with its kind, to ``known``."""
    kinds: dict[str, list[str]] = {}
    for value, kind in values:
        kinds.setdefault(kind, []).append(value)
    for kind, each in kinds.items():
        known.add(each, kind)
