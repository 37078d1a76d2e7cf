"""The worker's side: read requests, run the handlers of the worker's module, send replies; and the frames of the
protocol.

A frame is a head of 17 bytes and a value as JSON. Runs in the worker process, started by worker_main.py; the
client is worker.py, which uses the same frames.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

HEAD = struct.Struct(">4sBQI")
MAGIC = b"baw1"
MAX_VALUE_BYTES = 64_000_000


class FrameKind(IntEnum):
    """From the client: REQUEST and CANCEL. From the worker: PROGRESS, then RESULT or FAILURE, which end a request."""

    REQUEST = 1
    CANCEL = 2
    RESULT = 3
    FAILURE = 4
    PROGRESS = 5


class Frame(NamedTuple):
    """A frame. ``value`` is JSON text."""

    kind: FrameKind
    id: int
    value: bytes

    def payload(self) -> Any:
        """Return the value. Raises BrokenFrame for invalid JSON."""
        try:
            return json.loads(self.value)
        except (ValueError, RecursionError) as error:
            raise BrokenFrame("its value is not JSON") from error


class BrokenFrame(Exception):
    """The received bytes are not a frame."""


def encoded(kind: FrameKind, id: int, payload: object = None) -> bytes:
    """Return a frame as bytes. Raises TypeError, ValueError or RecursionError if ``payload`` is not JSON, or too
    large."""
    text = json.dumps(payload, separators=(",", ":")).encode()
    if len(text) > MAX_VALUE_BYTES:
        raise ValueError(f"{len(text)} bytes of JSON are too large for one message")
    return HEAD.pack(MAGIC, kind, id, len(text)) + text


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete. Raises BrokenFrame, after which nothing can be read."""
        self._received += data
        while len(self._received) >= HEAD.size:
            magic, code, id, size = HEAD.unpack_from(self._received)
            if magic != MAGIC or size > MAX_VALUE_BYTES:
                raise BrokenFrame("its head is broken")
            end = HEAD.size + size
            if len(self._received) < end:
                return
            try:
                kind = FrameKind(code)
            except ValueError as error:
                raise BrokenFrame("its kind is unknown") from error
            held = bytes(memoryview(self._received)[HEAD.size : end])
            del self._received[:end]
            yield Frame(kind, id, held)


CHUNK_BYTES = 262_144
MAX_MESSAGE_CHARS = 4_000


class HandlerFailed(Exception):
    """Raised by handlers that cannot fulfil a request: the client raises WorkerFailed with the same message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RequestCancelled(Exception):
    """Raised by handlers that stop because their request was cancelled."""


class WorkerRequest:
    """A request. ``payload`` is a JSON value."""

    def __init__(self, channel: WorkerChannel, id: int, method: str, payload: object) -> None:
        self.method = method
        self.payload = payload
        self.cancelled = threading.Event()
        self._channel = channel
        self._id = id
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def progress(self, value: object) -> None:
        """Send a progress report."""
        self._channel.send(FrameKind.PROGRESS, self._id, value)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` in another thread when the client cancels, or now if it has. The callback must not
        block."""
        with self._lock:
            self._callbacks.append(callback)
        if self.cancelled.is_set():
            callback()

    def cancel(self) -> None:
        """Cancel the request: the client no longer waits."""
        self.cancelled.set()
        with self._lock:
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback()


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
        """Answer requests until the client is gone. Never returns. With one thread, handlers run one after the other in
        the main thread; with more, so many run concurrently."""
        threading.Thread(target=self._read, daemon=True, name="requests").start()
        for number in range(threads - 1):
            threading.Thread(target=self._work, args=(handlers,), daemon=True, name=f"handler {number + 2}").start()
        self._work(handlers)

    def send(self, kind: FrameKind, id: int, payload: object) -> None:
        """Send one frame. Ends the process if the client is gone; raises as ``encoded`` does."""
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
            request = self._open[frame.id] = WorkerRequest(self, frame.id, *frame.payload())
            self._waiting.put(request)
        elif request := self._open.get(frame.id):
            request.cancel()

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
            # The handler forked and both processes returned here; only the parent may answer.
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
    """Return the error as words for people."""
    if isinstance(error, RequestCancelled):
        return "the request was cancelled"
    try:
        text = str(error)[:MAX_MESSAGE_CHARS]
    except Exception:  # noqa: BLE001 - an error whose words raise is still an error
        text = ""
    name = type(error).__name__
    return text if isinstance(error, HandlerFailed) else f"{name}: {text}" if text else name
