"""Any endpoint that speaks Chat Completions, through OpenAI's SDK: sends pre-encoded bytes, reads the raw stream.

The format itself lives in openai_wire, errors in faults; retries are Persistent's, never the SDK's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import openai

from ba_tui.core.errors import AuthFailed, BadRequest
from ba_tui.core.ports.exchanges import Exchange
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.providers import sse
from ba_tui.providers.bodies import Body
from ba_tui.providers.faults import ModelService, check_key, check_url, from_network, from_response
from ba_tui.providers.http import NO_KEY, http_client
from ba_tui.providers.openai_wire import OpenAIReply, ReasoningField, encode_message, tool_to_wire
from ba_tui.providers.shapes import encode
from ba_tui.providers.transfers import DIRECT, RecordedBytes, Transfer

VARIABLE = "OPENAI_API_KEY"
OWN = "https://api.openai.com"
HOME = f"{OWN}/v1"
TELLTALE = "async|lang|os|arch|package-version|runtime|runtime-version|retry-count|read-timeout"
"""Ends of headers that tell of this machine, and that nobody needs for an answer."""
HEADERS = {"Content-Type": "application/json", **{f"x-stainless-{end}": openai.Omit() for end in TELLTALE.split("|")}}


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
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        self._model = model
        self._transfer = transfer
        self._options = dict(options or {})
        url = base_url or os.environ.get("OPENAI_BASE_URL") or HOME
        # The key of the environment belongs to the endpoint of the environment, and to no other.
        key = api_key or ("" if base_url else os.environ.get(VARIABLE)) or ""
        if not key and url.startswith(OWN):
            raise AuthFailed("No API key for OpenAI.", f"Set {VARIABLE}, or set base_url to a server of your own.")
        check_url(url)
        check_key(key, VARIABLE)
        http = http_client(transfer.idle, url)
        self._client = openai.AsyncOpenAI(
            api_key=key or NO_KEY, base_url=url, max_retries=0, timeout=http.timeout, http_client=http
        )
        service = ModelService("OpenAI", VARIABLE, url, model.name, key)
        own = url.startswith(OWN)
        if own and "max_tokens" in self._options:
            # OpenAI's own models that think know it by its new name alone, all other servers by the old.
            self._options["max_completion_tokens"] = self._options.pop("max_tokens")
        self._service = service if own else service.elsewhere()
        self._counted = True
        self._reasoning: ReasoningField = "reasoning_content"
        self._body = Body(self._head, lambda message: encode_message(message, model, self._reasoning))

    @property
    def model(self) -> ModelInfo:
        return self._model

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()

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
        content = self._body.join(request, tail)
        exchange = self._transfer.sent(content, self._body, tail)
        try:
            stream = await self._client.post(
                "/chat/completions",
                cast_to=object,
                content=content,
                options={"headers": HEADERS},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except openai.APIStatusError as error:
            body = error.body or ""
            raise from_response(self._service, error.status_code, error.response.headers, body) from error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise from_network(self._service, error) from error
        return stream.response, exchange

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
