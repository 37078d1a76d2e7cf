"""The worker's side: reads requests, runs the handlers of its room, and sends what they say.

Runs in the worker process, started by worker_main.py. The client is worker.py.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

from ba_tui.processes.frames import WINDOW, BrokenFrame, Frame, FrameKind, FrameReader, Packet, encoded

CHUNK_BYTES = 262_144
MAX_MESSAGE_CHARS = 4_000


class HandlerFailed(Exception):
    """What a handler raises when it can't do what was asked: the client raises WorkerFailed with the same words."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RequestCancelled(Exception):
    """Raised in a handler that sends chunks after its request was cancelled."""


class WorkerRequest:
    """One request. ``payload`` is a JSON value, or a ``Packet`` when the client sent bytes too."""

    def __init__(self, channel: WorkerChannel, id: int, method: str, payload: object) -> None:
        self.method = method
        self.payload = payload
        self.cancelled = threading.Event()
        self._channel = channel
        self._id = id
        self._room = threading.Semaphore(WINDOW)
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def progress(self, value: object) -> None:
        """Tell the client how far it is."""
        self._channel.send(FrameKind.PROGRESS, self._id, value)

    def chunk(self, payload: object) -> None:
        """Send one part of a streamed reply; waits while the client takes none. Raises RequestCancelled."""
        self._room.acquire()
        if self.cancelled.is_set():
            raise RequestCancelled
        self._channel.send(FrameKind.CHUNK, self._id, payload)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` in another thread when the client cancels; at once when it has. It must not wait."""
        with self._lock:
            self._callbacks.append(callback)
        if self.cancelled.is_set():
            callback()

    def cancel(self) -> None:
        """The client does not wait any more."""
        self.cancelled.set()
        self._room.release()
        with self._lock:
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback()

    def taken(self) -> None:
        """The client has taken a chunk."""
        self._room.release()


Handler: TypeAlias = Callable[[WorkerRequest], object]


class WorkerChannel:
    """The connection to the client. Sending is thread-safe."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket(fileno=number)
        self._sending = threading.Lock()
        self._waiting: SimpleQueue[WorkerRequest] = SimpleQueue()
        self._open: dict[int, WorkerRequest] = {}
        self._own = os.getpid()

    def serve(self, handlers: Mapping[str, Handler], threads: int = 1) -> None:
        """Answer requests until the client is gone. Never returns.

        With one thread they run in the main one, one after the other; with more, so many at a time.
        """
        threading.Thread(target=self._read, daemon=True, name="requests").start()
        for number in range(threads - 1):
            threading.Thread(target=self._work, args=(handlers,), daemon=True, name=f"handler {number + 2}").start()
        self._work(handlers)

    def notify(self, name: str, value: object) -> None:
        """Tell the client something that belongs to no request."""
        self.send(FrameKind.NOTICE, 0, [name, value])

    def send(self, kind: FrameKind, id: int, payload: object) -> None:
        """Send one frame. Ends the process when the client is gone; raises as ``encoded`` does."""
        frame = encoded(kind, id, payload)
        try:
            with self._sending:
                self._socket.sendall(frame)
        except OSError:
            os._exit(0)

    def _read(self) -> None:
        reader = FrameReader()
        try:
            while data := self._socket.recv(CHUNK_BYTES):
                for frame in reader.feed(data):
                    self._take(frame)
        except (OSError, BrokenFrame, ValueError, TypeError) as error:
            with suppress(Exception):
                sys.stderr.write(f"The worker's channel broke: {error}\n")
        os._exit(0)

    def _take(self, frame: Frame) -> None:
        if frame.kind == FrameKind.REQUEST:
            payload = frame.payload()
            method, value = payload.value if isinstance(payload, Packet) else payload
            given = value if frame.data is None else Packet(value, frame.data)
            request = self._open[frame.id] = WorkerRequest(self, frame.id, method, given)
            self._waiting.put(request)
        elif request := self._open.get(frame.id):
            if frame.kind == FrameKind.CANCEL:
                request.cancel()
            else:
                request.taken()

    def _work(self, handlers: Mapping[str, Handler]) -> None:
        while True:
            self._answer(self._waiting.get(), handlers)

    def _answer(self, request: WorkerRequest, handlers: Mapping[str, Handler]) -> None:
        id = request._id
        try:
            if request.cancelled.is_set():
                raise RequestCancelled
            handler = handlers.get(request.method)
            if handler is None:
                raise HandlerFailed("internal_error", f"there is no method {request.method!r}")
            reply = encoded(FrameKind.RESULT, id, handler(request))
        except BaseException as error:  # noqa: BLE001 - any failure becomes a reply
            reply = encoded(FrameKind.FAILURE, id, [_kind(error), _message(error)])
        if os.getpid() != self._own:
            # The handler forked and both sides came back here; only the first may answer.
            os._exit(0)
        del self._open[id]
        try:
            with self._sending:
                self._socket.sendall(reply)
        except OSError:
            os._exit(0)


def _kind(error: BaseException) -> str:
    if isinstance(error, HandlerFailed):
        return error.kind
    return "interrupted" if isinstance(error, RequestCancelled) else "internal_error"


def _message(error: BaseException) -> str:
    """In words, for people."""
    if isinstance(error, RequestCancelled):
        return "the request was cancelled"
    try:
        text = str(error)[:MAX_MESSAGE_CHARS]
    except Exception:  # noqa: BLE001 - an error whose words raise is still an error
        text = ""
    name = type(error).__name__
    return text if isinstance(error, HandlerFailed) else f"{name}: {text}" if text else name
