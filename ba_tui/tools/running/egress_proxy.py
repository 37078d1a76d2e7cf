"""The HTTP proxy for confined commands: it runs outside the sandbox and lets through the hosts that are allowed.

The supervisor opens the listening socket within that network and hands it over, so nothing runs in there for it. Which
hosts may be reached is egress_hosts.py's; nothing that passes is kept or logged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen
from ba_tui.tools.failed import Failed
from ba_tui.tools.running.egress_hosts import NOT_PUBLIC, NetworkAccess
from ba_tui.tools.web.addresses import WebAddress, read_address

END = b"\r\n\r\n"
_OWN = ("proxy-", "connection:", "keep-alive:", "host:")
_METHOD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-")


class InvalidRequest(Exception):
    """It is nothing that a proxy does; the text says why."""


@frozen
class ProxyRequest:
    """``head``: what the host itself is sent first; empty for a tunnel, in which the program says all."""

    address: WebAddress
    head: bytes = b""


def read_request(head: bytes) -> ProxyRequest:
    """What ``head``, up to and with its empty line, asks for.

    Raises:
        InvalidRequest: it can't be read in one way alone, or is no request of a proxy.
    """
    try:
        first, *fields = head.removesuffix(END).decode("ascii").split("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidRequest("its head is not plain text") from error
    if any(char in head.replace(b"\r\n", b"") for char in b"\r\n\0") or any(line[:1] in {" ", "\t"} for line in fields):
        raise InvalidRequest("its head can be read in more than one way")
    words = first.split(" ")
    if len(words) != 3 or not words[0] or set(words[0]) - _METHOD or words[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise InvalidRequest("it is no HTTP request")
    method, target, version = words
    if method != "CONNECT":
        if not target.lower().startswith("http://"):
            raise InvalidRequest("a proxy is given whole addresses")
        address = _address(target)
        kept = [line for line in fields if not line.lower().startswith(_OWN)]
        # One request a connection: a second one could be for another host.
        lines = (f"{method} {address.path} {version}", f"Host: {address.place}", *kept, "Connection: close")
        return ProxyRequest(address, "\r\n".join(lines).encode("ascii") + END)
    if not target.rpartition(":")[2].isdigit() or set(target) & set("/?#@"):
        raise InvalidRequest("a tunnel leads to a host and a port")
    return ProxyRequest(_address(f"https://{target}/"))


def _address(text: str) -> WebAddress:
    try:
        return read_address(text)
    except Failed as error:
        raise InvalidRequest(str(error)) from error


def response(status: int, why: str) -> bytes:
    """An answer that says ``why`` in its first line as well: of a refused tunnel, programs show no more."""
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in why)[:300]
    body = f"{plain}\n".encode()
    head = f"HTTP/1.1 {status} {plain}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    return head.encode() + END + body


Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

PORT = 3128
CHUNK_BYTES = 65_536
MAX_CONNECTIONS = 64
"""Connections of one command at a time."""
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 10.0
_PROXY = f"http://127.0.0.1:{PORT}"
_INSIDE = "localhost,127.0.0.1,::1"
ENVIRONMENT: Mapping[str, str] = {
    name: value
    for upper, value in (
        ("HTTP_PROXY", _PROXY),
        ("HTTPS_PROXY", _PROXY),
        ("ALL_PROXY", _PROXY),
        ("NO_PROXY", _INSIDE),
    )
    for name in (upper, upper.lower())
}


class Decisions(Protocol):
    """Which hosts a program may reach. ``refused``: those that it was not let through to, with why; ``waited``: seconds
    in which a person was asked."""

    network: NetworkAccess
    refused: dict[str, str]

    @property
    def waited(self) -> float: ...

    async def refusal(self, address: WebAddress) -> str:
        """Return why ``address`` is not reached; empty when it may be."""
        ...


class EgressProxy:
    """One for a program: ``offer`` before it starts, ``begin`` after that, in any thread; ``close`` at its end. Made on
    the event loop."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self._loop = asyncio.get_running_loop()
        self.environment = ENVIRONMENT
        self._link: socket.socket | None = None
        self._inner: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waited(self) -> float:
        """Seconds in which a person was asked about a host."""
        return self.decisions.waited

    def offer(self) -> tuple[tuple[int, ...], str]:
        """The end that the supervisor inherits, and its words for it."""
        self._link, self._inner = socket.socketpair()
        number = self._inner.fileno()
        return (number,), f",{number},{PORT}"

    def begin(self) -> None:
        """The supervisor has its end now."""
        if self._inner:
            self._inner.close()
        if self._link:
            self._link.setblocking(False)
            self._loop.call_soon_threadsafe(self._listen)

    def _listen(self) -> None:
        if self._link and self._link.fileno() >= 0:
            self._loop.add_reader(self._link, self._arrived)

    def close(self) -> None:
        """No connection is left behind."""
        self._closed = True
        self._unlink()
        if self._server:
            self._server.close()
        for task in (*self._tasks, *((self._opening,) if self._opening else ())):
            task.cancel()

    def _unlink(self) -> None:
        for end in (self._inner, self._link):
            if end and end.fileno() >= 0:
                if end is self._link:
                    self._loop.remove_reader(end)
                end.close()

    def _arrived(self) -> None:
        """The listening socket, or nothing where none could be opened: then there is no network, as without this."""
        numbers: list[int] = []
        with suppress(OSError):
            numbers = socket.recv_fds(self._link, 16, 1)[1] if self._link else []
        self._unlink()
        for number in numbers:
            listener = socket.socket(fileno=number)
            listener.setblocking(False)
            self._opening = asyncio.create_task(self._open(listener))

    async def _open(self, listener: socket.socket) -> None:
        try:
            self._server = await asyncio.start_server(self._connected, sock=listener, limit=CHUNK_BYTES)
        except (OSError, ValueError, asyncio.CancelledError):
            listener.close()
        if self._closed and self._server:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._closed:
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            if len(self._tasks) > MAX_CONNECTIONS:
                writer.write(response(503, f"more than {MAX_CONNECTIONS} connections at a time"))
            else:
                await self._serve(reader, writer)
            await writer.drain()
        except asyncio.CancelledError:
            # The command has ended; who made this task has nothing more to do with it.
            writer.transport.abort()
        except (OSError, EOFError, BaError):
            # It went away, or the decision could not be kept; either way nothing is passed on.
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = read_request(await reader.readuntil(END))
        except (InvalidRequest, asyncio.LimitOverrunError, TimeoutError) as error:
            why = str(error) if isinstance(error, InvalidRequest) else "its head is too long or late"
            writer.write(response(400, f"ba does not pass this on: {why}"))
            return
        place = request.address.place
        if why := await self.decisions.refusal(request.address):
            writer.write(response(403, f"ba does not let this command reach {place}: {why}"))
            return
        try:
            machines = await self.decisions.network.machines(request.address)
        except (OSError, UnicodeError, ValueError):
            writer.write(response(502, f"{place} was not found"))
            return
        if not machines:
            self.decisions.refused[place] = NOT_PUBLIC
            writer.write(response(403, f"ba does not let this command reach {place}: {NOT_PUBLIC}"))
            return
        await self._pass(request, machines, (reader, writer))

    async def _pass(self, request: ProxyRequest, machines: Sequence[str], near: Stream) -> None:
        far = await _reached(machines, request.address.port)
        if far is None:
            near[1].write(response(502, f"{request.address.place} could not be connected to"))
            return
        try:
            if request.head:
                far[1].write(request.head)
            else:
                near[1].write(b"HTTP/1.1 200 Connection established" + END)
            await asyncio.gather(_pump(near[0], far[1]), _pump(far[0], near[1]))
        finally:
            far[1].transport.abort()


async def _reached(machines: Sequence[str], port: int) -> Stream | None:
    """A connection to the first that answers."""
    for machine in machines:
        with suppress(OSError):
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(machine, port, limit=CHUNK_BYTES)
    return None


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """All of one direction; what the other side does not take yet is not read either."""
    try:
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        # Then the other direction has nothing to wait for.
        target.transport.abort()
