"""One running worker process and the connection to it: frames out and in, what it prints, and its end.

Starting it again is worker.py's. Some time after the last request no event loop knows of it any more, unless somebody
hears notices: so one that is forgotten can be ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ba_tui.processes.frames import WINDOW, BrokenFrame, Frame, FrameKind, FrameReader, Packet, encoded
from ba_tui.processes.supervised import Descriptors, Program, Supervised
from ba_tui.processes.terminal_text import Capture, plain
from ba_tui.processes.worker_values import ProgressListener, WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings

PROGRAM = Path(__file__).with_name("worker_main.py")
CHUNK_BYTES = 262_144
MAX_READS = 64
"""Pieces of output that are read at a time: a flood must not hold up the event loop."""
LARGE_BYTES = 200_000
"""JSON beyond this is parsed in a thread."""
PRINTED_CHARS = 2_000
REST_SECONDS = 1.0
"""Seconds after a request in which the next one is likely: reading goes on, as to begin it anew takes a while."""
GONE_SECONDS = 10.0
"""Longest wait for the end of a process; the supervisor kills what does not end within some seconds."""
CLOSED = "it was closed"


class _Pending:
    """A request under way. ``parts``: of a streamed reply."""

    def __init__(self, id: int, on_progress: ProgressListener | None) -> None:
        self.id = id
        self.reply: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self.parts: asyncio.Queue[Frame | None] = asyncio.Queue()
        self.deadline: asyncio.TimerHandle | None = None
        """When the worker must have stopped a cancelled request."""

    def take(self, frame: Frame) -> None:
        """A frame before the last one. Raises BrokenFrame."""
        if frame.kind == FrameKind.CHUNK:
            if self.parts.qsize() >= WINDOW:
                raise BrokenFrame("more chunks came than were asked for")
            self.parts.put_nowait(frame)
        elif self.on_progress and not self.reply.done():
            value = frame.payload()
            try:
                self.on_progress(value)
            except Exception as error:  # noqa: BLE001 - it belongs to who waits for the request
                self.reply.set_exception(error)

    def end(self, result: Frame | WorkerCrashed) -> None:
        if self.deadline:
            self.deadline.cancel()
        self.parts.put_nowait(None)
        if self.reply.done():
            return
        if isinstance(result, WorkerCrashed):
            self.reply.set_exception(result)
        else:
            self.reply.set_result(result)


class Link:
    """A process and its connection, until ``end``, a crash, or until it is forgotten; then the process ends with all it
    started. Blocks while it starts.

    Raises:
        OSError: it could not be started. BaError: it may not run unconfined.
    """

    def __init__(self, entry: WorkerEntry, settings: WorkerSettings) -> None:
        self._entry = entry
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader = FrameReader()
        self._pending: dict[int, _Pending] = {}
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
            self._supervised = Supervised(program, Descriptors(inner_output, channel=number))
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
        """Whether the process runs and said nothing that nobody asked for."""
        if self._loop and self._loop.is_closed():
            if self._pending:
                return False
            self._detach()
        if not self._let_go.alive or self._loop:
            return self._let_go.alive
        try:
            while data := self._receive():
                pass
        except BrokenFrame:
            return False
        return data is None and self._supervised.read_states()

    async def request(self, method: str, payload: object, on_progress: ProgressListener | None) -> object:
        """As ``Worker.request``, without its timeout."""
        pending = self._begin(method, payload, on_progress)
        try:
            frame = await pending.reply
        finally:
            self._withdraw(pending)
        if self._entry.on_output:
            self._print()
        return await self._content(frame)

    async def stream(self, method: str, payload: object) -> AsyncGenerator[object]:
        """As ``Worker.stream``, without its timeout."""
        pending = self._begin(method, payload, None)
        try:
            while frame := await pending.parts.get():
                yield await self._content(frame)
                self._send(encoded(FrameKind.MORE, pending.id))
            await self._content(await pending.reply)
        finally:
            self._withdraw(pending)

    def end(self, why: str = CLOSED, code: int | None = None) -> None:
        """End the process behind our back; requests under way raise WorkerCrashed."""
        self._detach()
        self._let_go()
        printed = plain(self._output.text()).strip()[-PRINTED_CHARS:]
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            pending.end(WorkerCrashed(why, code, printed))

    def wait(self) -> None:
        """Wait until the process and all it started are gone, at most ``GONE_SECONDS``. Blocks."""
        self._reaper.join(GONE_SECONDS)

    def _begin(self, method: str, payload: object, on_progress: ProgressListener | None) -> _Pending:
        self._asked += 1
        given: Any = [method, payload]
        if isinstance(payload, Packet):
            given = Packet([method, payload.value], payload.data)
        frame = encoded(FrameKind.REQUEST, self._asked, given)
        self._attach()
        pending = self._pending[self._asked] = _Pending(self._asked, on_progress)
        self._send(frame)
        return pending

    def _withdraw(self, pending: _Pending) -> None:
        """Tell the worker that nobody waits any more, when it has not replied, and give it time to stop."""
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
            # What was printed between two requests belongs to neither.
            self._print(heard=False)
        if self._loop is None and self._let_go.alive:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._number, self._received)
            self._loop.add_reader(self._supervised.states, self._look)
            self._loop.add_reader(self._printed, self._print)
            if self._entry.on_notice is None:
                self._rest_timer = self._loop.call_later(REST_SECONDS, self._rest, self._asked)

    def _rest(self, asked: int) -> None:
        """Detach when nothing was asked since; else look again later."""
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
        """Send what the pipe takes now; the rest when it takes more."""
        if not self._let_go.alive:
            return
        try:
            del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            # Its end comes on another pipe.
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
            # It can't reply any more; its end and exit code come on another pipe.
            self._loop.remove_reader(self._number)
            self._supervised.end()

    def _receive(self) -> bytes | None:
        """Take in a piece of what has come: None when nothing has, empty when no more can. Raises BrokenFrame."""
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
        if frame.kind == FrameKind.NOTICE:
            match frame.payload():
                case [str(name), value] if self._entry.on_notice:
                    self._entry.on_notice(name, value)
                case _:
                    pass
            return
        pending = self._pending.get(frame.id)
        if pending is None or frame.kind in {FrameKind.REQUEST, FrameKind.CANCEL, FrameKind.MORE}:
            raise BrokenFrame("nobody asked for it")
        if frame.kind in {FrameKind.PROGRESS, FrameKind.CHUNK}:
            pending.take(frame)
            return
        del self._pending[frame.id]
        pending.end(frame)

    def _look(self) -> None:
        if self._supervised.read_states():
            return
        with suppress(BrokenFrame):
            # What it sent before its end counts.
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


def _let_go(supervised: Supervised, channel: socket.socket, printed: int) -> None:
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
