"""Folders of ba, the user and the project, and safe ways to open and save files.

Mostly standard library, because the first paint needs this module.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.errors import StorageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.shared_files import take_lock

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MARKS = (".ba", ".git", "pyproject.toml")
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
UNFINISHED = "unfinished"
UNLOCKED = 60.0
"""Seconds after which a note that cannot be locked may be from a dead process."""
TEMPORARY = regex(r"\..{0,100}\.ba-[0-9a-f]{8}\.tmp", re.DOTALL)


@frozen
class UserFolders:
    """The user's folders; they may not exist. ``home`` is ``$BA_HOME`` if set, and then contains all others."""

    config: Path
    data: Path
    cache: Path
    state: Path
    home: Path | None = None

    @property
    def settings(self) -> Path:
        return self.config / "config.yaml"

    @property
    def keys(self) -> Path:
        return self.config / "keys.yaml"

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Return ba's files with secrets: model keys, variables of MCP servers, logins to those."""
        return tuple(self.config / name for name in ("keys.yaml", "mcp.yaml", "mcp-tokens.yaml"))

    @property
    def approvals(self) -> Path:
        return self.config / "approvals.yaml"

    @property
    def trusted(self) -> Path:
        return self.config / "trusted.yaml"

    @property
    def vouched(self) -> Path:
        """Return the folder with the trusted content of the folders in ``trusted``, to show later changes."""
        return self.state / "trusted"

    @property
    def written(self) -> Path:
        """Return the record of files that tools wrote and the user has not accepted."""
        return self.state / "written"

    @property
    def set_aside(self) -> Path:
        """Return the folder for protected files that appeared while commands ran and that the user moved away, by
        workspace."""
        return self.state / "set-aside"

    @property
    def sessions(self) -> Path:
        return self.data / "sessions"

    @property
    def checkpoints(self) -> Path:
        return self.data / "checkpoints"

    @property
    def memory(self) -> Path:
        return self.data / "memory"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def dotenv(self) -> Path:
        return self.state / ".env"


def places(env: Mapping[str, str] | None = None) -> UserFolders:
    """Return ``$BA_HOME`` for everything, or else the platform's folders. Does not access the disk."""
    env = os.environ if env is None else env
    if chosen := env.get("BA_HOME", "").strip():
        home = Path(os.path.abspath(_expanded(chosen)))  # noqa: PTH100 - resolve() would follow links of a folder to be made
        return UserFolders(home, home, home / "cache", home, home)
    import platformdirs  # noqa: PLC0415 - 10 ms that $BA_HOME saves

    dirs = platformdirs.PlatformDirs("ba", appauthor=False)
    return UserFolders(dirs.user_config_path, dirs.user_data_path, dirs.user_cache_path, dirs.user_state_path)


def _expanded(text: str) -> Path:
    with suppress(RuntimeError):
        return Path(text).expanduser()
    return Path(text)


def bundled(name: str) -> Path:
    """Return a folder that ships with ba (``config``, ``skills``, ``themes``): in the wheel, or else in the
    checkout."""
    here = Path(__file__).resolve().parent
    packed = here / "_bundled" / name
    return packed if packed.exists() else here.parent / name


def user_home() -> Path | None:
    """Return the user's home folder; None if there is none (containers without a user entry)."""
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return None


def project_root(cwd: Path) -> Path:
    """Return the nearest folder upwards with a project mark, never above ``$HOME``; otherwise ``cwd``."""
    cwd = cwd.resolve()
    home = user_home()
    for folder in (cwd, *cwd.parents):
        if home is not None and folder in home.parents:
            break
        if any(os.path.exists(folder / mark) for mark in MARKS):  # noqa: PTH110 - False also without rights
            return folder
        if folder == home:
            break
    return cwd


def there(path: Path) -> bool:
    """Return whether a path exists; also True if that cannot be determined."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def folder_slug(folder: Path) -> str:
    """Return a recognisable, unique name for ``folder``: ``sales-report-1f0c2ab9``."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", folder.name).strip("-").lower()[:40]
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    return f"{words or 'root'}-{digest}"


def read_regular(path: Path, limit: int) -> bytes:
    """Return at most ``limit`` bytes of a regular file. Raises OSError for pipes and devices instead of blocking."""
    with open_regular(path) as file:
        return file.read(limit)


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises as ``read_regular``."""
    return _regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path)


def open_unlinked(path: Path) -> BufferedReader:
    """Open the regular file at a resolved ``path``. Raises OSError if it, or a folder above it, is now a link, so that
    the checked file is the opened one."""
    with parent_folder(path) as folder:
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    return _regular(handle, path)


def _regular(handle: int, path: Path) -> BufferedReader:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return BufferedReader(WholeFile(handle))


@contextmanager
def parent_folder(path: Path, *, make: bool = False) -> Generator[int]:
    """Open the folder of a resolved path, step by step from the root, so that no link can be inserted."""
    number = os.open(path.anchor, _FOLDER)
    made: list[Path] = []
    try:
        for depth, part in enumerate(path.parent.parts[1:], 2):
            try:
                below = os.open(part, _FOLDER, dir_fd=number)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=number)
                    made.append(Path(*path.parts[:depth]))
                below = os.open(part, _FOLDER, dir_fd=number)
            os.close(number)
            number = below
        yield number
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise
    finally:
        os.close(number)


class WholeFile(FileIO):
    """A file that is read to its end. Some files in /proc deliver data late: these raise instead of returning None."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        count = super().readinto(buffer)
        if count is None:
            raise BlockingIOError(errno.EAGAIN, "its content comes bit by bit, as from a device")
        return count


