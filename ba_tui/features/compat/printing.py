"""Print mode in the wire format of Claude Code: one answer, or a conversation over lines of input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from ba_tui.assembly import connect
from ba_tui.core.errors import UsageError
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.features.compat.host import ClaudeHost, HostOptions
from ba_tui.features.compat.lines import ClaudeWords
from ba_tui.features.compat.requests import opening, prompt_settings
from ba_tui.flags import ChatFlags

PIECE = 1 << 16
LONGEST = 64_000_000
"""Bytes of a line; enough for several pictures."""


async def input_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input, without line ends, until it closes. A thread reads them, as an event loop
    can't wait for a file. It reads the descriptor, not ``sys.stdin``, so that Python can exit while a read blocks.
    Raises UsageError: a line is too long, or standard input can't be read."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | UsageError | None]()

    def put(line: bytes | UsageError | None) -> None:
        # The loop is closed if ba ends before its input.
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


async def print_lines(services: Services, start: Start, folder: Path, given: ChatFlags) -> tuple[int, OSError | None]:
    """Print one answer. Returns the exit code, and the error of a lost stdout."""
    if given.strict_figures:
        raise UsageError(
            f"{services.output_format} has no figures.", "Use text, json or stream-json with --strict-figures."
        )
    return await _carried_out(services, start, folder, _one_line(start.prompt), _options(given))


async def converse(
    flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags
) -> tuple[Services, int, OSError | None]:
    """Answer the lines of stdin until they end. Returns the services, the exit code, and the error of a lost stdout."""
    lines = input_lines()
    # The first line may contain the system prompt, which is fixed once a session is open.
    first = await anext(lines, b"")
    fields = opening(first)
    services = connect({**flags, **prompt_settings(fields)}, folder, strict=True)
    code, lost = await _carried_out(services, start, folder, _with(first, lines), _options(given, fields))
    return services, code, lost


async def _carried_out(
    services: Services, start: Start, folder: Path, lines: AsyncIterator[bytes], options: HostOptions
) -> tuple[int, OSError | None]:
    host = ClaudeHost(services, ClaudeWords(folder), sys.stdout, sys.stderr)
    return await host.run(start, lines, options), host.lost


def _options(given: ChatFlags, opening: Mapping[str, Any] | None = None) -> HostOptions:
    return HostOptions(
        partial=given.include_partial_messages,
        replay=given.replay_user_messages,
        asks=given.permission_prompt_tool is not None,
        timeout=given.timeout,
        opening=opening or {},
    )


async def _with(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for line in lines:
        yield line


async def _one_line(prompt: str) -> AsyncIterator[bytes]:
    yield json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}).encode()
