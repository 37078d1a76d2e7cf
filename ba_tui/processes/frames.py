"""The frames that a worker and its client exchange: a head of 21 bytes, a value as JSON, and bytes of any kind.

Both sides use this module. Who sends what when is worker.py's and serving.py's.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

HEAD = struct.Struct(">4sBQII")
MAGIC = b"baw1"
PACKET = 0x80
"""Set in a kind whose frame carries bytes beside its value, maybe none."""
MAX_VALUE_BYTES = 64_000_000
MAX_DATA_BYTES = 1_000_000_000
WINDOW = 16
"""Chunks of one stream that may be on their way: the sender waits until the reader has taken some."""


class FrameKind(IntEnum):
    """From the client: REQUEST, CANCEL and MORE (a chunk was taken). From the worker: RESULT and FAILURE end a request;
    PROGRESS and CHUNK come before; NOTICE belongs to no request."""

    REQUEST = 1
    CANCEL = 2
    MORE = 3
    RESULT = 4
    FAILURE = 5
    PROGRESS = 6
    CHUNK = 7
    NOTICE = 8


class Packet(NamedTuple):
    """A value that JSON can hold, with bytes of any kind beside it, as a table in Arrow."""

    value: Any
    data: bytes


class Frame(NamedTuple):
    """``value`` is still JSON text; ``data`` is None where the sender gave no packet."""

    kind: FrameKind
    id: int
    value: bytes
    data: bytes | None

    def payload(self) -> Any:
        """The value, or the packet. Raises BrokenFrame when it is no JSON."""
        try:
            value = json.loads(self.value)
        except (ValueError, RecursionError) as error:
            raise BrokenFrame("its value is not JSON") from error
        return value if self.data is None else Packet(value, self.data)


class BrokenFrame(Exception):
    """The bytes that came are no frame."""


def encoded(kind: FrameKind, id: int, payload: object = None) -> bytes:
    """A frame as bytes. Raises TypeError, ValueError or RecursionError when ``payload`` is not JSON, or too large."""
    value, data = (payload.value, payload.data) if isinstance(payload, Packet) else (payload, None)
    text = json.dumps(value, separators=(",", ":")).encode()
    if len(text) > MAX_VALUE_BYTES or (data is not None and len(data) > MAX_DATA_BYTES):
        raise ValueError(f"{len(text)} bytes of JSON and {len(data or b'')} others are too large for one message")
    code = kind if data is None else kind | PACKET
    return HEAD.pack(MAGIC, code, id, len(text), len(data or b"")) + text + (data or b"")


class FrameReader:
    """Takes frames out of a stream of bytes."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole by now. Raises BrokenFrame; nothing can be read after that."""
        self._received += data
        while len(self._received) >= HEAD.size:
            magic, code, id, value, more = HEAD.unpack_from(self._received)
            if magic != MAGIC or value > MAX_VALUE_BYTES or more > MAX_DATA_BYTES:
                raise BrokenFrame("its head is broken")
            end = HEAD.size + value + more
            if len(self._received) < end:
                return
            try:
                kind = FrameKind(code & ~PACKET)
            except ValueError as error:
                raise BrokenFrame("its kind is unknown") from error
            held = bytes(memoryview(self._received)[HEAD.size : end])
            del self._received[:end]
            yield Frame(kind, id, held[:value], held[value:] if code & PACKET else None)
