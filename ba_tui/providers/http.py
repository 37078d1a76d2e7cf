"""The HTTP client of model connections: time-outs, proxies and certificates of the environment."""

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
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.shapes import ERROR

# An early connection is opened before the first request: name, TCP and TLS, no HTTP. It belongs to the event loop that
# will use it. If it fails, the request connects again and reports the error.

FRESH = 30.0
"""Seconds for which it is used without a request: servers and routers drop silent connections."""
TIMEOUT = 15.0
GONE = getattr(select, "POLLRDHUP", 0)
"""The event that poll is asked for; it reports a broken connection without being asked."""


@frozen
class TcpTarget:
    """An address to connect to; ``context`` is None without TLS."""

    host: str
    port: int
    context: ssl.SSLContext | None


class EarlyBackend(httpcore2.AsyncNetworkBackend):
    """Connects as httpcore2 does, and once before there is a request."""

    def __init__(self) -> None:
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        self._target: TcpTarget | None = None
        self._opening: asyncio.Task[httpcore2.AsyncNetworkStream] | None = None
        self._begun = 0.0

    def begin(self, target: TcpTarget) -> None:
        """Start to connect, unless that was done just before. Call it on the event loop."""
        old = self._opening
        if old is not None and target == self._target and not self._spent(old):
            return
        self._target, self._begun = target, time.monotonic()
        self._opening = asyncio.get_running_loop().create_task(self._open(target, old))
        self._opening.add_done_callback(_looked_at)

    async def drop(self) -> None:
        """Close the early connection if no request uses it."""
        opening, self._opening = self._opening, None
        await _closed(opening)

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """Return the early connection if it leads there, else a new one."""
        target, opening = self._target, self._opening
        if target is None or opening is None or (target.host, target.port) != (host, port):
            return await self._inner.connect_tcp(host, port, *args, **options)
        if self._spent(opening):
            await self.drop()
            return await self._inner.connect_tcp(host, port, *args, **options)
        # Taken by this request only; if it is cancelled while the connection opens, the next request may use it.
        self._opening = None
        try:
            stream = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._opening = self._opening or opening
            raise
        return _TlsStream(stream) if target.context else stream

    async def _open(
        self, target: TcpTarget, old: asyncio.Task[httpcore2.AsyncNetworkStream] | None
    ) -> httpcore2.AsyncNetworkStream:
        await _closed(old)
        stream = await self._inner.connect_tcp(target.host, target.port, TIMEOUT)
        if target.context is None:
            return stream
        target.context.set_alpn_protocols(["http/1.1"])
        try:
            return await stream.start_tls(target.context, target.host, TIMEOUT)
        except asyncio.CancelledError:
            # httpcore2 closes the stream when TLS fails, but not when it is cancelled.
            await stream.aclose()
            raise

    def _spent(self, opening: asyncio.Task[httpcore2.AsyncNetworkStream]) -> bool:
        """Whether it failed, is old, or was closed by the server."""
        if not opening.done():
            return False
        if opening.cancelled() or opening.exception() or time.monotonic() - self._begun > FRESH:
            return True
        found: socket.socket = opening.result().get_extra_info("socket")
        poll = select.poll()
        poll.register(found, GONE)
        return bool(poll.poll(0))


class EarlyTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport over a pool whose first connection can be opened early."""

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
        """Start to connect to ``url`` unless a connection is open or in use."""
        if not all(connection.has_expired() for connection in self._pool.connections):
            return
        secure = url.scheme == "https"
        port = url.port or (443 if secure else 80)
        self._backend.begin(TcpTarget(url.raw_host.decode("ascii"), port, self._context if secure else None))

    async def aclose(self) -> None:
        """Close all connections, the unused early one too."""
        await self._backend.drop()
        await super().aclose()


class _TlsStream(httpcore2.AsyncNetworkStream):
    """A stream on which TLS is already set up."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def start_tls(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return self._stream


