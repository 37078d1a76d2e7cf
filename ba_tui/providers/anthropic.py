"""Anthropic's Messages API, over a connection with the user's key.

The message format is in anthropic_wire, errors are in faults; ``pipeline`` repeats requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from ba_tui.core.errors import AuthFailed, BadRequest, UsageError
from ba_tui.core.messages import Message, key_in, signed
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.providers.connection import HttpProvider
from ba_tui.providers.credentials import (
    ANTHROPIC_URL,
    CLOUDS,
    BoundKey,
    KeyedEndpoint,
    anthropic_chain,
    anthropic_endpoint,
)
from ba_tui.providers.faults import ModelService, from_network
from ba_tui.providers.http import beginning
from ba_tui.providers.wire.anthropic_wire import AnthropicReply, encode_message, tool_to_wire
from ba_tui.providers.wire.shapes import ERROR, decode, encode, fields
from ba_tui.providers.wire.sse import ReplyBuilder

VARIABLE = "ANTHROPIC_API_KEY"
CURE = f"Set {VARIABLE}, or choose another model with /model."
MARK = {"type": "ephemeral"}
COUNTING = "/v1/messages/count_tokens"
COUNTED = frozenset({"model", "system", "tools"})
"""Fields of a request's head that the counting endpoint takes."""
ADAPTIVE = frozenset({"claude-4.6", "claude-4.8", "claude-5"})
"""Families that decide for themselves how long to think."""


class AnthropicProvider(HttpProvider):
    """See HttpProvider: the Messages API."""

    PATH = "v1/messages"

    def __init__(self, model: ModelInfo, **given: Any) -> None:
        super().__init__(model, **given)
        self._extras: dict[str, Any] = {"cache_control": MARK}
        self._marks = True
        """Whether blocks get cache marks too."""
        if model.family in ADAPTIVE:
            # Without this the models' reasoning and their text between calls arrive as empty blocks.
            self._extras["thinking"] = {"type": "adaptive", "display": "summarized"}

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = anthropic_endpoint(key, url) or _signed_in()
        service = ModelService("Anthropic", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if service.host == urlsplit(ANTHROPIC_URL).netloc else service.elsewhere()

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a request before its messages, as the endpoint expects them."""
        return head

    def _encode(self, message: Message) -> bytes:
        return encode_message(message, self._model)

    def _reply(self) -> ReplyBuilder:
        return AnthropicReply(self._model, self._service, self._body.ids)

    def _counted(self, body: dict[str, Any], request: ModelRequest) -> bytes:
        key = key_in(request.system)
        parts = [self._encode(signed(message, key)) for message in request.messages]
        return encode(body)[:-1] + b',"messages":[' + b",".join(part for part in parts if part) + b"]}"

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Return the tokens of ``request`` as the provider counts them. ``url`` must be of the same host, since the key
        is sent there.

        Raises:
            UsageError: ``url`` is of another host. ProviderError: the endpoint does not count.
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

    def _leave_out(self, refusal: str) -> bool:
        refused = next((name for name in self._extras if name in refusal), None)
        if refused is None:
            return False
        del self._extras[refused]
        self._marks = "cache_control" in self._extras
        return True

    def _head(self, request: ModelRequest) -> bytes:
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


def _signed_in() -> KeyedEndpoint:
    """Return the endpoint that the SDK's credential chain finds. Raises AuthFailed when it finds none."""
    found = None
    if anthropic_chain():
        from ba_tui.providers.anthropic_sdk import signed_in  # noqa: PLC0415 - an SDK: a second, and 60 MB

        found = signed_in()
    if found is None:
        raise AuthFailed("No API key for Anthropic.", CURE)
    return found


class CloudProvider(AnthropicProvider):
    """Claude on a cloud: the SDK gives the address, the fields and the signature of requests; messages, connection and
    recorded bytes are as with Anthropic. ``kind`` is one of CLOUDS; ``given`` are arguments of AnthropicProvider.

    Raises:
        UsageError: the environment names no region or address, or no connection can be set up.
        AuthFailed: there is no key where one is needed.
    """

    def __init__(self, kind: str, model: ModelInfo, **given: Any) -> None:
        self._kind = kind
        super().__init__(model, **given)
        self._url = self._client.url

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        from ba_tui.providers.anthropic_sdk import CloudClient  # noqa: PLC0415 - an SDK: a second, and 60 MB

        self._client = CloudClient(self._kind, self._model.name, key.sent_to(url) if key else None, url)
        endpoint = self._client.endpoint
        return endpoint, CLOUDS[self._kind].service(endpoint, self._model.name)

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        return self._client.fields(head)

    def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        return self._client.events(body, self._service)

    def _leave_out(self, refusal: str) -> bool:
        """Remove marks step by step: some clouds take cache marks on blocks only, so those are kept until they are
        refused too."""
        marks = self._marks
        if super()._leave_out(refusal):
            self._marks = marks
            return True
        self._marks = marks and "cache_control" not in refusal
        return marks != self._marks

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Raise UsageError: clouds count at other addresses, or not at all."""
        raise UsageError(f"{self._service.name} has no endpoint that counts tokens.", "They are counted here instead.")
