"""Stores what a session sent to models and received, byte for byte, next to its journal.

A request usually extends the last one, so only its new bytes are appended to ``requests.bin``, each content once by its
SHA-256. ``requests.jsonl`` describes how to assemble them. A thread writes the files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

from ba_tui.core.errors import StorageError, UsageError, started
from ba_tui.core.ports.sessions import SavedRequest
from ba_tui.resources import open_regular
from ba_tui.sessions.records import Record, forwards, loads

log = logging.getLogger(__name__)
DATA = "requests.bin"
INDEX = "requests.jsonl"
LIMIT = 256 * 1024 * 1024
"""Maximum bytes of a session's requests; later ones are not stored."""
RESPONSE_LIMIT = 16 * 1024 * 1024
DELAY = 0.25
"""Seconds to wait so that requests and responses are written together."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
Chunk: TypeAlias = "tuple[()] | tuple[str, int, int]"
"""Bytes in the data file: their SHA-256, offset and size; empty for no bytes."""


class RequestStore:
    """Stores the requests of the session in ``folder``, which must exist: a session without a file stores none."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._session = folder
        self._limit = limit
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        # The following fields belong to the writing thread.
        self._files: tuple[int, ...] = ()
        self._size = 0
        self._count = 0
        self._chunks: dict[str, Chunk] = {}
        self._stopped = False

    def recorder(self, model: str) -> ProviderRecorder:
        """Return a recorder for one provider of the model with this id."""
        return ProviderRecorder(self, model)

    def close(self) -> None:
        """Wait until everything is written."""
        if self._thread:
            self._closing.set()
            self._queue.put(None)
            self._thread.join()
            self._thread = None
            self._closing.clear()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in the writing thread, after all earlier work."""
        if self._stopped:
            return
        if self._thread is None:
            # Use a plain queue: an executor's futures cost more than the writing.
            self._thread = started(self._work, "requests")
        self._queue.put(work)

    def _work(self) -> None:
        while work := self._queue.get():
            if self._queue.empty():
                # Write between the steps, so that waking up does not delay the next request.
                self._closing.wait(DELAY)
            try:
                if not self._stopped:
                    work()
            except (OSError, StorageError) as error:
                self._stopped = True
                log.warning("requests of %s are no longer kept: %s", self._session.name, error)
        _close(self._files)
        self._files = ()

    def begin(self, record: Record, new: memoryview) -> int:
        """Store a request of which ``new`` is not stored yet; return its number, 0 if it was not stored."""
        self._open()
        chunk = None if self._stopped else self._stored(new)
        if chunk is None:
            return 0
        self._count += 1
        self._append({"n": self._count, **record, "chunk": chunk})
        return self._count

    def answer(self, number: int, data: bytes) -> None:
        """Store the response to a request."""
        chunk = self._stored(memoryview(data))
        if chunk is not None:
            self._append({"n": number, "response": chunk, "received": len(data)})

    def newest(self, model: str) -> tuple[int, bytes]:
        """Return the newest request to a model, without its tail; (0, b"") if there is none."""
        self._open()
        lines = _index(self._session)
        number = max((n for n, line in lines.items() if line.get("model") == model), default=0)
        try:
            return (number, _prefix(self._session, lines, number)) if number else (0, b"")
        except StorageError:
            return 0, b""

    def _open(self) -> None:
        if self._files:
            return
        if not self._session.is_dir():
            raise FileNotFoundError(f"there is no folder {self._session}")
        self._files = tuple(os.open(self._session / name, _APPEND, 0o600) for name in (DATA, INDEX))
        self._size = os.fstat(self._files[0]).st_size
        lines = _index(self._session)
        self._count = max(lines, default=0)
        self._stopped = any("limit" in line for line in lines.values())
        chunks = [line[key] for line in lines.values() for key in ("chunk", "response") if line.get(key)]
        # After a power failure, the data file may be shorter than the index states.
        self._chunks = {chunk[0]: chunk for chunk in chunks if chunk[1] + chunk[2] <= self._size}

    def _stored(self, data: memoryview) -> Chunk | None:
        """Return where ``data`` is stored; None if there is no space for it."""
        if not data:
            return ()
        name = hashlib.sha256(data).hexdigest()
        if chunk := self._chunks.get(name):
            return chunk
        if self._size + len(data) > self._limit:
            self._append({"n": self._count + 1, "limit": self._limit})
            self._stopped = True
            return None
        _write(self._files[0], data)
        chunk = self._chunks[name] = (name, self._size, len(data))
        self._size += len(data)
        return chunk

    def _append(self, record: Record) -> None:
        # Begin with a line end, so that a truncated line does not damage the next one.
        _write(self._files[1], b"\n" + json.dumps(record, separators=(",", ":")).encode())


class ProviderRecorder:
    """core.ports.sessions.Recorder: the requests of one provider, each stored as its difference from the last."""

    def __init__(self, store: RequestStore, model: str) -> None:
        self._store = store
        self._model = model
        self._last = 0
        """The number of the newest request; ``_length`` is its size without the tail."""
        self._length = 0

    def sent(self, body: bytes, kept: int, tail: int) -> RecordedExchange:
        """See core.ports.sessions.Recorder."""
        exchange = RecordedExchange(self._store)
        self._store.submit(partial(self._save, exchange, body, kept, tail, time.time()))
        return exchange

    def _save(self, exchange: RecordedExchange, body: bytes, kept: int, tail: int, at: float) -> None:
        if not kept or not self._last:
            # After reopening or compression, much of the last request still occurs in this one.
            self._last, before = self._store.newest(self._model)
            self._length = len(before)
            kept = _common(before, body)
        end = len(body) - tail
        kept = min(kept, self._length, end)
        record = {
            "at": round(at, 3),
            "model": self._model,
            "after": self._last,
            "keep": kept,
            "tail": body[end:].decode("latin-1"),
            "bytes": len(body),
        }
        if number := self._store.begin(record, memoryview(body)[kept:end]):
            self._last, self._length, exchange.number = number, end, number


class RecordedExchange:
    """core.ports.sessions.Exchange."""

    def __init__(self, store: RequestStore) -> None:
        self._store = store
        self._data: list[bytes] = []
        self._room = RESPONSE_LIMIT
        self.number = 0
        """Set and read only by the writing thread."""

    def received(self, data: bytes) -> None:
        """See core.ports.sessions.Exchange."""
        if self._room > 0:
            self._data.append(data[: self._room])
            self._room -= len(data)

    def end(self) -> None:
        """See core.ports.sessions.Exchange."""
        data, self._data = self._data, []
        if data:
            self._store.submit(partial(self._save, data))

    def _save(self, data: Sequence[bytes]) -> None:
        if self.number:
            self._store.answer(self.number, b"".join(data))


def saved_requests(session: Path) -> Iterator[SavedRequest]:
    """Yield the stored requests of the session in the folder ``session``, oldest first."""
    for number, line in sorted(_index(session).items()):
        if "chunk" in line:
            yield SavedRequest(number, line["at"], line["model"], line["bytes"], line.get("received", 0))


def request_body(session: Path, number: int) -> bytes:
    """Return request ``number``, byte for byte.

    Raises:
        UsageError: there is no such request. StorageError: a part of it is missing or damaged.
    """
    lines = _index(session)
    line = _line(session, lines, number)
    return _prefix(session, lines, number) + str(line["tail"]).encode("latin-1")


def response_body(session: Path, number: int) -> bytes:
    """Return what was received for request ``number``, byte for byte. Raises as ``request_body``."""
    line = _line(session, _index(session), number)
    if "response" not in line:
        raise UsageError(f"Request {number} has no response.", "It failed, or was stopped before one came.")
    return _chunk(session, line["response"])


def _line(session: Path, lines: dict[int, Record], number: int) -> Record:
    line = lines.get(number, {})
    if "chunk" in line:
        return line
    known = [n for n, each in lines.items() if "chunk" in each]
    if not known:
        raise UsageError(f"Session {session.name} has no saved requests.", "Imported sessions and forks begin without.")
    if full := next((each["limit"] for each in lines.values() if "limit" in each), 0):
        hint = f"The requests of a session may take {full // 1024 // 1024} MB; later ones are not kept."
    else:
        hint = "Leave the number out to list them."
    raise UsageError(f"Session {session.name} has requests 1 to {max(known)}, not {number}.", hint)


def _index(session: Path) -> dict[int, Record]:
    """Return the lines of the index by request; a request and its response share an entry."""
    found: dict[int, Record] = {}
    try:
        for text in forwards(session / INDEX):
            line = loads(text)
            if line is not None and isinstance(line.get("n"), int):
                found.setdefault(line["n"], {}).update(line)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(
            f"{session / INDEX} can't be read: {error.strerror or error}.", "Check its rights."
        ) from error
    return found


def _prefix(session: Path, lines: dict[int, Record], number: int) -> bytes:
    """Return the body of a request without its tail."""
    chain: list[Record] = []
    while number:
        line = lines.get(number, {})
        before = line.get("after")
        if "chunk" not in line or not isinstance(before, int) or not 0 <= before < number:
            raise StorageError(f"Request {number} of session {session.name} is damaged.", "It can't be shown.")
        chain.append(line)
        number = before
    body = bytearray()
    for line in reversed(chain):
        del body[line["keep"] :]
        body += _chunk(session, line["chunk"])
    return bytes(body)


def _chunk(session: Path, chunk: Sequence[Any]) -> bytes:
    if not chunk:
        return b""
    path, (name, offset, size) = session / DATA, chunk
    try:
        with open_regular(path) as file:
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise StorageError(
            f"{path} can't be read: {error.strerror or error}.", "The request can't be shown."
        ) from error
    if hashlib.sha256(data).hexdigest() != name:
        raise StorageError(f"{path} is damaged from byte {offset} on.", "The request can't be shown.")
    return data


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    first, second = memoryview(one), memoryview(other)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle - 1)
    return low


def _write(handle: int, data: bytes | memoryview) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _close(handles: Sequence[int]) -> None:
    for handle in handles:
        os.close(handle)
