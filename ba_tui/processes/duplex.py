"""A supervised program that talks on its standard input and output by lines, as MCP servers do."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from ba_tui.core.errors import BaError
from ba_tui.processes.supervised import CHUNK_BYTES, Descriptors, Program, Supervised
from ba_tui.processes.terminal_text import Capture

MAX_LINE_BYTES = 64_000_000
CLOSE_SECONDS = 2.0
LEAVE_SECONDS = 0.5
"""After its input was closed, until it is ended."""
ENDS_BYTES = 2_000
ENDLESS = 20
"""How often the limit of a line, after which it counts as one without an end."""
BREATH = 16
"""Pieces that are read before others have their turn."""


class LineTooLong(BaError):
    """The program sent a line beyond the limit, which was passed over. ``ends``: its first and its last bytes."""

    kind = "execution_error"

    def __init__(self, size: int, ends: tuple[bytes, bytes]) -> None:
        super().__init__(f"A line of {size / 1_000_000:.1f} MB came, which is more than ba reads.")
        self.size, self.ends = size, ends


class LineEndless(LineTooLong):
    """The program goes on with a line that is many times beyond the limit. Nothing more of it can be read."""


class LineUnfinished(BaError):
    """The program sent a part of a line and nothing more for a while. ``line``: that part."""

    kind = "execution_error"

    def __init__(self, line: bytes) -> None:
        super().__init__("A line came without its end.")
        self.line = line


class DuplexChild:
    """One program below the supervisor; it ends with ``close``, and when ba is gone, with all it started.

    Lines are read when they are asked for: until then the program waits once its pipe is full. What it prints on its
    standard error is kept, head and tail; ``heard`` is given it too, as it comes. ``longest``: bytes of a line. Used
    from one event loop. Made by ``start``.
    """

    def __init__(
        self, program: Program, heard: Callable[[bytes], None] | None = None, longest: int = MAX_LINE_BYTES
    ) -> None:
        self._heard, self._longest, self._egress = heard, longest, program.egress
        inner_input, self._input = os.pipe()
        self._output, inner_output = os.pipe()
        self._errors, inner_errors = os.pipe()
        ours, theirs = (self._input, self._output, self._errors), (inner_input, inner_output, inner_errors)
        try:
            self._supervised = Supervised(program, Descriptors(inner_output, inner_errors, inner_input))
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        for end in ours:
            os.set_blocking(end, False)
        self._let_go = weakref.finalize(self, _let_go, self._supervised, ours)
        self._received = bytearray()
        self._said = Capture()
        self._more = True
        self._leaving = False
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self._free = asyncio.Event()
        self._writing = asyncio.Lock()
        threading.Thread(target=self._supervised.wait, daemon=True, name="reap").start()

    @classmethod
    async def start(
        cls, program: Program, heard: Callable[[bytes], None] | None = None, longest: int = MAX_LINE_BYTES
    ) -> Self:
        """Start ``program``. Raises OSError when that fails."""
        child = await asyncio.to_thread(cls, program, heard, longest)
        loop = asyncio.get_running_loop()
        loop.add_reader(child._errors, child._hear)
        loop.add_reader(child._supervised.states, child._look)
        return child

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and when its supervisor was killed."""
        return self._supervised.exit_code

    @property
    def over(self) -> bool:
        """Whether its output has ended and all of it was read."""
        return not self._received and (not self._more or self._ended.is_set())

    @property
    def errors(self) -> str:
        """What it printed on its standard error, its middle left out when that is much."""
        return self._said.text()

    async def read_line(self, quiet: float | None = None) -> bytes:
        """The next line without its end; empty at the end of the output. Raises LineTooLong; the next call goes on
        behind that line. Raises LineEndless, after which the program is of no use. Raises LineUnfinished when nothing
        follows a part of a line for ``quiet`` seconds; the next call goes on with that line."""
        loop = asyncio.get_running_loop()
        searched = skipped = pieces = 0
        head = b""
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if skipped + searched > self._longest:
                head = head or bytes(self._received[:ENDS_BYTES])
                skipped += max(0, searched - ENDS_BYTES)
                del self._received[:-ENDS_BYTES]
                searched = len(self._received)
                if skipped > ENDLESS * self._longest:
                    raise LineEndless(skipped + searched, (head, bytes(self._received)))
            pieces += 1
            if pieces % BREATH == 0:
                await asyncio.sleep(0)
            if self._read():
                continue
            if not self._more or self._ended.is_set():
                rest, self._received = bytes(self._received), bytearray()
                return rest
            self._changed.clear()
            loop.add_reader(self._output, self._changed.set)
            try:
                async with asyncio.timeout(quiet if self._received and not skipped else None):
                    await self._changed.wait()
            except TimeoutError:
                raise LineUnfinished(bytes(self._received)) from None
            finally:
                if self._let_go.alive:
                    loop.remove_reader(self._output)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        if skipped or len(line) > self._longest:
            raise LineTooLong(skipped + len(line), (head or line[:ENDS_BYTES], line[-ENDS_BYTES:]))
        return line

    def take_line(self) -> bytes:
        """Take the part of a line that has come as a whole line."""
        line, self._received = bytes(self._received), bytearray()
        return line

    async def write(self, data: bytes) -> None:
        """Send ``data``; waits while the program does not read. Raises BrokenPipeError when it can't any more."""
        loop = asyncio.get_running_loop()
        async with self._writing:
            rest = memoryview(data)
            while rest:
                if self._leaving or not self._let_go.alive or self._ended.is_set():
                    raise BrokenPipeError("the program has ended")
                try:
                    rest = rest[os.write(self._input, rest[:CHUNK_BYTES]) :]
                except BlockingIOError:
                    self._free.clear()
                    loop.add_writer(self._input, self._free.set)
                    try:
                        await self._free.wait()
                    finally:
                        if self._let_go.alive:
                            loop.remove_writer(self._input)

    async def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def close(self) -> None:
        """Close its input, so that it can leave by itself, then end it with all it started; returns when it has ended,
        after some seconds at most."""
        if not self._let_go.alive:
            return
        loop = asyncio.get_running_loop()
        if not self._leaving:
            self._leaving = True
            loop.remove_writer(self._input)
            _replace(self._input)
        await self.wait(LEAVE_SECONDS)
        if not self._let_go.alive:
            return
        self._supervised.end()
        await self.wait(2 * CLOSE_SECONDS)
        for end in (self._errors, self._output, self._supervised.states):
            loop.remove_reader(end)
        loop.remove_writer(self._input)
        self._let_go()
        self._note_end()

    def _read(self) -> bool:
        """Take in a piece of output, if there is one now."""
        if not self._let_go.alive:
            return False
        try:
            data = os.read(self._output, CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._more = bool(data)
        self._received += data
        return bool(data)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._errors, CHUNK_BYTES)
            self._said.feed(data)
            if self._heard and data:
                self._heard(data)
            if not data:
                asyncio.get_running_loop().remove_reader(self._errors)

    def _look(self) -> None:
        if self._supervised.read_states():
            return
        if self._supervised.exit_code is None:
            self._supervised.kill_group()
        asyncio.get_running_loop().remove_reader(self._supervised.states)
        self._hear()
        self._note_end()

    def _note_end(self) -> None:
        """Free who reads or writes."""
        if self._egress:
            self._egress.close()
        for event in (self._ended, self._changed, self._free):
            event.set()


def _replace(end: int) -> None:
    """Close the pipe at ``end``, whose number stays taken until the program is let go."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, end, inheritable=False)
    finally:
        os.close(null)


def _let_go(supervised: Supervised, ends: tuple[int, ...]) -> None:
    supervised.close()
    for end in ends:
        os.close(end)
