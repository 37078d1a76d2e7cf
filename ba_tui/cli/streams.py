"""The standard streams of a command: input that keeps it waiting, narration and output that can't be written; and the
file that stands for its output.

stdout carries data: losing it ends the command. stderr carries narration: what can't be written there is dropped.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.processes.confinement import CONFINED_VARIABLE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

WAITING = "Waiting for standard input; add </dev/null to skip it."
SILENT = 1.0
"""Seconds after which the user is told what is waited for."""
FIRST, LATER = 60.0, 600.0
"""Seconds for which the first byte, and each further piece, of standard input is waited for."""
LIMIT_VARIABLE = "BA_INPUT_TIMEOUT"
LARGEST_INPUT = 10_000_000
PIECE = 1 << 16
INFRASTRUCTURE = 2
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _Narration(io.FileIO):
    """A descriptor that takes everything: what its reader or its disk refuses is gone."""

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        try:
            # None: somebody made it non-blocking, and it is full.
            return super().write(data) or size
        except OSError:
            return size


def drop_lost_narration() -> None:
    """Let no failure of stderr end the command, now or when Python flushes it at the end."""
    old = sys.stderr
    if isinstance(old, io.TextIOWrapper) and old.fileno() == 2:
        binary = io.BufferedWriter(_Narration(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(binary, old.encoding, "backslashreplace", line_buffering=True)


def tell_of_confinement() -> None:
    """Say on stderr, before all else, that another ba's sandbox hides the user's folders from this ba."""
    if CONFINED_VARIABLE not in os.environ:
        return
    from ba_tui.resources import places, writable  # noqa: PLC0415 - only within a sandbox

    where = places().state
    if writable(where):
        told = f"This ba runs in another ba's sandbox, which hides {where}: nothing of it can be saved, and your"
        sys.stderr.write(f"ba: {told} settings, keys and sessions can't be read. Run it in a terminal of its own.\n")


def output_failed(error: OSError, *, wanted: bool = False) -> int:
    """The exit code when stdout can't be written, after saying so. Nothing more is written there.

    A reader that went away (``ba … | head``) has seen enough, and that is no fault, unless all of it is ``wanted``.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    # What is left in its buffer can't be written when Python ends either.
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    if isinstance(error, BrokenPipeError):
        if not wanted:
            return 0
        why, cure = "the program that reads it has ended", "The session is saved: ba -c shows it."
    else:
        why = error.strerror or str(error)
        cure = "Make room, or write somewhere else." if error.errno in FULL else "Write somewhere else."
    sys.stderr.write(f"ba: The output can't be written: {why}. {cure}\n")
    return INFRASTRUCTURE


def write_output(path: Path, pieces: Iterable[str | bytes], *, private: bool = False) -> None:
    """Write what a command brings, so that the file is the old or the new one, never half.

    A pipe or a device is written to, never replaced. ``private``: only the user reads a new file.

    Raises:
        UsageError: it is a folder. StorageError: it could not be written.
    """
    from ba_tui.resources import save_whole  # noqa: PLC0415 - few commands write files

    if path.is_dir():
        raise UsageError(f"{path} is a folder.", "Name a file.")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.writelines(each if isinstance(each, bytes) else each.encode() for each in pieces)
        else:
            mask = os.umask(0)
            os.umask(mask)
            save_whole(path, pieces, mode=None if private or path.exists() else 0o666 & ~mask)
    except OSError as error:
        why = error.strerror or str(error)
        raise StorageError(f"{path} could not be written: {why}.", "Name another file.") from error
    except StorageError as error:
        hint = "Check the folder's permissions and free space, or name another file."
        raise StorageError(str(error), hint) from error


class StandardInput(io.RawIOBase):
    """What comes on standard input, to its end. Silence is said after a second, and an error after ``limits``: seconds
    before the first byte, and between two pieces. So a writer that keeps sending is read whole, however slow it is.
    """

    def __init__(self, handle: int, limits: tuple[float, float]) -> None:
        super().__init__()
        self._handle = handle
        self._first, self._later = limits
        self._told = self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Raises UsageError when nothing comes, or it can't be read."""
        target = memoryview(buffer).cast("B")
        try:
            self._wait(self._later if self._begun else self._first)
            piece = os.read(self._handle, min(len(target), PIECE))
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"Standard input can't be read: {why}.", "Add </dev/null to skip it.") from error
        self._begun = True
        target[: len(piece)] = piece
        return len(piece)

    def _wait(self, limit: float) -> None:
        quiet = limit if self._told else min(SILENT, limit)
        if self._ready(quiet):
            return
        if quiet < limit:
            self._told = True
            sys.stderr.write(f"{WAITING}\n")
            sys.stderr.flush()
            if self._ready(limit - quiet):
                return
        what = "stopped coming without an end" if self._begun else "is open, and nothing came"
        hint = f"Add </dev/null to skip it, or set {LIMIT_VARIABLE}=SECONDS to wait longer (0: without a limit)."
        raise UsageError(f"Standard input {what} for {limit:g} s.", hint)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._handle], [], [], None if seconds == float("inf") else seconds)[0])


def open_input() -> BinaryIO:
    """Standard input, which is waited for only so long.

    Raises:
        UsageError: the variable that says how long is no number; and as ``StandardInput.readinto`` when it is read.
    """
    limits = FIRST, LATER
    if given := os.environ.get(LIMIT_VARIABLE, "").strip():
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"{LIMIT_VARIABLE}={given} is no number of seconds.", "0 waits without a limit.")
        limits = (seconds or float("inf"), seconds or float("inf"))
    return io.BufferedReader(StandardInput(sys.stdin.fileno(), limits), PIECE)


def read_input(limit: int = LARGEST_INPUT) -> bytes:
    """All of standard input, to its end.

    Raises:
        UsageError: it is larger than ``limit`` bytes, can't be read, or does not come.
    """
    data = open_input().read(limit + 1)
    if len(data) > limit:
        hint = 'Save it in a file, and name that in the prompt: ba -p "sum up @log.txt"'
        raise UsageError(f"Standard input is larger than {limit // 1_000_000} MB.", hint)
    return data


def tell_of_waiting() -> None:
    """Say on stderr that standard input is waited for, once it has been silent for a second."""
    try:
        silent = not select.select([sys.stdin.fileno()], [], [], SILENT)[0]
    except (OSError, ValueError):
        return
    if silent:
        sys.stderr.write(f"{WAITING}\n")
        sys.stderr.flush()
