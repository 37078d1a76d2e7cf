"""A server that keeps each request as it came, whatever its path; it answers with a short stream, or with a token."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.loopback.server import Seen

TOKEN = {"access_token": "token-of-the-exchange", "token_type": "Bearer", "expires_in": 3600}
ENDED = b'data: {"type": "message_stop"}\n\ndata: [DONE]\n\n'


class RecordingServer:
    """``requests`` to models and ``exchanges`` of tokens, in the order in which they came. ``opened`` connections."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self.requests: list[Seen] = []
        self.exchanges: list[Seen] = []
        self.opened = 0
        self.refused = 0
        """How many of the next requests are answered with 401."""
        self._writers: list[asyncio.StreamWriter] = []
        self.closed = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self._answer(Seen(method, path, headers, body), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def hang_up(self) -> None:
        """Break all connections, and wait until the other side can know."""
        for writer in self._writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        token = seen.path.endswith("/oauth/token")
        (self.exchanges if token else self.requests).append(seen)
        data, kind = (json.dumps(TOKEN).encode(), "application/json") if token else (ENDED, "text/event-stream")
        status = "401 No" if self.refused and not token else "200 OK"
        self.refused -= status != "200 OK"
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data
        )


@asynccontextmanager
async def recording(context: ssl.SSLContext | None = None) -> AsyncGenerator[RecordingServer]:
    """The server while it runs, with TLS by ``context``."""
    recorder, tasks = RecordingServer("https" if context else "http"), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(recorder.serve(reader, writer)))

    server = await asyncio.start_server(connected, "localhost", 0, ssl=context)
    recorder.port = server.sockets[0].getsockname()[1]
    try:
        yield recorder
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
