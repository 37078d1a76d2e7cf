"""The server itself: HTTP/1.1 with kept connections, on asyncio, in a thread of its own.

What to answer is in replies.py, how an answer looks in formats.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ba_tui.providers.scripted import ModelScript, ScriptFailure, Step
from tests.loopback import formats
from tests.loopback.formats import Format
from tests.loopback.replies import JSON, SSE, Answer, Pace, Raw, Reply, Status

STATUS: Mapping[str, int] = {
    "overloaded": 529,
    "rate_limited": 429,
    "auth_failed": 401,
    "model_not_found": 404,
    "bad_request": 400,
    "context_overflow": 400,
}
PLACE = "@place@"
STREAMED = re.compile(rb'"stream": ?true')
"""Looked for instead of parsed: a long conversation would take the server longer than its client."""


class _Closed(Exception):
    pass


@dataclass(frozen=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ModelServer:
    """Answers each model request with the next reply of ``script``; after the last, with ``last`` or an error 500.

    ``models`` is what ``/v1/models`` lists; ``pages`` are answers by path, before all others.
    Conditions (``when``) of steps are not looked at.
    """

    def __init__(
        self,
        script: ModelScript | Iterable[Reply],
        *,
        last: Reply | None = None,
        models: Iterable[str] = ("loopback",),
        pages: Mapping[str, Raw] | None = None,
        port: int = 0,
        rate: float = 0.0,
    ) -> None:
        self._replies = iter(script.steps if isinstance(script, ModelScript) else script)
        self._last = last or (script.last if isinstance(script, ModelScript) else None)
        self._models = tuple(models)
        self._pages = pages or {}
        self.asked: list[Seen] = []
        """Requests for pages."""
        self._rate = rate
        self._wanted_port = port
        self._count = 0
        self._events: dict[tuple[int, Format], tuple[Step, list[bytes]]] = {}
        self._arrival = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="model-server", daemon=True)
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self.requests: list[Seen] = []
        self.port = 0

    @property
    def url(self) -> str:
        """For the Messages API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """For Chat Completions."""
        return f"{self.url}/v1"

    def arrived(self, number: int, timeout: float = 10.0) -> bool:
        """Wait, in this thread, until so many model requests have come in; False when they have not in time."""
        with self._arrival:
            return self._arrival.wait_for(lambda: len(self.requests) >= number, timeout)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._connection(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", self._wanted_port, limit=2**20)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._answer(await self._read(reader), writer)
        except (_Closed, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
        return Seen(method, path, headers, body)

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        path = seen.path.split("?")[0]
        if page := self._pages.get(path):
            self.asked.append(seen)
            await self._send(page, writer)
            return
        if seen.method == "GET" and path == "/v1/models":
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in self._models]}
            await self._send(Raw(json.dumps(listed).encode(), content_type=JSON), writer)
            return
        format = formats.spoken_at(path)
        if format is None:
            await self._send(Raw(b'{"error":{"message":"no such path"}}', 404, JSON), writer)
            return
        with self._arrival:
            self.requests.append(seen)
            self._arrival.notify_all()
        self._count += 1
        framed = path.endswith(formats.FRAMED)
        reply = next(self._replies, self._last)
        if reply is None:
            reply = Status(500, "The script has ended.")
        if isinstance(reply, Step):
            reply = self._faulty(reply)
        if isinstance(reply, Status):
            headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
            body = formats.failure(format, reply.status, reply.message, reply.code)
            reply = Raw(body, reply.status, JSON, headers)
        if isinstance(reply, Raw):
            await self._send(reply, writer)
        elif not STREAMED.search(seen.body) and not framed:
            await self._send(Raw(formats.whole(format, reply.step, str(self._count)), content_type=JSON), writer)
        else:
            await self._stream(reply, format, writer, framed)

    def _faulty(self, step: Step) -> Answer | Status:
        """A step as the script has it: an error becomes a status, or a break after so much of the answer."""
        error = step.error
        if error is None:
            return Answer(step)
        if error.after or error.kind == "connection_lost":
            return Answer(step, cut=0.5)
        return Status(STATUS[error.kind], _words(error), "" if error.retry_after is None else str(error.retry_after))

    def _encoded(self, step: Step, format: Format) -> list[bytes]:
        key = (id(step), format)
        if key not in self._events:
            self._events[key] = (step, formats.stream(format, step, PLACE))
        place, count = PLACE.encode(), str(self._count).encode()
        return [event.replace(place, count) if place in event else event for event in self._events[key][1]]

    async def _stream(self, answer: Answer, format: Format, writer: asyncio.StreamWriter, framed: bool) -> None:
        events = self._encoded(answer.step, format)
        if answer.silent:
            del events[-formats.closing(format) :]
        if answer.noise:
            events[1:1] = formats.noise(format)
        if answer.malformed:
            middle = len(events) // 2
            events[middle] = events[middle].rstrip()[:-7] + b"\n\n"
        if framed:
            events = [formats.framed(event) for event in events]
        pace = answer.pace if answer.pace.rate or not self._rate else Pace(rate=self._rate)
        body = b"".join(events)
        if answer.cut is not None:
            kept = body[: int(len(body) * answer.cut)]
            writer.write(_head(200, SSE, {"transfer-encoding": "chunked"}) + b"%x\r\n" % len(body) + kept)
            await writer.drain()
            raise _Closed
        if answer.silent:
            writer.write(_head(200, SSE, {"connection": "close"}))
            await _paced(body, pace, writer.write, writer)
            raise _Closed
        writer.write(_head(200, SSE, {"transfer-encoding": "chunked"}))
        if pace.piece or pace.rate or pace.hold:
            await _paced(body, pace, lambda data: writer.write(b"%x\r\n%b\r\n" % (len(data), data)), writer)
        else:
            for event in events:
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _send(self, raw: Raw, writer: asyncio.StreamWriter) -> None:
        """Close-delimited where the body is a stream, as some servers do: its end is no proof that it is whole."""
        if raw.content_type == SSE:
            writer.write(_head(raw.status, raw.content_type, {**raw.headers, "connection": "close"}))
            await _paced(raw.body, raw.pace, writer.write, writer)
            raise _Closed
        writer.write(_head(raw.status, raw.content_type, {**raw.headers, "content-length": str(len(raw.body))}))
        await _paced(raw.body, raw.pace, writer.write, writer)


def _words(error: ScriptFailure) -> str:
    return f"prompt is too long: {error.message}" if error.kind == "context_overflow" else error.message


def _head(status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


async def _paced(body: bytes, pace: Pace, write: Any, writer: asyncio.StreamWriter) -> None:
    piece = pace.piece or (max(16, int(pace.rate / 50)) if pace.rate else 0) or (len(body) // 2 + 1)
    started, sent = asyncio.get_running_loop().time(), 0
    for start in range(0, len(body), piece):
        if pace.hold and start * 2 >= len(body):
            while not pace.hold.is_set():  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(0.005)
        data = body[start : start + piece]
        write(data)
        await writer.drain()
        sent += len(data)
        if pace.rate:
            await asyncio.sleep(max(0.0, started + sent / pace.rate - asyncio.get_running_loop().time()))
        elif pace.piece:
            await asyncio.sleep(0)
