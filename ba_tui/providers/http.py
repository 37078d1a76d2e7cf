"""The HTTP client under a model: time-outs, proxies and certificates of the environment.

What is said over it is the vendor files' business.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import httpx2

from ba_tui.core.errors import UsageError
from ba_tui.providers.bounds import ERROR
from ba_tui.providers.early import EarlyTransport
from ba_tui.providers.faults import is_loopback

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
