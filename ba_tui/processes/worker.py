"""The client of a long-lived worker process: requests, progress, cancel, timeout and restart.

The module that uses a worker names the entry that runs in it; serving.py is the worker's side.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ba_tui.processes.serving import BrokenFrame, Frame, FrameKind, FrameReader, encoded
from ba_tui.processes.supervised import Descriptors, SupervisedProgram
from ba_tui.processes.terminal_text import Capture, plain
from ba_tui.processes.values import (
    Program,
    ProgressListener,
    WorkerCrashed,
    WorkerEntry,
    WorkerFailed,
    WorkerSettings,
    WorkerTimeout,
)

PROGRAM = Path(__file__).with_name("worker_main.py")
CHUNK_BYTES = 262_144
MAX_READS = 64
"""Maximum pieces of output to read at a time, so that a flood does not block the event loop."""
LARGE_BYTES = 200_000
"""Larger JSON is parsed in a thread."""
PRINTED_CHARS = 2_000
REST_SECONDS = 1.0
"""Seconds after a request during which reading continues, because the next request is likely and attaching takes
time."""
GONE_SECONDS = 10.0
"""Maximum wait for the end of a process; the supervisor kills it within some seconds."""
CLOSED = "it was closed"


class _PendingRequest:
    """A running request."""

    def __init__(self, id: int, on_progress: ProgressListener | None) -> None:
        self.id = id
        self.reply: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self.deadline: asyncio.TimerHandle | None = None
        """When the worker must have stopped a cancelled request."""

    def report(self, frame: Frame) -> None:
        """Report progress. Raises BrokenFrame."""
        if self.on_progress and not self.reply.done():
            value = frame.payload()
            try:
                self.on_progress(value)
            except Exception as error:  # noqa: BLE001 - it belongs to who waits for the request
                self.reply.set_exception(error)

    def end(self, result: Frame | WorkerCrashed) -> None:
        if self.deadline:
            self.deadline.cancel()
        if self.reply.done() or self.reply.get_loop().is_closed():
            return
        if isinstance(result, WorkerCrashed):
            self.reply.set_exception(result)
        else:
            self.reply.set_result(result)


class Link:
    """A process and its connection, until ``end``, a crash, or until this object is collected; then the process ends
    with all processes it started. Blocks while it starts.

    Raises:
        OSError: it could not be started. BaError: it may not run unconfined.
    """

    def __init__(self, entry: WorkerEntry, settings: WorkerSettings) -> None:
        self._entry = entry
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader = FrameReader()
        self._pending: dict[int, _PendingRequest] = {}
        self._asked = 0
        self._rest_timer: asyncio.TimerHandle | None = None
        self._unsent = bytearray()
        self._writing = False
        self._output = Capture()
        confinement = settings.confine()
        self._channel, inner = socket.socketpair()
        self._printed, inner_output = os.pipe()
        number = inner.fileno()
        argv = (sys.executable, "-P", str(PROGRAM), str(number), entry.function, *entry.arguments)
        program = Program(argv, settings.folder, settings.environment, settings.limits, confinement)
        try:
            self._supervised = SupervisedProgram(program, Descriptors(inner_output, channel=number))
        except BaseException:
            self._channel.close()
            os.close(self._printed)
            raise
        finally:
            inner.close()
            os.close(inner_output)
        self._channel.setblocking(False)
        self._number = self._channel.fileno()
        os.set_blocking(self._printed, False)
        self._let_go = weakref.finalize(self, _let_go, self._supervised, self._channel, self._printed)
        self._reaper = threading.Thread(target=self._supervised.wait, daemon=True, name="reap")
        self._reaper.start()

    def alive(self) -> bool:
        """Return whether the process runs and has sent nothing unexpected."""
        if self._loop and self._loop.is_closed():
            if self._pending:
                return False
            self._detach()
        if not self._let_go.alive or self._loop:
            return self._let_go.alive
        try:
            while data := self._receive():
                pass
            well = data is None and self._supervised.read_states()
        except BrokenFrame:
            well = False
        if not well:
            # The evidence is consumed, so a second look would find nothing wrong.
            self.end()
        return well

    async def request(self, method: str, payload: object, on_progress: ProgressListener | None) -> object:
        """Send a request like ``WorkerClient.request``, without a timeout."""
        pending = self._begin(method, payload, on_progress)
        try:
            frame = await pending.reply
        finally:
            self._withdraw(pending)
        return await self._content(frame)

    def end(self, why: str = CLOSED, code: int | None = None) -> None:
        """End the process without waiting; running requests raise WorkerCrashed."""
        self._detach()
        self._let_go()
        printed = plain(self._output.text()).strip()[-PRINTED_CHARS:]
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            pending.end(WorkerCrashed(why, code, printed))

    def wait(self) -> None:
        """Wait until the process and all it started are gone, at most ``GONE_SECONDS``. Blocks."""
        self._reaper.join(GONE_SECONDS)

    def _begin(self, method: str, payload: object, on_progress: ProgressListener | None) -> _PendingRequest:
        self._asked += 1
        frame = encoded(FrameKind.REQUEST, self._asked, [method, payload])
        self._attach()
        pending = self._pending[self._asked] = _PendingRequest(self._asked, on_progress)
        self._send(frame)
        return pending

    def _withdraw(self, pending: _PendingRequest) -> None:
        """Cancel a request without a reply, and give the worker time to stop."""
        if pending.id in self._pending and self._loop:
            pending.reply.cancel()
            self._send(encoded(FrameKind.CANCEL, pending.id))
            pending.deadline = self._loop.call_later(self._entry.grace, self._give_up, pending.id)

    def _give_up(self, id: int) -> None:
        if id in self._pending:
            self.end("it was ended, as it did not stop a cancelled request")

    async def _content(self, frame: Frame) -> object:
        try:
            content = await asyncio.to_thread(frame.payload) if len(frame.value) > LARGE_BYTES else frame.payload()
            if frame.kind != FrameKind.FAILURE:
                return content
            kind, message = map(str, content)
        except (BrokenFrame, TypeError, ValueError) as error:
            self.end(f"it sent a broken reply ({error})")
            raise WorkerCrashed(f"it sent a broken reply ({error})") from error
        raise WorkerFailed(kind, message)

    def _attach(self) -> None:
        if self._entry.on_output and not self._pending:
            # Output between two requests belongs to neither.
            self._print(heard=False)
        if self._loop is None and self._let_go.alive:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._number, self._received)
            self._loop.add_reader(self._supervised.states, self._look)
            self._loop.add_reader(self._printed, self._print)
            self._rest_timer = self._loop.call_later(REST_SECONDS, self._rest, self._asked)

    def _rest(self, asked: int) -> None:
        """Detach if no request was sent since; otherwise check again later."""
        if self._loop and self._asked == asked and not self._pending:
            self._detach()
        elif self._loop:
            self._rest_timer = self._loop.call_later(REST_SECONDS, self._rest, self._asked)

    def _detach(self) -> None:
        if self._loop:
            for end in (self._number, self._supervised.states, self._printed):
                self._loop.remove_reader(end)
            self._stop_writing()
            if self._rest_timer:
                self._rest_timer.cancel()
            self._rest_timer = self._loop = None

    def _stop_writing(self) -> None:
        if self._loop and self._writing:
            self._loop.remove_writer(self._number)
        self._writing = False

    def _send(self, frame: bytes) -> None:
        self._unsent += frame
        self._flush()

    def _flush(self) -> None:
        """Send what the socket accepts now, the rest later."""
        if not self._let_go.alive:
            return
        try:
            del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            # Another pipe signals its end.
            self._unsent.clear()
        if not self._unsent:
            self._stop_writing()
        elif self._loop and not self._writing:
            self._loop.add_writer(self._number, self._flush)
            self._writing = True

    def _received(self) -> None:
        try:
            data = self._receive()
        except BrokenFrame as error:
            self.end(f"it sent a broken message ({error})")
            return
        if data == b"" and self._loop:
            # It cannot reply any more; another pipe signals its end and exit code.
            self._loop.remove_reader(self._number)
            self._supervised.end()

    def _receive(self) -> bytes | None:
        """Receive a piece of data: None if there is none, empty at the end. Raises BrokenFrame."""
        try:
            data = self._channel.recv(CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        for frame in self._reader.feed(data):
            self._take(frame)
        return data

    def _take(self, frame: Frame) -> None:
        pending = self._pending.get(frame.id)
        if pending is None or frame.kind in {FrameKind.REQUEST, FrameKind.CANCEL}:
            raise BrokenFrame("nobody asked for it")
        if frame.kind == FrameKind.PROGRESS:
            pending.report(frame)
            return
        del self._pending[frame.id]
        pending.end(frame)

    def _look(self) -> None:
        if self._supervised.read_states():
            return
        with suppress(BrokenFrame):
            # Read what it sent before its end.
            while self._pending and self._receive():
                pass
        self._print()
        code = self._supervised.exit_code
        if code is None:
            self._supervised.kill_group()
        self.end(_ending(code), code)

    def _print(self, *, heard: bool = True) -> None:
        for _ in range(MAX_READS):
            try:
                data = os.read(self._printed, CHUNK_BYTES)
            except OSError:
                return
            if not data:
                if self._loop:
                    self._loop.remove_reader(self._printed)
                return
            self._output.feed(data)
            if heard and self._entry.on_output:
                self._entry.on_output(data)


def _let_go(supervised: SupervisedProgram, channel: socket.socket, printed: int) -> None:
    supervised.close()
    channel.close()
    os.close(printed)


def _ending(code: int | None) -> str:
    if code is None:
        return "its process was ended from outside"
    if code < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"it ended its own process (exit {code})"


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class WorkerClient:
    """A worker process. It starts with the first request, and again with the next one after a crash. It ends with
    ``close``, when this object is collected, and when ba is gone (even by kill -9), each time with all processes it
    started.

    From the second crash in a row on, the next start is delayed: 1 s, 2 s, 4 s, at most 60 s. Until then requests raise
    WorkerCrashed. Confined, it ends with the thread that starts it, a thread of the loop's executor.

    Any number of requests may run concurrently, on one event loop at a time.
    """

    def __init__(
        self, entry: WorkerEntry, settings: WorkerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entry = entry
        self._settings = settings
        self._clock = clock
        self._link: Link | None = None
        self._last: Link | None = None
        self._starting = asyncio.Lock()
        self._crashes = 0
        self._not_before = float("-inf")
        self._closed = False

    async def request(
        self,
        method: str,
        payload: object = None,
        *,
        timeout: float | None = None,
        on_progress: ProgressListener | None = None,
    ) -> object:
        """Return the worker's reply to ``payload``; both are JSON values.

        Cancelling notifies the worker and does not wait. ``timeout`` in seconds, from the moment the worker runs.

        Raises:
            WorkerFailed: the worker reported a failure. WorkerTimeout: it took too long. WorkerCrashed: the process
            ended or sent invalid data. OSError: it could not be started. BaError: it may not run unconfined.
        """
        link = await self._running()
        try:
            async with asyncio.timeout(timeout):
                reply = await link.request(method, payload, on_progress)
        except TimeoutError as error:
            raise WorkerTimeout(f"{method} took longer than {timeout:g} s.") from error
        except WorkerCrashed:
            self._note_crash(link)
            raise
        except WorkerFailed:
            self._crashes = 0
            raise
        self._crashes = 0
        return reply

    async def _running(self) -> Link:
        """Return the connection to the process, which is started if necessary. Raises as ``request`` does."""
        async with self._starting:
            if self._closed:
                raise WorkerCrashed(CLOSED)
            if self._link is None or not self._link.alive():
                await self._gone()
                if (left := self._not_before - self._clock()) > 0:
                    raise WorkerCrashed(f"it crashed {self._crashes} times in a row; it starts again in {left:.0f} s")
                self._link = await asyncio.to_thread(Link, self._entry, self._settings)
                if self._closed:
                    self._drop()
                    raise WorkerCrashed(CLOSED)
            return self._link

    def alive(self) -> bool:
        """Return whether the process runs and has sent nothing unexpected."""
        return self._link is not None and self._link.alive()

    def end(self) -> None:
        """End the process and all it started, without waiting; running requests raise WorkerCrashed."""
        self._closed = True
        self._drop()

    async def close(self) -> None:
        """End the process and wait until all its processes are gone, so that their locks are free."""
        self.end()
        await self._gone()

    async def _gone(self) -> None:
        """End the process, and wait until it and the one before it are gone."""
        self._drop()
        if last := self._last:
            await asyncio.to_thread(last.wait)
            self._last = None

    def _drop(self) -> None:
        if self._link:
            self._link.end()
            self._last, self._link = self._link, None

    def _note_crash(self, link: Link) -> None:
        if link is not self._link:
            # Another request has seen it before.
            return
        self._drop()
        self._crashes += 1
        if self._crashes > 1:
            self._not_before = self._clock() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._crashes - 2, 16))
