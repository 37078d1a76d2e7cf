"""Anthropic's SDK, for what only it knows: the chain of credentials where there is no plain key.

A profile in its config folder, or the identity of a workload; see ``anthropic.lib.credentials``. It takes a second and
60 MB to import, so a plain key never leads here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator

import anthropic
import httpx2

from ba_tui.core.errors import AuthFailed, ConnectionLost
from ba_tui.core.text.wording import one_line
from ba_tui.providers.credentials import Endpoint, anthropic_headers

LONGEST = 300
REFUSED = 401
CURE = "Sign in again with the tool that wrote the profile, or set ANTHROPIC_API_KEY."


def signed_in() -> Endpoint | None:
    """The endpoint for what the chain finds in the environment; None when that is nothing.

    Raises:
        AuthFailed: there is a profile, and it can't be used.
    """
    try:
        client = anthropic.AsyncAnthropic(
            base_url=os.environ.get("ANTHROPIC_BASE_URL") or None, max_retries=0, open_telemetry=False
        )
    except anthropic.AnthropicError as error:
        raise AuthFailed(f"No API key for Anthropic: {one_line(str(error), LONGEST)}", CURE) from error
    if client.custom_auth is None:
        return None
    # What the profile adds, such as its workspace.
    headers = anthropic_headers(dict(client._credential_headers))
    return Endpoint(str(client.base_url), headers, auth=ChainAuth(client), close=client.close)


class ChainAuth(httpx2.Auth):
    """Signs each request as the SDK does: with a new token once the old one was refused. Words what goes wrong."""

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self._client = client

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises AuthFailed, or ConnectionLost when the server of tokens can't be reached."""
        response = yield await self._signed(request)
        if response.status_code == REFUSED and self._client._token_cache:
            self._client._token_cache.invalidate()
            del request.headers["Authorization"]
            yield await self._signed(request)

    async def _signed(self, request: httpx2.Request) -> httpx2.Request:
        assert self._client.custom_auth
        flow = self._client.custom_auth.async_auth_flow(request)
        try:
            return await anext(flow)
        except anthropic.AnthropicError as error:
            said = one_line(str(error), LONGEST)
            if isinstance(error.__cause__, httpx2.HTTPError):
                raise ConnectionLost(f"No token for Anthropic: {said}", "Check the network and the proxy.") from error
            raise AuthFailed(f"No token for Anthropic: {said}", CURE) from error
        finally:
            await flow.aclose()
