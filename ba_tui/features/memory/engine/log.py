"""The log of memory, its only primary data: a JSONL file that several processes append to, and that one may rewrite
without losing a line.

``entries`` defines the lines. How a line reaches the disk:

- An append is one ``write`` under a short file lock; when it returns, the line survives a crash of any process. It does
not wait for the disk (1 to 50 ms): ``sync`` does, at the end of a turn and before a text counts as forgotten. A power
cut can therefore cost the lines since the last ``sync``, as in the session's journal.

- A line without its line end is the rest of a killed writer. The next append terminates it, and readers skip it.

- Forgotten lines are overwritten in place with spaces, so that readers' marks stay valid.

- A rewrite copies the lines into a new file without blocking writers, takes the lock for lines appended meanwhile, and
renames.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import VERSION
from ba_tui.resources import open_regular, save_whole
from ba_tui.shared_files import append_whole, open_lock_file, sync_path, take_lock_if_supported

_GUARD = 64
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHTS = {errno.EROFS, errno.EACCES, errno.EPERM}
_PATIENCE = 5.0
"""Seconds to wait for another writer before an append fails."""
_HEAD = 200
"""Bytes of the first line that distinguish a file from its replacement."""

Keep = Callable[[bytes], bytes | None]
"""Returns the replacement of a line in a rewrite: the same line, another one, or None to drop it."""


@frozen
class Mark:
    """The position of a reader; ``head`` and ``guard`` detect that the file was replaced."""

    head: bytes = b""
    offset: int = 0
    guard: bytes = b""

    def packed(self) -> list[str | int]:
        """Return the mark as JSON."""
        return [self.head.hex(), self.offset, self.guard.hex()]


def mark_in(packed: Sequence[Any]) -> Mark:
    """Return the mark in the JSON of ``Mark.packed``. Raises ValueError, TypeError."""
    head, offset, guard = packed
    return Mark(bytes.fromhex(head), int(offset), bytes.fromhex(guard))


class Log:
    """The file ``path``, in an existing folder. Its lock files are next to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, lines: bytes) -> None:
        """Append whole ``lines``, all or none. Takes well under a millisecond unless another process is writing.

        Raises:
            StorageError: nothing was written.
        """
        try:
            with self._locked("lock"), _opened(self.path) as fd:
                _write(fd, lines)
        except OSError as error:
            raise self._unsaved(error) from error

    def sync(self) -> None:
        """Wait until all appended lines are on the disk. Call it in a thread."""
        try:
            for path in (self.path, self.path.parent):
                sync_path(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unsaved(error) from error

    def read(self, since: Mark) -> Iterator[tuple[bytes, Mark]]:
        """Yield the whole lines after ``since``, each with the mark behind it.

        With a mark of a file that was rewritten or edited since, reading starts from the beginning: see ``continues``.
        """
        try:
            with open_regular(self.path) as file:
                head = _head(file.readline())
                offset = since.offset if self._continues(since, head) else 0
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    offset += len(line)
                    yield line, Mark(head, offset, line[-_GUARD:])
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(
                f"The memory log {self.path} cannot be read: {_why(error)}.", "Check its rights."
            ) from error

    def continues(self, mark: Mark) -> bool:
        """Return whether reading after ``mark`` yields only lines appended since."""
        try:
            with open_regular(self.path) as file:
                return self._continues(mark, _head(file.readline()))
        except OSError:
            return mark == Mark()

    def size(self) -> int:
        """Return the file's size in bytes; 0 for none."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def rewrite(self, keep: Keep) -> None:
        """Replace the file, with each line replaced by the result of ``keep``. Slow: 0.5 s for 100,000 lines.

        At any time either the old or the new file exists, and lines appended meanwhile are in the new one.

        Raises:
            StorageError: the old file is unchanged.
        """
        if not self.path.exists():
            return
        try:
            with self._locked("rewriting"):
                self._rewrite(keep)
        except OSError as error:
            raise self._unsaved(error) from error

    def blank(self, gone: Callable[[bytes], bool], *, keep: bool = False) -> int:
        """Overwrite the whole lines that ``gone`` accepts with spaces; return their number. 0.1 s for 100,000 lines.

        ``keep``: first append them to the file of rejected lines. On return both files are on the disk.

        Raises:
            StorageError: some of the lines may still exist.
        """
        if not self.path.exists():
            return 0
        try:
            with self._locked("rewriting"), open(self.path, "r+b", buffering=0) as target:
                found = _places(self.path, gone)
                if keep and found:
                    _set_aside(self.rejected, [os.pread(target.fileno(), length, offset) for offset, length in found])
                for offset, length in found:
                    os.pwrite(target.fileno(), b" " * (length - 1) + b"\n", offset)
                os.fsync(target.fileno())
                return len(found)
        except OSError as error:
            raise self._unsaved(error) from error

    def forget_rejected(self, ids: Collection[str]) -> int:
        """Remove the rejected lines that name one of ``ids``; return their number.

        Raises:
            StorageError: the lines are unchanged.
        """
        if not self.rejected.exists():
            return 0
        try:
            with self._locked("rewriting"):
                lines = self.rejected.read_bytes().splitlines(keepends=True)
                kept = [line for line in lines if not any(id.encode() in line for id in ids)]
                if len(kept) < len(lines):
                    save_whole(self.rejected, b"".join(kept))
                return len(lines) - len(kept)
        except OSError as error:
            raise self._unsaved(error) from error

    @property
    def rejected(self) -> Path:
        """Return the path of the file for unreadable lines."""
        return self.path.with_suffix(".rejected.jsonl")

    def _rewrite(self, keep: Keep) -> None:
        def kept(line: bytes) -> bytes:
            return b"" if _is_header(line) else keep(line) or b""

        for left in self.path.parent.glob(f".{self.path.name}.*"):
            left.unlink()
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with open(handle, "wb") as target, open_regular(self.path) as source:
                target.write(_header())
                for line in source:
                    if line.endswith(b"\n"):
                        target.write(kept(line))
                    else:
                        source.seek(-len(line), os.SEEK_CUR)
                        break
                target.flush()
                os.fsync(handle)
                with self._locked("lock"):
                    target.writelines(kept(line if line.endswith(b"\n") else line + b"\n") for line in source)
                    target.flush()
                    os.fsync(handle)
                    os.replace(name, self.path)  # noqa: PTH105 - a name, not a Path
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108 - a name, not a Path
            raise
        self.sync()

    def _continues(self, mark: Mark, head: bytes) -> bool:
        if not mark.offset or mark.head != head:
            return False
        with open_regular(self.path) as file:
            file.seek(max(0, mark.offset - len(mark.guard)))
            found = file.read(len(mark.guard))
            # A line that was read may have been forgotten since.
            return found == mark.guard or (len(found) == len(mark.guard) and found.isspace())

    @contextlib.contextmanager
    def _locked(self, name: str) -> Generator[None]:
        """Lock the file for one thread of one process. The kernel releases the lock of a process that dies."""
        path = self.path.with_suffix(f".{name}")
        fd = open_lock_file(path)
        try:
            # Without locks, appends rely on O_APPEND alone.
            if not take_lock_if_supported(fd, wait=_PATIENCE):
                raise TimeoutError(errno.ETIMEDOUT, "another process is writing", str(path))
            yield
        finally:
            os.close(fd)

    def _unsaved(self, error: OSError) -> StorageError:
        if error.errno in _NO_SPACE:
            hint = "Free some space and try again; what was stored before is safe."
        elif error.errno in _NO_RIGHTS:
            hint = "Check the rights of the folder, or set BA_HOME to a folder that you can write to."
        else:
            hint = "Try again; what was stored before is safe."
        return StorageError(f"The memory log {self.path} cannot be written: {_why(error)}.", hint)


def _set_aside(rejected: Path, lines: list[bytes]) -> None:
    fd = os.open(rejected, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(fd)


def _places(path: Path, wanted: Callable[[bytes], bool]) -> list[tuple[int, int]]:
    """Yield offset and length of the whole lines that are ``wanted``."""
    found: list[tuple[int, int]] = []
    offset = 0
    with open_regular(path) as source:
        for line in source:
            if line.endswith(b"\n") and wanted(line):
                found.append((offset, len(line)))
            offset += len(line)
    return found


@contextlib.contextmanager
def _opened(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _write(fd: int, lines: bytes) -> None:
    size = os.fstat(fd).st_size
    if size == 0:
        lines = _header() + lines
    elif os.pread(fd, 1, size - 1) != b"\n":
        lines = b"\n" + lines
    append_whole(fd, lines)


def _header() -> bytes:
    return b'{"v":%d,"op":"log","made":"%s"}\n' % (VERSION, secrets.token_hex(8).encode())


def _is_header(line: bytes) -> bool:
    return b'"op":"log"' in line[:_HEAD] and (read_object(line) or {}).get("op") == "log"


def _head(line: bytes) -> bytes:
    return line[:_HEAD]


def _why(error: OSError) -> str:
    return error.strerror or str(error)
