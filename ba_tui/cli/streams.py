"""The standard streams of a command: input that keeps it waiting, narration and output that can't be written.

stdout carries data: losing it ends the command. stderr carries narration: what can't be written there is dropped.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import time
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

WAITING = "Waiting for standard input; add </dev/null to skip it."
SILENT = 1.0
"""Seconds after which a person is told what is waited for."""
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


def tell_of_waiting() -> None:
    """Say on stderr that standard input is waited for, once it has been silent for a second."""
    try:
        silent = not select.select([sys.stdin.fileno()], [], [], SILENT)[0]
    except (OSError, ValueError):
        return
    if silent:
        _say_waiting()


def read_input(limit: int = LARGEST_INPUT) -> bytes:
    """All of standard input, to its end; a person is told when that takes long.

    Raises:
        UsageError: it is larger than ``limit`` bytes, or can't be read.
    """
    data, begin, told = bytearray(), time.monotonic(), False
    try:
        handle = sys.stdin.fileno()
        while True:
            left = None if told else max(0.0, begin + SILENT - time.monotonic())
            if not select.select([handle], [], [], left)[0]:
                _say_waiting()
                told = True
                continue
            piece = os.read(handle, PIECE)
            if not piece:
                return bytes(data)
            data += piece
            if len(data) > limit:
                hint = 'Save it in a file, and name that in the prompt: ba -p "sum up @log.txt"'
                raise UsageError(f"Standard input is larger than {limit // 1_000_000} MB.", hint)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"Standard input can't be read: {why}.", "Add </dev/null to skip it.") from error


def _say_waiting() -> None:
    sys.stderr.write(f"{WAITING}\n")
    sys.stderr.flush()
