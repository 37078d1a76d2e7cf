"""Starts worker processes, sends them calls, collects what they print, and ends them.

One worker runs one call at a time. The programs on the other side are ``worker_process`` and ``worker_loop``.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.terminal_text import Capture, coloured

PROGRAM = Path(__file__).with_name("worker_process.py")
CHUNK_BYTES = 65_536
MAX_REPLY_BYTES = 64_000_000
LIVE_CHARS = 8_000
"""Characters shown live at a time; of a flood only the newest are."""
TICK_SECONDS = 0.05
NO_KEYS: Mapping[str, str] = {}


@frozen
class WorkerSettings:
    """Where workers run: the ``folder`` they start in and the ``environment`` they see, without keys of models.
    ``limits`` are rlimits by their names; ``confine`` says how a worker is kept in the sandbox (blocks, may raise)."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: NO_KEYS)
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    confine: Callable[[], Confinement | None] = lambda: None


@frozen
class Code:
    """What a worker loads: a ``file`` of which ``digest`` was looked at, or a ``module`` (``package.module:name``)."""

    file: str = ""
    module: str = ""
    digest: str = ""

    @property
    def shown(self) -> str:
        return self.file or self.module


class WorkerDied(Exception):
    """The worker ended without a reply. ``code`` as the system gives it, None when nothing is known."""

    def __init__(self, code: int | None) -> None:
        super().__init__(_ending(code))
        self.code = code


class Worker:
    """One process. Nothing of it belongs to an event loop between two requests.

    Confined, it ends with the thread that starts it, so that thread has to last as long as it is wanted.
    """

    def __init__(self, code: Code, worker_settings: WorkerSettings) -> None:
        confinement = worker_settings.confine()
        self._separate = bool(confinement and confinement.separate)
        inner_control, control = os.pipe()
        output, inner_output = os.pipe()
        self._channel, inner = socket.socketpair()
        self._output = output
        held = {**worker_settings.limits, **(confinement.limits if confinement else {})}
        limits = ",".join(f"{name}={value}" for name, value in held.items())
        words = (sys.executable, "-P", str(PROGRAM), str(inner.fileno()), str(worker_settings.folder), limits,
                 code.file, code.module, code.digest)  # fmt: skip
        environment = {**worker_settings.environment, **(confinement.environment if confinement else {})}
        try:
            self._process = subprocess.Popen(
                confinement.wrap(words) if confinement else words,
                stdin=inner_control,
                stdout=inner_output,
                stderr=inner_output,
                pass_fds=(inner.fileno(),),
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(control)
            os.close(output)
            self._channel.close()
            raise
        finally:
            inner.close()
            os.close(inner_control)
            os.close(inner_output)
        os.set_blocking(output, False)
        self._channel.setblocking(False)
        self._lines: deque[bytes] = deque()
        self._received = bytearray()
        self._asked = 0
        self._pid = 0
        # The supervisor ends what is left once its pipe closes: when we say so, are forgotten, or are no more.
        self._let_go = weakref.finalize(self, _let_go, self._channel, (control, output))
        threading.Thread(target=self._process.wait, daemon=True, name="reap").start()

    @property
    def alive(self) -> bool:
        """Whether it can be asked: it runs, and did not say anything unasked but its number."""
        if not self._let_go.alive:
            return False
        with suppress(BlockingIOError):
            while data := self._channel.recv(CHUNK_BYTES):
                self._take(data)
            return False
        return not self._received and all(line.startswith(b"pid ") for line in self._lines)

    def end(self) -> None:
        """Returns at once; the tree is ended behind."""
        self._let_go()

    def describe(self, timeout: float) -> dict[str, Any]:
        """What is in the code; blocks, for a thread.

        Raises:
            TimeoutError: it took longer. WorkerDied: it ended instead.
        """
        until = time.monotonic() + timeout
        self._channel.sendall(self._request({"do": "describe"}))
        watched: list[Any] = [self._channel, self._output]
        while (reply := self._reply()) is None:
            ready, _, _ = select.select(watched, [], [], max(0.0, until - time.monotonic()))
            if not ready or time.monotonic() > until:
                raise TimeoutError
            if self._output in ready and self._read_output() == b"":
                watched.remove(self._output)
            if self._channel in ready:
                self._take(self._channel.recv(CHUNK_BYTES))
        return reply

    async def call(self, name: str, args: Mapping[str, Any], report: Callable[[str], None]) -> tuple[Any, str]:
        """The reply to a call, and what was printed meanwhile. Cancelling leaves it running: ``end`` it then.

        Raises:
            WorkerDied: it ended instead.
        """
        loop = asyncio.get_running_loop()
        printed = _Printed(report)

        def read() -> bool:
            data = self._read_output()
            if data == b"":
                loop.remove_reader(self._output)
            printed.feed(data or b"")
            return bool(data)

        for _ in range(64):
            # What was printed between two calls belongs to neither.
            if not self._read_output():
                break
        loop.add_reader(self._output, read)
        try:
            request = self._request({"do": "call", "object": name, "args": dict(args)})
            with suppress(BrokenPipeError, ConnectionResetError):
                await loop.sock_sendall(self._channel, request)
            while (reply := self._reply()) is None:
                self._take(await loop.sock_recv(self._channel, CHUNK_BYTES))
            for _ in range(64):
                if not read():
                    break
        finally:
            loop.remove_reader(self._output)
            printed.flush()
        return reply, printed.text()

    def _request(self, content: dict[str, Any]) -> bytes:
        self._asked += 1
        return json.dumps({**content, "id": self._asked}).encode() + b"\n"

    def _take(self, data: bytes) -> None:
        if not data:
            self._lost()
            raise WorkerDied(None)
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._lines.append(bytes(self._received) + piece)
            self._received.clear()
        self._received += rest
        if len(self._received) > MAX_REPLY_BYTES:
            raise WorkerDied(None)

    def _reply(self) -> dict[str, Any] | None:
        """The reply to the last request, when all of it is here; lines that are none are passed over."""
        while self._lines:
            line = self._lines.popleft()
            kind, _, value = line.partition(b" ")
            if kind == b"pid" and value.isdigit():
                self._pid = int(value)
            elif kind == b"exit":
                raise WorkerDied(int(value))
            elif line.startswith(b"{"):
                try:
                    reply: Any = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if reply.get("id") == self._asked:
                    return reply
        return None

    def _read_output(self) -> bytes | None:
        """What is there now: None when nothing is, b"" when nothing will be any more."""
        try:
            return os.read(self._output, CHUNK_BYTES)
        except BlockingIOError:
            return None

    def _lost(self) -> None:
        """The supervisor went away without a word (something killed it): end the group below it ourselves."""
        if self._separate:
            # Its numbers name other processes out here; all of its name space ends with this one.
            self._process.kill()
        elif self._pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)


