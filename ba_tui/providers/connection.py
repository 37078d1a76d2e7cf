"""The way to one endpoint: bytes of ours under the headers that say who sends them.

What the bytes mean is the vendor files' business, what can go wrong on the way is faults'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2

from ba_tui.core.errors import RequestRefused, UsageError
from ba_tui.providers.credentials import Endpoint
from ba_tui.providers.faults import ModelService, check_key, from_network, from_response
from ba_tui.providers.http import http_client
from ba_tui.providers.wire.bodies import media_at

PIECE = 262_144
"""Bytes of a body that are handed to the connection at a time."""


class PiecewiseBody(httpx2.ByteStream):
    """A body that goes out piece by piece, so that a large one does not hold up the loop."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content) or 1, PIECE):
            yield self._content[start : start + PIECE]


class Connection:
    """``service`` words its errors; ``idle`` seconds may pass in silence.

    Raises:
        AuthFailed: the key can't be sent. UsageError: no connection can be set up with these settings.
    """

    def __init__(self, endpoint: Endpoint, service: ModelService, idle: float) -> None:
        check_key(endpoint.secret, service.variable)
        self._service = service
        self._endpoint = endpoint
        self._http = http_client(idle, endpoint.url)
        base = httpx2.URL(endpoint.url)
        self._base = base if base.path.endswith("/") else base.copy_with(raw_path=base.raw_path + b"/")
        # Bytes, because httpx2 takes text in ASCII only, and the SDKs send UTF-8.
        headers = [(name.encode(), value.encode()) for name, value in endpoint.headers.items()]
        self._pattern = self._http.build_request("POST", self._base, headers=headers)

    def url(self, path: str) -> httpx2.URL:
        """The address of ``path`` below the endpoint's. Raises UsageError when it is of another host."""
        found = self._base.join(path.lstrip("/"))
        if (found.scheme, found.netloc) != (self._base.scheme, self._base.netloc):
            raise UsageError(
                f"{path} does not belong to {self._service.host}, for which this key is meant.", "Correct the address."
            )
        return found

    def begin(self) -> None:
        """Start to connect, on the running loop: the first request will find the connection open. Sends nothing."""
        self._http.begin(self._base)

    async def post(self, url: httpx2.URL, content: bytes) -> httpx2.Response:
        """The response to ``content``, its body not read yet.

        Raises:
            ProviderError: nothing answers, or it refuses.
        """
        try:
            response = await self._http.send(self._enveloped(url, content), auth=self._endpoint.auth, stream=True)
            if not response.is_success:
                error = from_response(self._service, response.status_code, response.headers, response.content)
                if isinstance(error, RequestRefused) and error.at:
                    error.keys = await asyncio.to_thread(media_at, content, error.at)
                raise error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise from_network(self._service, error) from error
        return response

    async def close(self) -> None:
        await self._http.aclose()
        if self._endpoint.close:
            await self._endpoint.close()

    def _enveloped(self, url: httpx2.URL, content: bytes) -> httpx2.Request:
        """What ``build_request`` makes of ``content``, which reads and joins all headers anew each time."""
        headers = self._pattern.headers.copy()
        headers["Content-Length"] = str(len(content))
        return httpx2.Request(
            "POST",
            url,
            headers=headers,
            cookies=self._http.cookies,
            stream=PiecewiseBody(content),
            extensions=self._pattern.extensions,
        )
