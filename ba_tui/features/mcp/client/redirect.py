"""Where the browser comes back to after a login: one page on 127.0.0.1 that waits for one answer."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from ba_tui.core.ports.mcp import McpError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line

HOST = "127.0.0.1"
PATH = "/callback"
MOST_BYTES = 16_000
SECONDS = 10.0
"""A connection that sends nothing is closed after that."""
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>ba</title>"
    "<body style='font-family:sans-serif;margin:4em'><p>{}</p></body>"
)


class Redirect:
    """A listener on a port of 127.0.0.1. Only an answer with the ``state`` that was sent out counts: any page that is
    open in a browser can send requests here."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._open: set[asyncio.StreamWriter] = set()
        self.state = ""

    async def open(self, port: int = 0) -> str:
        """Listen on ``port``, 0 for any free one; returns the address to come back to. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, HOST, port, limit=MOST_BYTES)
        taken = self._server.sockets[0].getsockname()[1]
        return f"http://{HOST}:{taken}{PATH}"

    async def answer(self) -> Mapping[str, str]:
        """Wait for what the authorization server sends back: ``code``, and ``iss`` where it says so.

        Raises:
            McpError: the login was refused there.
        """
        found = await self._answer
        if error := found.get("error"):
            why = one_line(paintable(found.get("error_description") or error, newlines=False), 200)
            raise McpError(f"{self._name} refused the login: {why}.", f"Try again: ba mcp login {self._name}")
        return found

    def close(self) -> None:
        """Stop listening."""
        if self._server:
            self._server.close()
        for writer in self._open:
            writer.close()
        self._answer.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
            body = _PAGE.format(html.escape(text)).encode()
            lines = (
                f"HTTP/1.1 {status}",
                "Content-Type: text/html; charset=utf-8",
                f"Content-Length: {len(body)}",
                "Cache-Control: no-store",
                "Referrer-Policy: no-referrer",
                "Connection: close",
            )
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def _take(self, first: str) -> tuple[str, str]:
        """The status and the words for a request, by its first line."""
        method, _, rest = first.partition(" ")
        parts = urlsplit(rest.rpartition(" ")[0])
        if method != "GET" or parts.path != PATH:
            return "404 Not Found", "There is nothing here."
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if not self.state or given.get("state") != self.state or not ({"code", "error"} & given.keys()):
            return "400 Bad Request", "This is not the answer to the login that ba began."
        if not self._answer.done():
            self._answer.set_result(given)
        if "error" in given:
            return "200 OK", f"The login to {self._name} was refused. You can close this page and return to ba."
        return "200 OK", f"You are logged in to {self._name}. You can close this page and return to ba."
