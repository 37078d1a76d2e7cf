"""Runs the command of one hook: JSON in, what it printed out, bounded in time and size whatever it does.

What its words mean is ``answers``' business.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen

CHUNK_BYTES = 65_536
MAX_OUTPUT_BYTES = 65_536
"""Bytes that a hook may print on either stream."""
TICK_SECONDS = 0.05
"""Seconds between looks for what no pipe tells: an end with a pipe still held, a cancelled turn."""


@frozen
class HookCommand:
    """A shell command, what it reads, where it runs and for how many seconds at most."""

    command: str
    data: bytes
    folder: Path
    environment: Mapping[str, str]
    timeout: float


@frozen
class Completed:
    """``trouble``: why it did not come to an end of its own, in words that follow its name; ``code`` is None then."""

    code: int | None
    out: str = ""
    err: str = ""
    trouble: str = ""


async def run_command(command: HookCommand) -> Completed:
    """Run it to its end. Cancelling ends it, and all that it started."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Completed] = loop.create_future()
    stop = threading.Event()

    def tell(ran: Completed) -> None:
        if not done.done():
            done.set_result(ran)

    def work() -> None:
        ran = _run(command, stop)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, ran)

    threading.Thread(target=work, daemon=True, name="hook").start()
    try:
        return await done
    finally:
        stop.set()


def _run(command: HookCommand, stop: threading.Event) -> Completed:
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.folder,
            env=dict(command.environment),
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        return Completed(None, trouble=f"could not be started: {getattr(error, 'strerror', None) or error}.")
    try:
        with _Pipes(process, command.data) as pipes:
            trouble = pipes.until_end(time.monotonic() + command.timeout, stop)
            if trouble:
                return Completed(None, trouble=trouble.format(seconds=command.timeout))
            _end(process)
            return Completed(process.returncode, *map(_text, pipes.printed))
    finally:
        _end(process)
        with suppress(subprocess.TimeoutExpired):
            # What runs as somebody else can't be ended by us, and must not hold us up.
            process.wait(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and what it left running in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(data: bytearray) -> str:
    return clean_text(bytes(data).decode("utf-8", "replace"))


class _Pipes:
    """The three pipes of a process, none of which can hold us up."""

    def __init__(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        self._process = process
        self._data = memoryview(data)
        self._files = {file.fileno(): file for file in (process.stdin, process.stdout, process.stderr) if file}
        self._input, out, err = self._files
        self._got = {out: bytearray(), err: bytearray()}
        self._poll = select.poll()
        for number in self._files:
            os.set_blocking(number, False)
            self._poll.register(number, select.POLLOUT if number == self._input else select.POLLIN)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for number in tuple(self._files):
            self._close(number)

    @property
    def printed(self) -> list[bytearray]:
        return list(self._got.values())

    def until_end(self, deadline: float, stop: threading.Event) -> str:
        """Serve the pipes until the process has ended; why it was given up, empty when it was not."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "took longer than {seconds:g} s and was ended."
            if stop.is_set():
                return "was ended together with the turn."
            ended = self._process.poll() is not None
            self._once(0 if ended else min(left, TICK_SECONDS))
            if any(len(got) > MAX_OUTPUT_BYTES for got in self._got.values()):
                return f"printed more than {MAX_OUTPUT_BYTES // 1024} KB and was ended."
            if ended:
                # What it started may hold the pipes for ever; what it said itself is here by now.
                return ""
            if not self._files.keys() & self._got.keys():
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(min(max(left, 0), TICK_SECONDS))

    def _once(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds * 1000):
            if number == self._input:
                self._feed()
            elif number in self._files:
                self._take(number)

    def _feed(self) -> None:
        try:
            self._data = self._data[os.write(self._input, self._data[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            # It does not read, which is its right.
            self._data = self._data[:0]
        if not self._data:
            self._close(self._input)

    def _take(self, number: int) -> None:
        while len(self._got[number]) <= MAX_OUTPUT_BYTES:
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
