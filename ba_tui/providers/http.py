"""The HTTP client under an SDK: time-outs, proxies and certificates of the environment.

What is said over it is the vendor files' business.
"""

from __future__ import annotations

import ssl

import httpx2

from ba_tui.core.errors import UsageError
from ba_tui.providers.faults import is_loopback

CONNECT = 15.0
LONGEST = 200
NO_KEY = "none"
"""What is sent where there is no key: servers of one's own ask for none."""
EMPTYING = frozenset({301, 302, 303})
"""Redirects that are followed by asking without what was to be sent."""


class Diverted(httpx2.RequestError):
    """A redirect on which the request would be lost, or would reach somebody else; says where to."""


def http_client(idle: float, url: str = "") -> httpx2.AsyncClient:
    """A client for ``url`` that waits ``idle`` seconds for the next byte.

    Raises:
        UsageError: the environment names a proxy or certificates that can't be used.
    """
    # Reading the authorities takes 20 ms. Without any, a server on this machine can't lead on to one that needs them.
    plain = url.lower().startswith("http://") and is_loopback(url)
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True
    try:
        client = httpx2.AsyncClient(timeout=httpx2.Timeout(idle, connect=CONNECT), follow_redirects=True, verify=verify)
    except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
        cure = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE."
        raise UsageError(f"No connection can be set up: {str(error)[:LONGEST]}", cure) from error
    client.event_hooks["response"].append(_keep_whole)
    return client


async def _keep_whole(response: httpx2.Response) -> None:
    request = response.request
    if not response.has_redirect_location or request.method != "POST":
        return
    to = response.headers["location"]
    if response.status_code in EMPTYING or _elsewhere(request.url, to):
        raise Diverted(to.partition("?")[0])


def _elsewhere(url: httpx2.URL, to: str) -> bool:
    """Whether a conversation that was for ``url`` would go to another machine, or where it can be read on the way."""
    try:
        target = url.join(to)
    except httpx2.InvalidURL:
        # The client says what is wrong with it.
        return False
    return target.host != url.host or (url.scheme == "https" and target.scheme != "https")
