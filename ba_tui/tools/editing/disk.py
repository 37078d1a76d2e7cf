"""Reads and writes files: bounded, atomic, never through a symbolic link, never over a file that changed meanwhile.

The caller checks before which paths are allowed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.resources import WholeFile, parent_folder, temporary_name, unfinished
from ba_tui.tools.editing.seen_files import CHANGED_HINT
from ba_tui.tools.failures import ToolFailure, from_os

MAX_BYTES = 20_000_000
"""Bytes of the largest file that is read whole or edited."""
COPIED = 1 << 20


@contextmanager
def opened(path: Path, shown: str, workspace: Workspace | None = None) -> Generator[BinaryIO]:
    """Open the regular file at the resolved ``path``. A link at that path is refused, and so is a hard link to a secret
    file of ``workspace`` or the home folder.

    Raises:
        ToolFailure: it is missing, may not be read, or is a folder, a link, a pipe or a device.
    """
    with _in_words(shown):
        with parent_folder(path) as folder:
            file = _open_regular(folder, path.name, shown)
        with file:
            if workspace and secret_file(path, os.fstat(file.fileno()), workspace):
                message = f"{shown} is a name of a file that holds secrets, which are neither read nor written."
                raise ToolFailure("permission_denied", message, "Work without it, or ask the user.")
            yield file


def read_bytes(path: Path, shown: str, workspace: Workspace | None = None) -> bytes:
    """Return the content of a file of at most MAX_BYTES. Raises ToolFailure for a larger file, and as ``opened``
    does."""
    with opened(path, shown, workspace) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        message = f"{shown} is larger than {MAX_BYTES // 1_000_000} MB."
        raise ToolFailure("resource_error", message, "Read a part of it, or change it with a shell command.")
    return data


@frozen
class Content:
    """The new content of a file. ``mode``: permissions of a new file; None for the default."""

    data: bytes
    mode: int | None = None


def write_bytes(path: Path, data: bytes | Content, *, before: bytes | None, shown: str) -> int:
    """Write ``data`` to the resolved ``path`` atomically. ``before``: the content that the file must still have; None
    for a new file. Return the number of other hard links, which keep the old content.

    Raises:
        ToolFailure: it holds something else by now, or cannot be written; the old content is then untouched.
    """
    with _in_words(shown):
        temporary = path.with_name(temporary_name(path.name))
        content = data if isinstance(data, Content) else Content(data)
        with parent_folder(path, make=before is None) as folder, unfinished(temporary):
            return _replace(folder, (temporary.name, path.name), content, before, shown)


def place_file(source: Path, path: Path, *, overwrite: bool, shown: str) -> int:
    """Copy the file ``source`` to the resolved ``path`` atomically and return its size in bytes.

    Raises:
        ToolFailure: the file exists and ``overwrite`` is False, or it can't be written; the old file is unchanged.
    """
    with _in_words(shown):
        names = temporary_name(path.name), path.name
        temporary = path.with_name(names[0])
        with open(source, "rb") as given, parent_folder(path, make=True) as folder, unfinished(temporary):
            old = _standing(folder, path.name, shown)
            with _temporary(folder, names, (old, None), shown) as file:
                shutil.copyfileobj(given, file, COPIED)
                _finish(file)
                if overwrite or not _linked(folder, *names):
                    os.rename(*names, src_dir_fd=folder, dst_dir_fd=folder)
                return file.tell()


def copy_beside(source: Path, path: Path, name: str, shown: str) -> None:
    """Copy the file ``source`` into the folder of the resolved ``path`` as ``name``, with the permissions of the
    file at ``path``. The caller removes the copy, also after an error. Raises ToolFailure."""
    with _in_words(shown), open(source, "rb") as given, parent_folder(path, make=True) as folder:
        old = _standing(folder, path.name, shown)
        with _new_file(folder, (name, path.name), (old, None), shown) as file:
            shutil.copyfileobj(given, file, COPIED)
            _finish(file)


def exchange(path: Path, new: str, aside: str, shown: str) -> None:
    """Rename the file ``new`` to the resolved ``path``; the file there is first renamed to ``aside``, in the same
    folder. Raises ToolFailure."""
    with _in_words(shown), parent_folder(path) as folder:
        if _standing(folder, path.name, shown) and not _linked(folder, path.name, aside):
            os.rename(path.name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        with suppress(OSError):
            _sync_folder(folder)


def digest_of(path: Path, shown: str) -> str:
    """Return the SHA-256 of the file at the resolved ``path``, of any size; empty if there is none. Raises
    ToolFailure as ``opened`` does."""
    if not os.path.lexists(path):
        return ""
    digest = hashlib.sha256()
    with opened(path, shown) as file:
        while piece := file.read(COPIED):
            digest.update(piece)
    return digest.hexdigest()


def _standing(folder: int, name: str, shown: str) -> os.stat_result | None:
    """Return the status of the regular file of this name; None if there is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _regular(status, shown)
    return status


@contextmanager
def set_aside(path: Path, *, before: bytes, shown: str) -> Generator[Path]:
    """Rename the file at ``path`` to a temporary name and yield that. The block must restore or remove the file.

    Raises:
        ToolFailure: its content is not ``before``.
    """
    aside = path.with_name(temporary_name(path.name))
    with unfinished(aside, path):
        with _in_words(shown), parent_folder(path) as folder:
            if _held(folder, path.name, shown) != before:
                raise ToolFailure("validation_error", f"{shown} was changed by someone else just now.", CHANGED_HINT)
            os.rename(path.name, aside.name, src_dir_fd=folder, dst_dir_fd=folder)
        yield aside


