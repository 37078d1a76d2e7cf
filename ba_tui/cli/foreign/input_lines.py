"""Standard input line by line, as it comes, beside work on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable

from ba_tui.core.errors import UsageError

PIECE = 1 << 16
LONGEST = 64_000_000
"""Bytes of a line: several pictures fit in."""


async def input_lines() -> AsyncIterator[bytes]:
    """The lines of standard input, without their ends, until it closes.

    A thread reads them: a loop can't wait for a file. It reads the descriptor itself, so that it may stay behind in a
    read when Python ends.

    Raises:
        UsageError: a line is too long, or standard input can't be read.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | UsageError | None]()

    def put(line: bytes | UsageError | None) -> None:
        # The loop is closed when ba ends before its input does.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=_read, args=(sys.stdin.fileno(), put), name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, UsageError):
            raise line
        yield line


def _read(descriptor: int, put: Callable[[bytes | UsageError | None], None]) -> None:
    rest: list[bytes] = []
    size = 0
    try:
        while piece := os.read(descriptor, PIECE):
            *ended, last = piece.split(b"\n")
            for line in ended:
                put(b"".join([*rest, line]))
                rest, size = [], 0
            rest.append(last)
            size += len(last)
            if size > LONGEST:
                hint = "Send large files by their names, with @ before them."
                put(UsageError(f"A line of the input is longer than {LONGEST // 1_000_000} MB.", hint))
                return
    except OSError as error:
        put(UsageError(f"Standard input can't be read: {error.strerror or error}.", "Pipe the lines in."))
        return
    if any(rest):
        put(b"".join(rest))
    put(None)
