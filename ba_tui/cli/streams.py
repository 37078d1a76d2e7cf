"""The standard streams of a command: input with a time limit, failures of output, and output files.

stdout carries data: a failed write ends the command. stderr carries narration: failed writes are dropped.
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
from ba_tui.core.text.untrusted import paintable
from ba_tui.processes.values import CONFINED_VARIABLE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

WAITING = "Waiting for standard input; add </dev/null to skip it."
SILENT = 1.0
"""Seconds of silence on standard input before a message says that ba waits for it."""
FIRST, LATER = 60.0, 600.0
"""Timeouts for the first byte and for each further piece of standard input, in seconds."""
LIMIT_VARIABLE = "BA_INPUT_TIMEOUT"
LARGEST_INPUT = 10_000_000
PIECE = 1 << 16
INFRASTRUCTURE = 2
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _Narration(io.FileIO):
    """A file whose failed writes are dropped without an error."""

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        try:
            # None: the descriptor is non-blocking and full.
            return super().write(data) or size
        except OSError:
            return size


def drop_lost_narration() -> None:
    """Ignore write failures of stderr, now and when Python flushes it at exit."""
    old = sys.stderr
    if isinstance(old, io.TextIOWrapper) and old.fileno() == 2:
        binary = io.BufferedWriter(_Narration(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(binary, old.encoding, "backslashreplace", line_buffering=True)


def tell_of_confinement() -> None:
    """Print to stderr that this ba runs in another ba's sandbox, which hides the user's folders."""
    if CONFINED_VARIABLE not in os.environ:
        return
    from ba_tui.resources import places, writable  # noqa: PLC0415 - only within a sandbox

    where = places().state
    if writable(where):
        told = f"This ba runs in another ba's sandbox, which hides {where}: nothing of it can be saved, and your"
        sys.stderr.write(f"ba: {told} settings, keys and sessions can't be read. Run it in a terminal of its own.\n")


def output_failed(error: OSError, *, wanted: bool = False) -> int:
    """Report that stdout can't be written, close it and return the exit code.

    A closed pipe (``ba … | head``) is no error, unless the whole output is ``wanted``.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    # Python would fail again at exit, when it flushes the buffer.
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
    """Write the output of a command atomically: the file has the old or the new content, never a part.

    A pipe or a device is written to, not replaced. ``private``: a new file is readable by the user only.

    Raises:
        UsageError: ``path`` is a folder. StorageError: it could not be written.
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


def print_line(text: str) -> None:
    """Print to stdout, with lone surrogates (from file names) and control characters escaped."""
    sys.stdout.write(paintable(text.encode("utf-8", "backslashreplace").decode()) + "\n")


def say(text: str) -> None:
    """Print ``text`` to stderr with ba's prefix."""
    line = f"ba: {text}".encode("utf-8", "backslashreplace").decode()
    sys.stderr.write(paintable(line, newlines=False) + "\n")


class StandardInput(io.RawIOBase):
    """Standard input with timeouts. ``limits``: seconds before the first byte, and between two pieces.

    A message appears after a second of silence. A slow writer that keeps sending is read to its end.
    """

    def __init__(self, handle: int, limits: tuple[float, float]) -> None:
        super().__init__()
        self._handle = handle
        self._first, self._later = limits
        self._told = self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into ``buffer``. Raises UsageError after the timeout, or when the stream can't be read."""
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
    """Return standard input with timeouts.

    Raises:
        UsageError: the variable for the timeout is not a number; reading raises as ``StandardInput.readinto``.
    """
    limits = FIRST, LATER
    if given := os.environ.get(LIMIT_VARIABLE, "").strip():
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"{LIMIT_VARIABLE}={given} is not a number of seconds.", "0 waits without a limit.")
        limits = (seconds or float("inf"), seconds or float("inf"))
    return io.BufferedReader(StandardInput(sys.stdin.fileno(), limits), PIECE)


def read_input(limit: int = LARGEST_INPUT) -> bytes:
    """Return all of standard input.

    Raises:
        UsageError: it is larger than ``limit`` bytes, can't be read, or does not arrive in time.
    """
    data = open_input().read(limit + 1)
    if len(data) > limit:
        hint = 'Save it in a file, and name that in the prompt: ba -p "sum up @log.txt"'
        raise UsageError(f"Standard input is larger than {limit // 1_000_000} MB.", hint)
    return data


def tell_of_waiting() -> None:
    """Print to stderr that ba waits for standard input, after a second of silence."""
    try:
        silent = not select.select([sys.stdin.fileno()], [], [], SILENT)[0]
    except (OSError, ValueError):
        return
    if silent:
        sys.stderr.write(f"{WAITING}\n")
        sys.stderr.flush()
