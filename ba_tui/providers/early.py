"""A connection that is opened before there is a request for it: name, TCP and TLS, and not one byte of HTTP.

It is opened on the loop that will use it. What goes wrong then is told by the request, which connects anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
import time
from typing import Any, cast

import httpcore2
import httpx2

from ba_tui.core.values import frozen

FRESH = 30.0
"""Seconds for which it is good without a request; servers and routers drop silent connections, not all say so."""
TIMEOUT = 15.0
GONE = getattr(select, "POLLRDHUP", 0)
"""What poll is asked for; that a connection broke it tells unasked."""


@frozen
class Target:
    """``context`` is None without TLS."""

    host: str
    port: int
    context: ssl.SSLContext | None


class EarlyBackend(httpcore2.AsyncNetworkBackend):
    """Connects as httpcore2 does, and once ahead of time."""

    def __init__(self) -> None:
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        self._target: Target | None = None
        self._opening: asyncio.Task[httpcore2.AsyncNetworkStream] | None = None
        self._begun = 0.0

    def begin(self, target: Target) -> None:
        """Start to connect, unless that was done a moment ago. Call it on the loop."""
        old = self._opening
        if old is not None and target == self._target and not self._spent(old):
            return
        self._target, self._begun = target, time.monotonic()
        self._opening = asyncio.get_running_loop().create_task(self._open(target, old))
        self._opening.add_done_callback(_looked_at)

    async def drop(self) -> None:
        """Let go of what nobody asked for."""
        opening, self._opening = self._opening, None
        await _closed(opening)

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """The early connection if there is one that leads there, else a new one."""
        target, opening = self._target, self._opening
        if target is None or opening is None or (target.host, target.port) != (host, port):
            return await self._inner.connect_tcp(host, port, *args, **options)
        if self._spent(opening):
            await self.drop()
            return await self._inner.connect_tcp(host, port, *args, **options)
        # Nobody else takes it meanwhile; who is stopped while it opens leaves it to the next.
        self._opening = None
        try:
            stream = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._opening = self._opening or opening
            raise
        return _Encrypted(stream) if target.context else stream

    async def _open(
        self, target: Target, old: asyncio.Task[httpcore2.AsyncNetworkStream] | None
    ) -> httpcore2.AsyncNetworkStream:
        await _closed(old)
        stream = await self._inner.connect_tcp(target.host, target.port, TIMEOUT)
        if target.context is None:
            return stream
        target.context.set_alpn_protocols(["http/1.1"])
        try:
            return await stream.start_tls(target.context, target.host, TIMEOUT)
        except asyncio.CancelledError:
            # It closes the stream when it fails, and not when it is stopped.
            await stream.aclose()
            raise

    def _spent(self, opening: asyncio.Task[httpcore2.AsyncNetworkStream]) -> bool:
        """Whether it failed, is old, or the server has left."""
        if not opening.done():
            return False
        if opening.cancelled() or opening.exception() or time.monotonic() - self._begun > FRESH:
            return True
        found: socket.socket = opening.result().get_extra_info("socket")
        poll = select.poll()
        poll.register(found, GONE)
        return bool(poll.poll(0))


class EarlyTransport(httpx2.AsyncHTTPTransport):
    """httpx2's own transport over a pool whose first connection can be opened early."""

    def __init__(self, context: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=context, limits=limits)
        self._context = context
        self._backend = EarlyBackend()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=self._backend,
        )

    def begin(self, url: httpx2.URL) -> None:
        """Start to connect to ``url`` unless a connection can be used again, or is in use."""
        if not all(connection.has_expired() for connection in self._pool.connections):
            return
        secure = url.scheme == "https"
        port = url.port or (443 if secure else 80)
        self._backend.begin(Target(url.raw_host.decode("ascii"), port, self._context if secure else None))

    async def aclose(self) -> None:
        """Close all connections, the one that nobody asked for too."""
        await self._backend.drop()
        await super().aclose()


class _Encrypted(httpcore2.AsyncNetworkStream):
    """A stream whose TLS stands already."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def start_tls(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """See httpcore2.AsyncNetworkStream."""
        return self._stream


def _looked_at(opening: asyncio.Task[httpcore2.AsyncNetworkStream]) -> None:
    """Else asyncio complains of an error that nobody asked for."""
    if not opening.cancelled():
        opening.exception()


async def _closed(opening: asyncio.Task[httpcore2.AsyncNetworkStream] | None) -> None:
    """Stop ``opening``, or close what it opened."""
    if opening is None:
        return
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError, httpcore2.NetworkError, httpcore2.TimeoutException, OSError):
        await (await opening).aclose()
