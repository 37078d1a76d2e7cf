"""Any endpoint that speaks Chat Completions: sends pre-encoded bytes, reads the raw stream.

The format itself lives in openai_wire, errors in faults; retries are Persistent's.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from ba_tui.core.errors import AuthFailed, BadRequest
from ba_tui.core.ports.exchanges import Exchange
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.providers.connection import Connection
from ba_tui.providers.credentials import BoundKey, Endpoint, openai_endpoint
from ba_tui.providers.faults import ModelService
from ba_tui.providers.transfers import DIRECT, RecordedBytes, Transfer
from ba_tui.providers.wire import sse
from ba_tui.providers.wire.bodies import Body
from ba_tui.providers.wire.openai_wire import OpenAIReply, ReasoningField, encode_message, tool_to_wire
from ba_tui.providers.wire.shapes import encode

VARIABLE = "OPENAI_API_KEY"
OWN = "https://api.openai.com"


class OpenAIProvider:
    """``options`` are further fields of each request, as the API names them.

    Raises:
        AuthFailed: there is no key, and the endpoint is OpenAI's own.
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
        self._url = self._connection.url("chat/completions")
        if self._service.vendor and "max_tokens" in self._options:
            # OpenAI's own models that think know it by its new name alone, all other servers by the old.
            self._options["max_completion_tokens"] = self._options.pop("max_tokens")
        self._counted = True
        self._reasoning: ReasoningField = "reasoning_content"
        self._body = Body(self._head, lambda message: encode_message(message, model, self._reasoning))

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[Endpoint, ModelService]:
        """Where requests go, and what its errors call it."""
        endpoint = openai_endpoint(key, url)
        own = endpoint.url.startswith(OWN)
        if own and not endpoint.secret:
            raise AuthFailed("No API key for OpenAI.", f"Set {VARIABLE}, or set base_url to a server of your own.")
        service = ModelService("OpenAI", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if own else service.elsewhere()

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
        try:
            response, exchange = await self._post(request)
        except BadRequest as error:
            if not self._counted or "stream_options" not in str(error):
                raise
            # Servers that don't know how to count while streaming; they are asked once more without it.
            self._counted = False
            self._body.forget()
            response, exchange = await self._post(request)
        assembly = OpenAIReply(self._model, self._service, self._body.ids)
        heard = RecordedBytes(response.aiter_bytes(), exchange)
        stream = sse.chunks(heard, assembly, self._service, self._transfer.idle)
        try:
            async with contextlib.aclosing(stream) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            exchange.end()
            await response.aclose()
        self._reasoning = assembly.reasoning or self._reasoning
        yield assembly.finish()

    async def _post(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange]:
        tail = self._tail(request)
        content = await self._body.joined(request, tail)
        exchange = self._transfer.sent(content, self._body, tail)
        return await self._connection.post(self._url, content), exchange

    def _head(self, request: ModelRequest) -> bytes:
        """Tools, then system, then messages: the stable first, so that each request extends the last."""
        head: dict[str, Any] = {"model": self._model.name, "stream": True}
        if self._counted:
            head["stream_options"] = {"include_usage": True}
        head |= self._options
        if request.tools:
            head["tools"] = [tool_to_wire(tool) for tool in request.tools]
        system = encode({"role": "system", "content": request.system}) + b"," if request.system else b""
        return encode(head)[:-1] + b',"messages":[' + system

    def _tail(self, request: ModelRequest) -> bytes:
        return b"]}" if request.call_tools or not request.tools else b'],"tool_choice":"none"}'
