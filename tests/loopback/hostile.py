"""A server on loopback that keeps no rule: each connection is played by a coroutine, byte for byte.

What a play sends is bounded: it ends with the client's connection, or after MOST bytes. Well-behaved answers are
server.py's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Self, TypeAlias

Play: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MOST = 6_000_000_000
OK = b"HTTP/1.1 200 OK\r\n"
SSE = b"content-type: text/event-stream\r\n\r\n"
JSON = b"content-type: application/json\r\n\r\n"


class HostileServer:
    """Plays ``play`` to every connection, or with a list the first to the first, the last to all that are left.

    ``asked`` counts the requests that came in whole, ``sent`` the bytes of all answers.
    """

    def __init__(self, play: Play | Iterable[Play], tls: ssl.SSLContext | None = None) -> None:
        self._plays = [play] if callable(play) else list(play)
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._stop: asyncio.Event | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.asked = 0
        self.port = 0

    @property
    def url(self) -> str:
        host = "localhost" if self._tls else "127.0.0.1"
        return f"http{'s' if self._tls else ''}://{host}:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *error: object) -> None:
        if self._stop:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._run())
        self._loop.close()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        host = "localhost" if self._tls else "127.0.0.1"
        server = await asyncio.start_server(self._connected, host, 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._played(reader, writer)
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _played(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0"
            )
            await reader.readexactly(int(length))
            play = self._plays[min(self.asked, len(self._plays) - 1)]
            self.asked += 1
            await play(reader, writer)
            if writer.transport.is_closing():
                return


def answer(head: bytes, body: Iterable[bytes] | AsyncIterator[bytes] = (), *, close: bool = True) -> Play:
    """Sends ``head``, then the pieces of ``body`` as fast as they are taken; then closes, or keeps the connection."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        sent = 0
        if isinstance(body, AsyncIterator):
            async for piece in body:
                writer.write(piece)
                await writer.drain()
        else:
            for piece in body:
                writer.write(piece)
                await writer.drain()
                # A client that is gone shows only when the loop runs.
                await asyncio.sleep(0)
                if (sent := sent + len(piece)) > MOST:
                    break
        await writer.drain()
        if close:
            writer.write_eof()
            await reader.read()

    return play


def endless(piece: bytes, first: bytes = b"") -> Iterator[bytes]:
    """``first``, then ``piece`` over and over, in writes of about 64 KB."""
    if first:
        yield first
    many = piece * max(1, 65_536 // len(piece))
    sent = 0
    while sent < MOST:
        yield many
        sent += len(many)


class Repeated:
    """Pieces that begin anew for each connection: an iterator would be empty for the second."""

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())


def drip(data: bytes, seconds: float) -> Play:
    """``data`` byte by byte, ``seconds`` between two, then silence until the client goes."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in data:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(seconds)
        await reader.read()

    return play
