"""A real web server on loopback for the web tools: says what a test wants said, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from ba_tui.features.web.client import WebClient, WebLimits
from ba_tui.tools.addresses import AddressReach, read_reach


@dataclass(frozen=True)
class Page:
    """``hang``: send nothing more after the body, and keep the connection; ``short``: close before the promised end."""

    body: str | bytes = ""
    type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    short: bool = False

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Page | Callable[[Request], Page]


def redirect(to: str, status: int = 302) -> Page:
    return Page(status=status, headers={"Location": to})


class WebServer:
    """``pages`` by path without query. Unknown paths are answered 404."""

    def __init__(self, pages: Mapping[str, Answer]) -> None:
        self.pages = dict(pages)
        self.requests: list[Request] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    def url(self, path: str, host: str = "site.example") -> str:
        return f"http://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, _ = first.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(method, path, headers, body)
        self.requests.append(request)
        answer = self.pages.get(path.partition("?")[0], Page("<h1>Nothing here</h1>", status=404))
        page = answer if isinstance(answer, Page) else answer(request)
        length = len(page.content) + (1 if page.hang or page.short else 0)
        said = {"Content-Type": page.type, "Content-Length": str(length), "Connection": "close", **page.headers}
        lines = [f"HTTP/1.1 {page.status} Told", *(f"{name}: {value}" for name, value in said.items() if value)]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + page.content)
        await writer.drain()
        if page.hang:
            await reader.read()


class OddServer(WebServer):
    """Speaks no HTTP: hears the first bytes, says ``words`` and hangs up; with none it stays silent."""

    def __init__(self, words: bytes = b"") -> None:
        super().__init__({})
        self.words = words
        self.heard: list[bytes] = []

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.read(4_000))
        writer.write(self.words)
        await writer.drain()
        if not self.words:
            await reader.read()


def names(*extra: tuple[str, tuple[str, ...]]) -> Callable[[str, int], Awaitable[tuple[str, ...]]]:
    """A resolver that knows these names only, every ``*.example`` on loopback."""
    known = dict(extra)

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        if host in known:
            return known[host]
        return ("127.0.0.1",) if host.endswith(".example") else ()

    return resolve


def web(
    reach: AddressReach | None = None,
    limits: WebLimits | None = None,
    resolve: Callable[[str, int], Awaitable[tuple[str, ...]]] | None = None,
    proxies: Mapping[str, str] | None = None,
) -> WebClient:
    """The way to loopback servers, and to nothing else that is private."""
    return WebClient(
        read_reach(("127.0.0.0/8",)) if reach is None else reach,
        limits or WebLimits(),
        resolve or names(),
        proxies or {},
    )