def bring_back(aside: Path, path: Path, shown: str) -> None:
    """Undo ``set_aside``. Raises ToolFailure if another file is at ``path`` by now."""
    with _in_words(shown), parent_folder(path) as folder:
        if not _linked(folder, aside.name, path.name):
            os.rename(aside.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        os.unlink(aside.name, dir_fd=folder)


def discard(aside: Path) -> None:
    """Remove a file that was set aside."""
    with suppress(OSError), parent_folder(aside) as folder:
        os.unlink(aside.name, dir_fd=folder)


def mode_of(path: Path, shown: str) -> int:
    """Return the permissions of a file. Raises ToolFailure as ``opened`` does."""
    with opened(path, shown) as file:
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def _replace(folder: int, names: tuple[str, str], content: Content, before: bytes | None, shown: str) -> int:
    temporary, name = names
    old = os.stat(name, dir_fd=folder, follow_symlinks=False) if before is not None else None
    with _temporary(folder, names, (old, content.mode), shown) as file:
        file.write(content.data)
        _finish(file)
        if _held(folder, name, shown) != before:
            raise ToolFailure("validation_error", f"{shown} was changed by someone else just now.", CHANGED_HINT)
        if before is not None or not _linked(folder, temporary, name):
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    return old.st_nlink - 1 if old else 0


@contextmanager
def _temporary(
    folder: int, names: tuple[str, str], rights: tuple[os.stat_result | None, int | None], shown: str
) -> Generator[BinaryIO]:
    """Open a new file as ``_new_file`` does, and remove it afterwards unless it was renamed."""
    try:
        with _new_file(folder, names, rights, shown) as file:
            yield file
    finally:
        # After the rename no later error may suggest that the file was not written.
        with suppress(OSError):
            os.unlink(names[0], dir_fd=folder)
    with suppress(OSError):
        _sync_folder(folder)


@contextmanager
def _new_file(
    folder: int, names: tuple[str, str], rights: tuple[os.stat_result | None, int | None], shown: str
) -> Generator[BinaryIO]:
    """Create a file with the first of ``names`` and the permissions of the file that it replaces, or those of a
    mode."""
    temporary, name = names
    old, mode = rights
    if old and not (old.st_mode & 0o222 and os.access(name, os.W_OK, dir_fd=folder)):
        hint = "Leave it as it is, or have its rights changed first (chmod u+w)."
        raise ToolFailure("execution_error", f"{shown} is read-only.", hint)
    number = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
    )
    with open(number, "wb") as file:
        if old:
            _keep_marks(folder, name, number)
            _keep_owner(old, number)
        elif mode is not None:
            os.fchmod(number, mode)
        yield file


def _finish(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _linked(folder: int, temporary: str, name: str) -> bool:
    """Link a new file to its name unless that exists; return False on file systems without hard links."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        return False
    return True


def _held(folder: int, name: str, shown: str) -> bytes | None:
    try:
        with _open_regular(folder, name, shown) as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None


def _keep_owner(old: os.stat_result, number: int) -> None:
    new = os.fstat(number)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(PermissionError):
            os.fchown(number, old.st_uid, old.st_gid)
    os.fchmod(number, stat.S_IMODE(old.st_mode))


def _keep_marks(folder: int, name: str, number: int) -> None:
    """Copy access lists and extended attributes of a file, except those that grant a program further rights."""
    if sys.platform != "linux":
        return
    with suppress(OSError), open(name, "rb", opener=partial(os.open, dir_fd=folder)) as file:
        for mark in os.listxattr(file.fileno()):
            if mark.startswith("user.") or mark in {"system.posix_acl_access", "security.selinux"}:
                with suppress(OSError):
                    os.setxattr(number, mark, os.getxattr(file.fileno(), mark))


def _sync_folder(folder: int) -> None:
    number = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _open_regular(folder: int, name: str, shown: str) -> BinaryIO:
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        _regular(os.fstat(number), shown)
        return BufferedReader(WholeFile(number))
    except BaseException:
        os.close(number)
        raise


def _regular(status: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure("validation_error", f"{shown} is a folder.", "Use list_files for folders.")
    if not stat.S_ISREG(status.st_mode):
        raise no_file(shown)


def no_file(shown: str) -> ToolFailure:
    """Return the error for a path that is neither a file nor a folder."""
    return ToolFailure("validation_error", f"{shown} is a pipe, socket or device, not a file.")


@contextmanager
def _in_words(shown: str) -> Generator[None]:
    """Raise errors of the operating system on the file ``shown`` as ToolFailure."""
    try:
        yield
    except OSError as error:
        raise _worded(error, shown) from error


def _worded(error: OSError, shown: str) -> ToolFailure:
    if error.errno in {errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV, errno.EAGAIN}:
        return no_file(shown)
    if error.errno in {errno.ELOOP, errno.EMLINK}:
        return ToolFailure("permission_denied", f"{shown} became a symbolic link.", "Name the file itself.")
    if isinstance(error, NotADirectoryError):
        return ToolFailure("not_found", f"A part of the path {shown} is a file or a link, not a folder.")
    if isinstance(error, IsADirectoryError):
        return ToolFailure("validation_error", f"{shown} is a folder.", "Use list_files for folders.")
    if isinstance(error, FileExistsError):
        return ToolFailure("validation_error", f"{shown} was created by someone else just now.", CHANGED_HINT)
    return from_os(error, shown)