class _Printed:
    """What a tool prints on its way to the pane, a few times a second and never more than a pane can take."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._capture = Capture()
        self._waiting = b""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._capture.feed(data)
        self._waiting = (self._waiting + data)[-LIVE_CHARS:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self.flush)

    def flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        text = clean_text(coloured(self._waiting.decode("utf-8", "replace")))
        self._waiting = b""
        if text:
            self._report(text)

    def text(self) -> str:
        return self._capture.text()


class WorkerPool:
    """The workers of one piece of code: one is kept between calls; calls at the same time get one each."""

    def __init__(self, code: Code, worker_settings: WorkerSettings) -> None:
        self.code = code
        self._worker_settings = worker_settings
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._in_turn = asyncio.Lock()
        self.closed = False
        """Its code is gone or another by now, and is not run any more."""

    async def call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool
    ) -> tuple[Any, str]:
        """As ``Worker.call``. ``keep``: the tool has a state, so its calls take turns and the worker stays.

        Otherwise a worker whose call left processes behind is ended with them.
        """
        if keep:
            async with self._in_turn:
                return await self._call(name, args, report, keep=True)
        return await self._call(name, args, report, keep=False)

    async def _call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool
    ) -> tuple[Any, str]:
        worker = await asyncio.to_thread(self._worker)
        try:
            reply, printed = await worker.call(name, args, report)
        except BaseException:
            worker.end()
            raise
        if reply.get("left") and not keep:
            worker.end()
        else:
            self._put_back(worker)
        return reply, printed

    def close(self) -> None:
        self.closed = True
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    def _worker(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
        return Worker(self.code, self._worker_settings)

    def _put_back(self, worker: Worker) -> None:
        with self._lock:
            if self._idle or self.closed:
                worker.end()
            else:
                self._idle.append(worker)


def _let_go(channel: socket.socket, ends: tuple[int, ...]) -> None:
    channel.close()
    for end in ends:
        os.close(end)


def _ending(code: int | None) -> str:
    if code is None:
        return "its process was ended from outside"
    if code < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"it ended its own process (exit {code})"
