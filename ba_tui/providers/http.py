"""The HTTP client under a model: time-outs, proxies and certificates of the environment.

What is said over it is the vendor files' business.
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

from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen
from ba_tui.providers.bounds import ERROR
from ba_tui.providers.faults import is_loopback

# A connection opened before the first request: name, TCP and TLS, no HTTP. It belongs to the loop that will use it.
# The request reports errors and connects again.

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


CONNECT = 15.0
LONGEST = 200
EMPTYING = frozenset({301, 302, 303})
"""Redirects that are followed by asking without what was to be sent."""
REDIRECTS = 5
ERROR_SECONDS = 10.0
"""Seconds for the body of an error to come; what has come by then is read."""
FRAMING = ("content-encoding", "content-length", "transfer-encoding")


class Diverted(httpx2.RequestError):
    """A redirect on which the request would be lost, or would reach somebody else; says where to."""


class ModelClient(httpx2.AsyncClient):
    """A client whose responses begin within ``patience`` seconds, redirects included, however slowly headers come.

    The body of an error is bounded, and there when ``send`` returns.
    """

    def __init__(self, patience: float, context: ssl.SSLContext | None = None, **options: Any) -> None:
        verify = context or httpx2.create_ssl_context()
        super().__init__(follow_redirects=False, verify=verify, **options)
        self._patience = patience

    def _init_transport(self, *args: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        """What httpx2 asks for once, for all that goes through no proxy."""
        del args
        return EarlyTransport(options["verify"], options["limits"])

    def begin(self, url: httpx2.URL) -> None:
        """Start to connect to ``url``, on the running loop, unless a proxy stands between. Sends nothing."""
        transport = self._transport_for_url(url)
        if isinstance(transport, EarlyTransport):
            transport.begin(url)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Raises httpx2.HTTPError; Diverted among them."""
        options["follow_redirects"] = False
        try:
            async with asyncio.timeout(self._patience):
                response = await self._arrived(request, options)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the headers did not come in time", request=request) from error
        if response.is_success and not stream:
            await response.aread()
        return response

    async def _arrived(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        for _ in range(REDIRECTS + 1):
            response = await super().send(request, stream=True, **options)
            if response.is_success:
                return response
            try:
                body = await beginning(response, ERROR, ERROR_SECONDS)
                if response.next_request is None:
                    return _read(response, body)
                _keep_whole(response)
                request = response.next_request
            finally:
                await response.aclose()
        raise httpx2.TooManyRedirects("Exceeded maximum allowed redirects.", request=request)


def http_client(idle: float, url: str = "") -> ModelClient:
    """A client for ``url`` that waits ``idle`` seconds for the next byte.

    Raises:
        UsageError: the environment names a proxy or certificates that can't be used.
    """
    # Reading the authorities takes 20 ms. Without any, a server on this machine can't lead on to one that needs them.
    near = is_loopback(url)
    plain = near and url.lower().startswith("http://")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx2.create_ssl_context()
        # No proxy leads to this machine, whatever the environment says.
        patience = httpx2.Timeout(idle, connect=CONNECT)
        return ModelClient(idle + CONNECT, context, timeout=patience, trust_env=not near)
    except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
        cure = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE."
        raise UsageError(f"No connection can be set up: {str(error)[:LONGEST]}", cure) from error


async def beginning(response: httpx2.Response, limit: int, seconds: float) -> bytes:
    """The first ``limit`` bytes of the body, decompressed; less when it breaks off or does not come in time."""
    body = bytearray()
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(seconds), contextlib.aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    break
    return bytes(body[:limit])


def _read(response: httpx2.Response, body: bytes) -> httpx2.Response:
    """``response`` with ``body`` for its body, which is not compressed any more."""
    headers = response.headers.copy()
    for name in FRAMING:
        headers.pop(name, None)
    return httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request, extensions=response.extensions
    )


def _keep_whole(response: httpx2.Response) -> None:
    """Raises Diverted where following a redirect would lose the conversation, or show it to somebody else."""
    request, following = response.request, response.next_request
    if following is None or request.method != "POST":
        return
    if response.status_code in EMPTYING or _elsewhere(request.url, following.url):
        raise Diverted(response.headers["location"].partition("?")[0])


def _elsewhere(url: httpx2.URL, target: httpx2.URL) -> bool:
    """Whether a conversation and key for ``url`` would go to another server, or where it can be read on the way."""
    # Without ports in either address, http may lead to https on the same host.
    other = target.host != url.host or target.port != url.port
    return other or (url.scheme == "https" and target.scheme != "https")
