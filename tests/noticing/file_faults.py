"""A layer of faults below file operations: errors, short writes, and a crash before or within any one of them.

The layer counts the operations that change files or take locks. It replaces functions of ``os``, ``fcntl`` and
``open``, so that files written by ``os.write`` and by file objects are met alike.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KILLED = 137
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)


class Operation(NamedTuple):
    name: str
    target: str
    """A path, as far as it can be told."""


class Layer:
    """Counts operations in ``done``. ``at``: the index of the operation with the fault, None for none.

    ``fault``: an ``errno``, "short" (the write takes half), "crash" (before the operation) or "torn" (after half of a
    write; before any other operation). ``lasts``: all later operations of that name fail too, as on a full disk.
    ``reads``: opening a file to read it counts as well.
    """

    def __init__(
        self, at: int | None = None, fault: int | str = 0, *, lasts: bool = False, reads: bool = False
    ) -> None:
        self.done: list[Operation] = []
        self.at = at
        self.fault = fault
        self.lasts = lasts
        self.reads = reads
        self._failing = ""

    def meets(self, name: str, target: object, data: Any = None, write: Callable[[Any], Any] | None = None) -> Any:
        """Note the operation; return what a short write wrote, else None. Raise or end the process for a fault."""
        self.done.append(Operation(name, _path(target)))
        if len(self.done) - 1 != self.at and not (self.lasts and name == self._failing):
            return None
        self._failing = name
        if isinstance(self.fault, int):
            raise OSError(self.fault, os.strerror(self.fault), _path(target))
        half = memoryview(data).cast("B")[: len(data) // 2] if data is not None else None
        if self.fault == "short":
            return write(half) if write and half else None
        if self.fault == "torn" and write and half:
            write(half)
        os._exit(KILLED)

    @contextmanager
    def laid(self) -> Generator[Layer]:
        """Lay the layer below all file operations of the process."""
        with pytest.MonkeyPatch.context() as patch:
            for module, names in ((os, PATHS), (os, NUMBERS), (fcntl, ("flock",))):
                for name in names:
                    patch.setattr(module, name, self._watched(name, getattr(module, name)))
            patch.setattr(os, "open", self._opens(os.open))
            for name in ("write", "pwrite"):
                patch.setattr(os, name, self._writes(name, getattr(os, name)))
            opened = self._file(io.open)
            patch.setattr(builtins, "open", opened)
            patch.setattr(io, "open", opened)
            yield self

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(target: Any, *rest: Any, **options: Any) -> Any:
            # To let a lock go can't fail.
            if name != "flock" or not rest[0] & fcntl.LOCK_UN:
                self.meets(name, target)
            return real(target, *rest, **options)

        return operation

    def _opens(self, real: Callable[..., int]) -> Callable[..., int]:
        def operation(path: Any, flags: int, *rest: Any, **options: Any) -> int:
            if self.reads or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.meets("open", path)
            return real(path, flags, *rest, **options)

        return operation

    def _writes(self, name: str, real: Callable[..., int]) -> Callable[..., int]:
        def operation(number: int, data: Any, *rest: Any) -> int:
            written = self.meets(name, number, data, lambda half: real(number, half, *rest))
            return real(number, data, *rest) if written is None else written

        return operation

    def _file(self, real: Callable[..., Any]) -> Callable[..., Any]:
        layer = self

        class Raw(io.FileIO):
            def write(self, data: Any, /) -> int:
                written = layer.meets("write", self.fileno(), data, super().write)
                return super().write(data) if written is None else written

        def opened(
            file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **options: Any
        ) -> Any:
            if not set(mode) & set("wax+"):
                if self.reads and not isinstance(file, int):
                    self.meets("open", file)
                return real(file, mode, buffering, encoding, *rest, **options)
            if not isinstance(file, int):
                self.meets("open", file)
            plain = mode.replace("b", "").replace("t", "")
            raw = Raw(file, plain, closefd=options.get("closefd", True), opener=options.get("opener"))
            if buffering == 0:
                return raw
            made = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return made
            return io.TextIOWrapper(
                made, encoding or options.get("encoding") or "utf-8", newline=options.get("newline")
            )

        return opened


PATHS = ("replace", "rename", "unlink", "mkdir", "rmdir", "truncate", "link", "symlink")
NUMBERS = ("fsync", "ftruncate", "fchmod")


def operations(work: Callable[[], object]) -> list[Operation]:
    """Return the operations of ``work`` when nothing fails."""
    with Layer().laid() as layer:
        work()
    return layer.done


def unsynced(done: list[Operation]) -> set[str]:
    """Return the files that were written after they were last synced: a power cut may lose what was written."""
    dirty: set[str] = set()
    for name, target in done:
        if name in ("write", "pwrite", "ftruncate"):
            dirty.add(target)
        elif name == "fsync":
            dirty.discard(target)
    return dirty


def readable_by_others(folder: Path) -> list[str]:
    """Return the files and folders, ``folder`` included, that other users have any right to, links aside."""
    found = [path for path in (folder, *folder.rglob("*")) if os.path.lexists(path) and not path.is_symlink()]
    return [str(path) for path in found if path.stat().st_mode & 0o077]


def failures(
    work: Callable[[Path], object],
    made: Callable[[], Path],
    *faults: int | str,
    lasting: tuple[bool, ...] = (False, True),
) -> Iterator[tuple[Path, Layer]]:
    """Run ``work`` in a new folder for each operation and each fault, once alone and once lasting.

    Yield the folder and the layer after each run. ``work`` handles the errors that it expects.
    """
    for fault in faults:
        for lasts in lasting:
            at = 0
            while True:
                folder, layer = made(), Layer(at, fault, lasts=lasts)
                with layer.laid():
                    work(folder)
                if at >= len(layer.done):
                    break
                yield folder, layer
                at += 1


def crashes(
    work: Callable[[Path, Callable[[str], None]], object], made: Callable[[], Path]
) -> Iterator[tuple[Path, list[str]]]:
    """Run ``work`` in a forked process that ends at each operation in turn; yield its folder and what it acknowledged.

    ``work`` calls its second argument with a line when something counts as done.
    """
    whole = made()
    names = [each.name for each in operations(lambda: work(whole, lambda line: None))]
    faults = [(at, "crash") for at in range(len(names) + 1)]
    faults += [(at, "torn") for at, name in enumerate(names) if name in ("write", "pwrite")]
    for at, fault in faults:
        folder = made()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            _child(work, folder, Layer(at, fault), writer)
        os.close(writer)
        with os.fdopen(reader) as told:
            acknowledged = told.read().splitlines()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == (KILLED if at < len(names) else 0), f"the forked process ended with {code} at operation {at}"
        yield folder, acknowledged


def _child(work: Callable[[Path, Callable[[str], None]], object], folder: Path, layer: Layer, writer: int) -> None:
    tell, code = os.write, 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        with layer.laid():
            work(folder, lambda line: (tell(writer, f"{line}\n".encode()), None)[1])
        code = 0
    finally:
        os._exit(code)


def _path(target: object) -> str:
    if isinstance(target, int):
        try:
            return os.readlink(f"/proc/self/fd/{target}")  # noqa: PTH115 - a number, not a path
        except OSError:
            return str(target)
    if hasattr(target, "fileno"):
        return _path(target.fileno())  # pyright: ignore[reportAttributeAccessIssue]
    return os.fspath(target) if isinstance(target, str | os.PathLike) else str(target)
