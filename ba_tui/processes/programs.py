"""Run programs that ba itself chooses, such as git: briefly, with piped input and output, or line by line.

Without a supervisor, which would add 30 ms to a git call of 5 ms. So a program that leaves its process group is not
tracked, and one that runs while ba is killed ends on its own. ``children.py`` runs programs that a model or a
repository names.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, TypeAlias

from ba_tui.core.errors import started
from ba_tui.core.values import frozen

CHUNK_BYTES = 65_536
MAX_OUTPUT_BYTES = 256_000_000
TICK_SECONDS = 0.05
"""Seconds between checks for events that no pipe signals: an end while a pipe stays open, a stop."""

Trouble: TypeAlias = Literal["", "timeout", "flood", "stopped"]


@frozen
class BriefRun:
    """A program to run: ``argv`` in ``folder`` (None: ba's) with ``environment`` (None: ba's) and ``input`` on standard
    input, for at most ``timeout`` seconds and ``most`` bytes of output on each stream. ``lasting``: processes left in
    its group keep running, as clipboard tools need; otherwise they are killed."""

    argv: Sequence[str]
    timeout: float
    folder: Path | None = None
    environment: Mapping[str, str] | None = None
    input: bytes = b""
    most: int = MAX_OUTPUT_BYTES
    lasting: bool = False


@frozen
class ProgramResult:
    """``trouble``: why the program was killed, with ``code`` None. ``output`` and ``errors`` are what it printed until
    then."""

    code: int | None
    output: bytes = b""
    errors: bytes = b""
    trouble: Trouble = ""


async def run_in_thread(run: BriefRun) -> ProgramResult:
    """Run a program like ``run_briefly`` without blocking. Cancelling kills the program and its group first."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ProgramResult] = loop.create_future()
    stop = threading.Event()

    def finish(result: ProgramResult | Exception) -> None:
        if done.done():
            return
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)

    def work() -> None:
        try:
            result: ProgramResult | Exception = run_briefly(run, stop)
        except (OSError, ValueError) as error:
            result = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, result)

    # Not a thread of the loop's executor, because an exit would wait for that.
    started(work, "brief run")
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        stop.set()
        with suppress(Exception):
            await done
        raise


def run_briefly(run: BriefRun, stop: threading.Event | None = None) -> ProgramResult:
    """Run a program to its end and return its output; ``stop`` kills it. Blocks.

    Raises:
        OSError, ValueError: it could not be started.
    """
    process = subprocess.Popen(
        run.argv,
        stdin=subprocess.PIPE if run.input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=run.folder,
        env=None if run.environment is None else dict(run.environment),
        start_new_session=True,
        bufsize=0,
    )
    pipes = _Pipes(process, run)
    trouble: Trouble = "stopped"
    try:
        trouble = pipes.until_end(time.monotonic() + run.timeout, stop)
    finally:
        if trouble or not run.lasting:
            kill_group(process)
        pipes.close()
        with suppress(subprocess.TimeoutExpired):
            # A process of another user cannot be killed, and must not block ba.
            process.wait(1)
    return ProgramResult(None if trouble else process.returncode, bytes(pipes.output), bytes(pipes.errors), trouble)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its own group, and the processes left in the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Pipes:
    """The pipes of a process, read and written without blocking."""

    def __init__(self, process: subprocess.Popen[bytes], run: BriefRun) -> None:
        self.output, self.errors = bytearray(), bytearray()
        self._process = process
        self._most = run.most
        self._rest = memoryview(run.input)
        self._files = {file.fileno(): file for file in (process.stdin, process.stdout, process.stderr) if file}
        out, err = list(self._files)[-2:]
        self._got = {out: self.output, err: self.errors}
        self._poll = select.poll()
        for number in self._files:
            os.set_blocking(number, False)
            self._poll.register(number, select.POLLIN if number in self._got else select.POLLOUT)

    def close(self) -> None:
        for number in tuple(self._files):
            self._close(number)

    def until_end(self, deadline: float, stop: threading.Event | None) -> Trouble:
        """Serve the pipes until the process has ended; returns why it was given up, empty if it ended."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if stop and stop.is_set():
                return "stopped"
            ended = self._process.poll() is not None
            self._once(0 if ended else min(left, TICK_SECONDS))
            if any(len(got) > self._most for got in self._got.values()):
                return "flood"
            if ended:
                # Its children may keep the pipes open forever; its own output has arrived by now.
                return ""
            if not self._files.keys() & self._got.keys():
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(min(max(left, 0), TICK_SECONDS))

    def _once(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds * 1000):
            if number in self._got:
                self._take(number)
            else:
                self._feed(number)

    def _feed(self, number: int) -> None:
        try:
            self._rest = self._rest[os.write(number, self._rest[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            # The program does not read its input.
            self._rest = self._rest[:0]
        if not self._rest:
            self._close(number)

    def _take(self, number: int) -> None:
        while len(self._got[number]) <= self._most:
            try:
                data = os.read(number, CHUNK_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close(number)
                return
            self._got[number] += data

    def _close(self, number: int) -> None:
        self._poll.unregister(number)
        self._files.pop(number).close()


CLOSE_SECONDS = 5.0
MAX_LINE_BYTES = 1_000_000
LAST_BYTES = 64_000


class PipedChild:
    """A program with blocking pipes, for use in a thread. Use it in a ``with``: at the end its input is closed, and
    after some seconds its process group is killed.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        import tempfile  # noqa: PLC0415 - few sessions start such a program before somebody waits for it

        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except BaseException:
            self._said.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input: IO[bytes] = self._process.stdin
        self.output: IO[bytes] = self._process.stdout

    def __enter__(self) -> PipedChild:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its input, and kill it if it keeps running for some seconds. May be called repeatedly."""
        with suppress(OSError):
            self.input.close()
        self.output.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        finally:
            self._said.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait()

    def errors(self) -> bytes:
        """Return the end of its standard error."""
        self._said.seek(max(0, self._said.seek(0, 2) - LAST_BYTES))
        return self._said.read()

    def terminate(self) -> None:
        """Ask it to end, so that it can clean up."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill it and its process group immediately. Thread-safe."""
        if self.running:
            kill_group(self._process)


class StreamedChild:
    """A program without input whose output is read by line on the event loop. Made by ``stream``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.output = process.stdout
        self._process = process
        self._errors = asyncio.create_task(_first(process.stderr))

    async def errors(self) -> bytes:
        """Wait for the end of its standard error and return the beginning."""
        return await self._errors

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return await self._process.wait()

    def kill(self) -> None:
        """Kill it and its process group immediately."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill it and close its pipes."""
        self._errors.cancel()
        self.kill()
        # Read the remaining output, so that the transport closes.
        await asyncio.wait([self._errors])
        await self._process.communicate()


async def stream(argv: Sequence[str], environment: Mapping[str, str], memory: int | None = None) -> StreamedChild:
    """Start a program whose output is read while it runs. ``memory``: limit in bytes, on Linux.

    Raises:
        OSError: it could not be started.
    """
    if memory is not None and sys.platform == "linux":
        # Set the limit before exec: a limit set from outside comes too late for a short program.
        argv = ("/bin/sh", "-c", 'ulimit -d "$0" 2>/dev/null; exec "$@"', str(memory // 1024), *argv)
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        env=dict(environment),
        start_new_session=True,
    )
    return StreamedChild(process)


async def _first(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end and return the first part."""
    said = b""
    while piece := await stream.read(4_000):
        said += piece if len(said) < 4_000 else b""
    return said
