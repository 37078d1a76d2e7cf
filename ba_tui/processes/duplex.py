"""A supervised program that exchanges lines over standard input and output, such as an MCP server."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from ba_tui.core.errors import BaError
from ba_tui.processes.supervised import CHUNK_BYTES, Descriptors, SupervisedProgram
from ba_tui.processes.terminal_text import Capture
from ba_tui.processes.values import Program

MAX_LINE_BYTES = 64_000_000
CLOSE_SECONDS = 4.0
LEAVE_SECONDS = 0.5
"""Seconds between closing its input and ending it."""
ENDS_BYTES = 2_000
ENDLESS = 20
"""Multiple of the line limit after which a line counts as endless."""
BREATH = 16
"""Pieces to read before yielding to other tasks."""


class LineTooLong(BaError):
    """The program sent a line beyond the limit, which was skipped. ``ends``: its first and last bytes."""

    kind = "execution_error"

    def __init__(self, size: int, ends: tuple[bytes, bytes]) -> None:
        super().__init__(f"A line of {size / 1_000_000:.1f} MB came, which is more than ba reads.")
        self.size, self.ends = size, ends


class LineEndless(LineTooLong):
    """The program keeps sending a line many times beyond the limit. Nothing more can be read."""


class LineUnfinished(BaError):
    """The program sent a part of a line and then nothing for a while. ``line``: that part."""

    kind = "execution_error"

    def __init__(self, line: bytes) -> None:
        super().__init__("A line came without its end.")
        self.line = line


class DuplexChild:
    """A program below the supervisor; it ends with ``close``, and when ba is gone, with all processes it started. Made
    by ``start``; used from one event loop.

    Lines are read on request: until then the program blocks once its pipe is full. Head and tail of its standard error
    are kept; ``heard`` receives it as it arrives. ``longest``: maximum bytes of a line.
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
            self._supervised = SupervisedProgram(program, Descriptors(inner_output, inner_errors, inner_input))
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
        """Start ``program``. Raises OSError if that fails."""
        child = await asyncio.to_thread(cls, program, heard, longest)
        loop = asyncio.get_running_loop()
        loop.add_reader(child._errors, child._hear)
        loop.add_reader(child._supervised.states, child._look)
        return child

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None while it runs, or if its supervisor was killed."""
        return self._supervised.exit_code

    @property
    def over(self) -> bool:
        """Return whether its output has ended and was read completely."""
        return not self._received and not self._more

    @property
    def errors(self) -> str:
        """Return its standard error, without the middle if it is long."""
        return self._said.text()

    async def read_line(self, quiet: float | None = None) -> bytes:
        """Return the next line without its end; empty at the end of the output.

        Raises:
            LineTooLong: the next call continues after that line.
            LineEndless: the program is of no further use.
            LineUnfinished: no data followed a part of a line for ``quiet`` seconds; the next call continues that line.
        """
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
                # A process that the program left may keep the pipe open.
                self._more = False
                return self.take_line()
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
        """Return the received part of a line as a whole line."""
        line, self._received = bytes(self._received), bytearray()
        return line

    async def write(self, data: bytes) -> None:
        """Send ``data``; waits while the program does not read. Raises BrokenPipeError after its end."""
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
        """Wait for its end, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def close(self) -> None:
        """Close its input so that it can exit, then end it with all processes it started; returns within seconds."""
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
        await self.wait(CLOSE_SECONDS)
        for end in (self._errors, self._output, self._supervised.states):
            loop.remove_reader(end)
        self._let_go()
        self._more = False
        self._note_end()

    def _read(self) -> bool:
        """Receive a piece of output if available."""
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
        data = os.read(self._errors, CHUNK_BYTES)
        self._said.feed(data)
        if not data:
            asyncio.get_running_loop().remove_reader(self._errors)
        elif self._heard:
            self._heard(data)

    def _look(self) -> None:
        if self._supervised.read_states():
            return
        if self._supervised.exit_code is None:
            self._supervised.kill_group()
        asyncio.get_running_loop().remove_reader(self._supervised.states)
        self._note_end()

    def _note_end(self) -> None:
        """Wake up readers and writers."""
        if self._egress:
            self._egress.close()
        for event in (self._ended, self._changed, self._free):
            event.set()


def _replace(end: int) -> None:
    """Close the pipe at ``end`` but keep its number in use until the program is released."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, end, inheritable=False)
    finally:
        os.close(null)


def _let_go(supervised: SupervisedProgram, ends: tuple[int, ...]) -> None:
    supervised.close()
    for end in ends:
        os.close(end)