def _looked_at(opening: asyncio.Task[httpcore2.AsyncNetworkStream]) -> None:
    """Read the error of a task, since asyncio logs errors that are never read."""
    if not opening.cancelled():
        opening.exception()


async def _closed(opening: asyncio.Task[httpcore2.AsyncNetworkStream] | None) -> None:
    """Cancel ``opening``, or close the connection that it opened."""
    if opening is None:
        return
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError, httpcore2.NetworkError, httpcore2.TimeoutException, OSError):
        await (await opening).aclose()


CONNECT = 15.0
LONGEST = 200
EMPTYING = frozenset({301, 302, 303})
"""Redirects that are followed with a request without a body."""
REDIRECTS = 5
ERROR_SECONDS = 10.0
"""Seconds to read the body of an error; the part that has arrived by then is used."""
FRAMING = ("content-encoding", "content-length", "transfer-encoding")


class RedirectRefused(httpx2.RequestError):
    """A redirect that would lose the request or show it to another server; names the target."""


class ModelClient(httpx2.AsyncClient):
    """A client whose responses begin within ``patience`` seconds, redirects included. The body of an error is limited,
    and is read when ``send`` returns."""

    def __init__(self, patience: float, context: ssl.SSLContext | None = None, **options: Any) -> None:
        verify = context or httpx2.create_ssl_context()
        super().__init__(follow_redirects=False, verify=verify, **options)
        self._patience = patience

    def _init_transport(self, *args: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        """Return the transport for all requests without a proxy; httpx2 calls it once."""
        del args
        return EarlyTransport(options["verify"], options["limits"])

    def begin(self, url: httpx2.URL) -> None:
        """Start to connect to ``url``, on the running loop, unless it is reached by a proxy. Sends nothing."""
        transport = self._transport_for_url(url)
        if isinstance(transport, EarlyTransport):
            transport.begin(url)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Raises httpx2.HTTPError, among them RedirectRefused."""
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
    """Return a client for ``url`` that waits ``idle`` seconds for the next byte. Raises UsageError: the environment
    names a proxy or certificates that can't be used."""
    # Loading the certificate authorities takes 20 ms. Without them, a server on this machine can't redirect to an
    # address that needs them.
    near = is_loopback(url)
    plain = near and url.lower().startswith("http://")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx2.create_ssl_context()
        # This machine is never reached by a proxy, whatever the environment says.
        patience = httpx2.Timeout(idle, connect=CONNECT)
        return ModelClient(idle + CONNECT, context, timeout=patience, trust_env=not near)
    except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
        cure = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE."
        raise UsageError(f"No connection can be set up: {str(error)[:LONGEST]}", cure) from error


async def beginning(response: httpx2.Response, limit: int, seconds: float) -> bytes:
    """Return the first ``limit`` bytes of the body, decompressed; fewer when it ends early or is late."""
    body = bytearray()
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(seconds), contextlib.aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    break
    return bytes(body[:limit])


def _read(response: httpx2.Response, body: bytes) -> httpx2.Response:
    """Return ``response`` with the decompressed ``body``."""
    headers = response.headers.copy()
    for name in FRAMING:
        headers.pop(name, None)
    return httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request, extensions=response.extensions
    )


def _keep_whole(response: httpx2.Response) -> None:
    """Raise RedirectRefused where a redirect would lose the conversation or show it to another server."""
    request, following = response.request, response.next_request
    if following is None or request.method != "POST":
        return
    if response.status_code in EMPTYING or _elsewhere(request.url, following.url):
        raise RedirectRefused(response.headers["location"].partition("?")[0])


def _elsewhere(url: httpx2.URL, target: httpx2.URL) -> bool:
    """Whether a conversation and key for ``url`` would go to another server, or travel without encryption."""
    # Without ports in both addresses, http may redirect to https on the same host.
    other = target.host != url.host or target.port != url.port
    return other or (url.scheme == "https" and target.scheme != "https")
