"""Runs a short program of our own choosing, as git, to its end: in time, its output bounded, its group killed.

No supervisor stands in between: it would add 30 ms to a git call of 5. So a program that leaves its process group is
not followed, and one that runs when ba is killed ends by itself. What a model or a repository names runs
in children.py.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.errors import started
from ba_tui.core.values import frozen

CHUNK_BYTES = 65_536
MAX_OUTPUT_BYTES = 256_000_000
TICK_SECONDS = 0.05
"""Seconds between looks for what no pipe tells: an end with a pipe still open, a stop."""

Trouble: TypeAlias = Literal["", "timeout", "flood", "stopped"]


@frozen
class BriefRun:
    """``argv`` in ``folder`` (None: ours) with ``environment`` (None: ours), ``input`` on its standard input, for at
    most ``timeout`` seconds. It may print ``most`` bytes on either stream. ``lasting``: what it leaves running in its
    process group goes on, as clipboard tools need; else that is killed."""

    argv: Sequence[str]
    timeout: float
    folder: Path | None = None
    environment: Mapping[str, str] | None = None
    input: bytes = b""
    most: int = MAX_OUTPUT_BYTES
    lasting: bool = False


@frozen
class Finished:
    """``trouble``: why the program was killed before its end; ``code`` is None then. ``output`` and ``errors`` are what
    it printed until then."""

    code: int | None
    output: bytes = b""
    errors: bytes = b""
    trouble: Trouble = ""


async def run_in_thread(run: BriefRun) -> Finished:
    """As ``run_briefly``, without blocking. Cancelling kills the program and its group first."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Finished] = loop.create_future()
    stop = threading.Event()

    def finish(result: Finished | Exception) -> None:
        if done.done():
            return
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)

    def work() -> None:
        try:
            result: Finished | Exception = run_briefly(run, stop)
        except (OSError, ValueError) as error:
            result = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, result)

    # No worker of the loop's executor: an exit would wait for it.
    started(work, "brief run")
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        stop.set()
        with suppress(Exception):
            await done
        raise


def run_briefly(run: BriefRun, stop: threading.Event | None = None) -> Finished:
    """Run a program to its end and return what it printed; ``stop`` kills it. Blocks.

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
            # What runs as somebody else can't be killed by us, and must not hold us up.
            process.wait(1)
    return Finished(None if trouble else process.returncode, bytes(pipes.output), bytes(pipes.errors), trouble)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group of its own, and what it left running in it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Pipes:
    """The pipes of a process, none of which can hold us up."""

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
        """Serve the pipes until the process has ended; why it was given up, empty when it was not."""
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
                # What it started may hold the pipes for ever; what it said itself is here by now.
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
            # It does not read, which is its right.
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