def open_places() -> UserFolders:
    """Return ``places`` after checking access. Raises StorageError; missing and read-only folders are allowed."""
    where = places()
    for folder in (where.config, where.data, where.state):
        try:
            with os.scandir(folder):
                pass
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            hint = "Check its permissions, or set BA_HOME to a folder of yours."
            raise StorageError(f"{folder} cannot be read: {error.strerror or error}.", hint) from error
    return where


def temporary_name(name: str) -> str:
    """Return a temporary file name next to ``name``, as ``unfinished`` expects it."""
    return f".{name[:100]}.ba-{secrets.token_hex(4)}.tmp"


@contextmanager
def unfinished(temporary: Path, original: Path | None = None) -> Generator[None]:
    """Keep a locked note of ``temporary`` during the block, so that the next start removes the file if ba is killed.
    With ``original``, the temporary is a file of the user that was set aside, and gets that name back instead."""
    entry = places().state / UNFINISHED / f"{os.getpid()}-{temporary.name[-12:-4]}"
    note = -1
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = os.open(entry, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            take_lock(note, wait=math.inf)
        os.write(note, b"\0".join(map(os.fsencode, (temporary, original or ""))))
    except OSError:
        # Without a note, the file is only not cleaned up after a kill.
        pass
    try:
        yield
    finally:
        with suppress(OSError):
            entry.unlink()
        with suppress(OSError):
            os.close(note)


def clear_unfinished(where: UserFolders) -> list[Path]:
    """Remove temporary files of killed processes, restore files that they set aside, and return the paths. Touches only
    files that are noted, named and owned as ours."""
    cleared: list[Path] = []
    with suppress(OSError):
        for entry in sorted((where.state / UNFINISHED).iterdir()):
            with suppress(OSError, ValueError), open_regular(entry) as note:
                if abandoned(note.fileno(), int(entry.name.partition("-")[0])):
                    with suppress(FileNotFoundError):
                        cleared += _cleared(entry.name, note.read(20_000))
                    entry.unlink()
    return cleared


def abandoned(note: int, pid: int) -> bool:
    """Lock the open file ``note``; returns False if process ``pid`` still has it locked."""
    try:
        return take_lock(note)
    except OSError:
        # Some network file systems have no locks; the process may run on another machine.
        return time.time() - os.fstat(note).st_mtime >= UNLOCKED and not process_runs(pid)


def _cleared(name: str, note: bytes) -> list[Path]:
    temporary, original = (Path(os.fsdecode(part)) for part in note.partition(b"\0")[::2])
    ours = TEMPORARY.fullmatch(temporary.name) and temporary.name[-12:-4] == name.partition("-")[2]
    if not ours or os.path.normpath(temporary) != str(temporary):
        return []
    with parent_folder(temporary) as folder:
        found = os.stat(temporary.name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return []
        if original.name and original.parent == temporary.parent:
            # Never overwrite a file that exists by now.
            os.link(temporary.name, original.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(temporary.name, dir_fd=folder)
    return [temporary]


def process_runs(pid: int) -> bool:
    """Return whether a process with this number exists, or may exist."""
    with suppress(PermissionError, OverflowError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def save_whole(path: Path, text: str | bytes | Iterable[str | bytes], *, mode: int | None = None) -> None:
    """Write ``text``, or its pieces, so that the file is either the old or the new one. Follows links.

    ``mode`` are the permissions of the result; by default those of the old file, or 0600.

    Raises:
        StorageError: writing failed; the old file is unchanged.
    """
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        rights = mode if mode is not None else (target.stat().st_mode & 0o777 if target.exists() else 0o600)
        temporary = target.with_name(temporary_name(target.name))
        pieces = (text,) if isinstance(text, str | bytes) else text
        with unfinished(temporary):
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(handle, "wb") as file:
                    for piece in pieces:
                        file.write(piece if isinstance(piece, bytes) else piece.encode())
                    file.flush()
                    os.fchmod(handle, rights)
                    os.fsync(handle)
                temporary.replace(target)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"{path} could not be written: {reason}.", "Check the folder's rights and free space, or set BA_HOME."
        ) from error


@contextmanager
def exclusive(folder: Path) -> Generator[None]:
    """Lock ``folder`` for one process, to read, change and save a file.

    Raises:
        StorageError: the folder cannot be created or opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(
            f"{folder} can't be used: {error.strerror}.", "Check the folder's rights, or set BA_HOME."
        ) from error
    try:
        with suppress(OSError):
            # Some network file systems have no locks; then the last writer wins.
            take_lock(handle, wait=math.inf)
        yield
    finally:
        os.close(handle)


def writable(folder: Path) -> str:
    """Return why nothing can be written into ``folder`` (or its future parent); empty if it is writable."""
    existing = folder
    while not os.path.exists(existing) and existing != existing.parent:  # noqa: PTH110 - as above
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with tempfile.TemporaryFile(dir=existing):
            return ""
    except OSError as error:
        return f"{existing}: {error.strerror}"
