"""Anthropic's Messages API: what is sent and read are bytes, over a connection that knows the key.

The format itself lives in anthropic_wire, errors in faults; retries are Persistent's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from ba_tui.core.errors import AuthFailed, BadRequest
from ba_tui.core.messages import key_in, signed
from ba_tui.core.ports.exchanges import Exchange
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.providers.bounds import ERROR
from ba_tui.providers.connection import Connection
from ba_tui.providers.credentials import ANTHROPIC_URL, BoundKey, Endpoint, anthropic_chain, anthropic_endpoint
from ba_tui.providers.faults import ModelService, from_network
from ba_tui.providers.http import beginning
from ba_tui.providers.transfers import DIRECT, RecordedBytes, Transfer
from ba_tui.providers.wire import sse
from ba_tui.providers.wire.anthropic_wire import AnthropicReply, encode_message, tool_to_wire
from ba_tui.providers.wire.bodies import Body
from ba_tui.providers.wire.shapes import decode, encode, fields

VARIABLE = "ANTHROPIC_API_KEY"
CURE = f"Set {VARIABLE}, or choose another model with /model."
MARK = {"type": "ephemeral"}
COUNTING = "/v1/messages/count_tokens"
COUNTED = frozenset({"model", "system", "tools"})
"""What of a request's head the endpoint that counts takes."""
ADAPTIVE = frozenset({"claude-4.6", "claude-4.8", "claude-5"})
"""Families that decide themselves how long to think."""


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
        api_key: BoundKey | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        self._model = model
        self._transfer = transfer
        self._options = dict(options or {})
        endpoint, self._service = self._reach(api_key, base_url)
        self._connection = Connection(endpoint, self._service, transfer.idle)
        self._url = self._connection.url("v1/messages")
        self._extras: dict[str, Any] = {"cache_control": MARK}
        self._marks = True
        """Whether blocks are marked for the cache too."""
        if model.family in ADAPTIVE:
            # Their reasoning, and what they say between calls, would come as empty blocks without this.
            self._extras["thinking"] = {"type": "adaptive", "display": "summarized"}
        self._body = Body(self._head, lambda message: encode_message(message, model))

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[Endpoint, ModelService]:
        """Where requests go, and what its errors call it."""
        endpoint = anthropic_endpoint(key, url) or _signed_in()
        service = ModelService("Anthropic", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if service.host == urlsplit(ANTHROPIC_URL).netloc else service.elsewhere()

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request before its messages, as the endpoint wants them."""
        return head

    def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """``body`` as server-sent events."""
        return body

    @property
    def model(self) -> ModelInfo:
        return self._model

    def connect(self) -> None:
        """See core.provider.Provider."""
        self._connection.begin()

    async def close(self) -> None:
        """Let go of the connection."""
        await self._connection.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        response, exchange = await self._answer(request)
        assembly = AnthropicReply(self._model, self._service, self._body.ids)
        heard = RecordedBytes(response.aiter_bytes(), exchange)
        stream = sse.chunks(self._events(heard), assembly, self._service, self._transfer.idle)
        try:
            async with contextlib.aclosing(stream) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            exchange.end()
            await response.aclose()
        yield assembly.finish()

    def _counted(self, body: dict[str, Any], request: ModelRequest) -> bytes:
        key = key_in(request.system)
        parts = [encode_message(signed(message, key), self._model) for message in request.messages]
        return encode(body)[:-1] + b',"messages":[' + b",".join(part for part in parts if part) + b"]}"

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Tokens of ``request`` as the provider counts them. ``url`` must be of the same host: the key goes there.

        Raises:
            UsageError: it is of another host. ProviderError: nobody counts there.
        """
        body = {key: value for key, value in decode(self._head(request) + b"]}").items() if key in COUNTED}
        content = await asyncio.to_thread(self._counted, body, request)
        response = await self._connection.post(self._connection.url(url), content)
        try:
            found = fields(decode(await beginning(response, ERROR, self._transfer.idle))).get("input_tokens")
        except ValueError as error:
            raise from_network(self._service, error) from error
        finally:
            await response.aclose()
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise BadRequest(f"{self._service.name} answered without a count.")
        return found

    async def _answer(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange]:
        """Servers that speak this format without knowing an extra of ours are asked once more without it."""
        while True:
            try:
                return await self._post(request)
            except BadRequest as error:
                if not self._leave_out(str(error)):
                    raise
                self._body.forget()

    def _leave_out(self, refusal: str) -> bool:
        """Send no more what ``refusal`` names; False when that is nothing of ours."""
        refused = next((name for name in self._extras if name in refusal), None)
        if refused is None:
            return False
        del self._extras[refused]
        self._marks = "cache_control" in self._extras
        return True

    async def _post(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange]:
        tail = self._tail(request)
        content = await self._body.joined(request, tail)
        exchange = self._transfer.sent(content, self._body, tail)
        return await self._connection.post(self._url, content), exchange

    def _head(self, request: ModelRequest) -> bytes:
        """Tools, then system, then messages: the stable first, so that each request extends the last."""
        head: dict[str, Any] = {"model": self._model.name, "max_tokens": self._model.max_output, "stream": True}
        head |= self._extras | self._options
        if request.tools:
            head["tools"] = [tool_to_wire(tool) for tool in request.tools]
        if request.system:
            mark = {"cache_control": MARK} if self._marks else {}
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return encode(self._fields(head))[:-1] + b',"messages":['

    def _tail(self, request: ModelRequest) -> bytes:
        return b"]}" if request.call_tools or not request.tools else b'],"tool_choice":{"type":"none"}}'


def _signed_in() -> Endpoint:
    """What the SDK's chain of credentials finds. Raises AuthFailed when that is nothing."""
    found = None
    if anthropic_chain():
        from ba_tui.providers.anthropic_sdk import signed_in  # noqa: PLC0415 - an SDK: a second, and 60 MB

        found = signed_in()
    if found is None:
        raise AuthFailed("No API key for Anthropic.", CURE)
    return found
