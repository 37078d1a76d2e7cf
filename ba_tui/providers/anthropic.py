"""Anthropic's Messages API: who may, the SDK knows; what is sent and read are bytes, over the SDK's own connection.

The format itself lives in anthropic_wire, errors in faults; retries are Persistent's, never the SDK's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from ba_tui.core.errors import AuthFailed, BadRequest, UsageError
from ba_tui.core.ports.exchanges import Exchange
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.providers import sse
from ba_tui.providers.anthropic_wire import AnthropicReply, encode_message, tool_to_wire
from ba_tui.providers.bodies import Body
from ba_tui.providers.bounds import ERROR
from ba_tui.providers.faults import ModelService, check_key, check_url, from_network, from_response
from ba_tui.providers.http import NO_KEY, beginning, http_client
from ba_tui.providers.shapes import decode, encode, fields
from ba_tui.providers.transfers import DIRECT, RecordedBytes, Transfer

VARIABLE = "ANTHROPIC_API_KEY"
CURE = f"Set {VARIABLE}, or choose another model with /model."
MARK = {"type": "ephemeral"}
OWN = "api.anthropic.com"
COUNTING = "/v1/messages/count_tokens"
COUNTED = frozenset({"model", "system", "tools"})
"""What of a request's head the endpoint that counts takes."""
ADAPTIVE = frozenset({"claude-4.6", "claude-4.8", "claude-5"})
"""Families that decide themselves how long to think."""
TELLTALE = "x-stainless-"
"""Headers that tell of this machine, and that nobody needs for an answer."""


class AnthropicProvider:
    """``options`` are further fields of each request, as the API names them.

    Raises:
        AuthFailed: there is no key, and the endpoint is Anthropic's own.
        UsageError: no connection can be set up with these settings.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        self._model = model
        self._transfer = transfer
        self._options = dict(options or {})
        if url := base_url or os.environ.get("ANTHROPIC_BASE_URL", ""):
            check_url(url)
        # The key of the environment belongs to the endpoint of the environment, and to no other.
        http = self._http = http_client(transfer.idle, url)
        try:
            self._client = anthropic.AsyncAnthropic(
                api_key=api_key or (NO_KEY if base_url else None),
                base_url=base_url,
                max_retries=0,
                timeout=http.timeout,
                http_client=http,
                open_telemetry=False,
            )
        except anthropic.CredentialsError as error:
            raise AuthFailed(f"No API key for Anthropic: {error}", CURE) from error
        if not (self._client.api_key or self._client.auth_token or self._client.credentials):
            raise AuthFailed("No API key for Anthropic.", CURE)
        key = self._client.api_key or self._client.auth_token or ""
        check_key(key, VARIABLE)
        # Its headers and its key, on requests of ours: it takes longer to make one than all else that a step does here.
        self._url = self._client.base_url.join("v1/messages")
        headers = {
            name: text
            for name, text in self._client.default_headers.items()
            if isinstance(text, str) and not name.lower().startswith(TELLTALE)
        }
        self._pattern = http.build_request("POST", self._url, headers=headers)
        service = ModelService("Anthropic", VARIABLE, str(self._client.base_url), model.name, key)
        self._service = service if service.host == OWN else service.elsewhere()
        self._extras: dict[str, Any] = {"cache_control": MARK}
        if model.family in ADAPTIVE:
            # Their reasoning, and what they say between calls, would come as empty blocks without this.
            self._extras["thinking"] = {"type": "adaptive", "display": "summarized"}
        self._body = Body(self._head, lambda message: encode_message(message, model))

    @property
    def model(self) -> ModelInfo:
        return self._model

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        response, exchange = await self._answer(request)
        assembly = AnthropicReply(self._model, self._service, self._body.ids)
        heard = RecordedBytes(response.aiter_bytes(), exchange)
        stream = sse.chunks(heard, assembly, self._service, self._transfer.idle)
        try:
            async with contextlib.aclosing(stream) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            exchange.end()
            await response.aclose()
        yield assembly.finish()

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Tokens of ``request`` as the provider counts them. ``url`` must be of the same host: the key goes there.

        Raises:
            UsageError: it is of another host. ProviderError: nobody counts there.
        """
        if url != COUNTING and (urlsplit(url).scheme, urlsplit(url).netloc) != self._origin():
            raise UsageError(f"{url} is not of {self._service.host}, which this key is for.", "Correct the address.")
        body = {key: value for key, value in decode(self._head(request) + b"]}").items() if key in COUNTED}
        parts = [encode_message(message, self._model) for message in request.messages]
        content = encode(body)[:-1] + b',"messages":[' + b",".join(part for part in parts if part) + b"]}"
        response = await self._sent(content, self._client.base_url.join(url.lstrip("/")))
        try:
            found = fields(decode(await beginning(response, ERROR, self._transfer.idle))).get("input_tokens")
        except ValueError as error:
            raise from_network(self._service, error) from error
        finally:
            await response.aclose()
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise BadRequest(f"{self._service.name} answered without a count.")
        return found

    def _origin(self) -> tuple[str, str]:
        parts = urlsplit(str(self._client.base_url))
        return parts.scheme, parts.netloc

    async def _answer(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange]:
        """Servers that speak this format without knowing an extra of ours are asked once more without it."""
        while True:
            try:
                return await self._post(request)
            except BadRequest as error:
                refused = next((name for name in self._extras if name in str(error)), None)
                if refused is None:
                    raise
                del self._extras[refused]
                self._body.forget()

    async def _post(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange]:
        tail = self._tail(request)
        content = self._body.join(request, tail)
        exchange = self._transfer.sent(content, self._body, tail)
        return await self._sent(content, self._url), exchange

    async def _sent(self, content: bytes, url: httpx2.URL) -> httpx2.Response:
        try:
            response = await self._http.send(self._enveloped(content, url), auth=self._client.custom_auth, stream=True)
            if not response.is_success:
                raise from_response(self._service, response.status_code, response.headers, response.content)
        except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise from_network(self._service, error) from error
        return response

    def _enveloped(self, content: bytes, url: httpx2.URL) -> httpx2.Request:
        """What ``build_request`` makes of ``content``, which reads and joins all headers anew each time."""
        headers = self._pattern.headers.copy()
        headers["Content-Length"] = str(len(content))
        return httpx2.Request(
            "POST",
            url,
            headers=headers,
            cookies=self._http.cookies,
            stream=httpx2.ByteStream(content),
            extensions=self._pattern.extensions,
        )

    def _head(self, request: ModelRequest) -> bytes:
        """Tools, then system, then messages: the stable first, so that each request extends the last."""
        head: dict[str, Any] = {"model": self._model.name, "max_tokens": self._model.max_output, "stream": True}
        head |= self._extras | self._options
        if request.tools:
            head["tools"] = [tool_to_wire(tool) for tool in request.tools]
        if request.system:
            mark = {"cache_control": MARK} if "cache_control" in self._extras else {}
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return encode(head)[:-1] + b',"messages":['

    def _tail(self, request: ModelRequest) -> bytes:
        return b"]}" if request.call_tools or not request.tools else b'],"tool_choice":{"type":"none"}}'
