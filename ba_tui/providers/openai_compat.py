"""Chat Completions: any endpoint that speaks OpenAI's format, and Azure.

The message format is in openai_wire, errors are in faults; ``pipeline`` repeats requests.
"""

from __future__ import annotations

from typing import Any

from ba_tui.core.errors import AuthFailed
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.providers.connection import HttpProvider
from ba_tui.providers.credentials import CLOUDS, BoundKey, KeyedEndpoint, azure_endpoint, openai_endpoint
from ba_tui.providers.faults import ModelService
from ba_tui.providers.wire.openai_wire import OpenAIReply, ReasoningField, encode_message, tool_to_wire
from ba_tui.providers.wire.shapes import encode
from ba_tui.providers.wire.sse import ReplyBuilder

VARIABLE = "OPENAI_API_KEY"
OWN = "https://api.openai.com"


class OpenAIProvider(HttpProvider):
    """See HttpProvider: Chat Completions."""

    PATH = "chat/completions"

    def __init__(self, model: ModelInfo, **given: Any) -> None:
        super().__init__(model, **given)
        if self._service.vendor and "max_tokens" in self._options:
            # OpenAI's own reasoning models accept the new name only, all other servers the old one.
            self._options["max_completion_tokens"] = self._options.pop("max_tokens")
        self._counted = True
        self._reasoning: ReasoningField = "reasoning_content"

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = openai_endpoint(key, url)
        own = endpoint.url.startswith(OWN)
        if own and not endpoint.secret:
            raise AuthFailed("No API key for OpenAI.", f"Set {VARIABLE}, or set base_url to a server of your own.")
        service = ModelService("OpenAI", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if own else service.elsewhere()

    def _encode(self, message: Message) -> bytes:
        return encode_message(message, self._model, self._reasoning)

    def _reply(self) -> ReplyBuilder:
        return OpenAIReply(self._model, self._service, self._body.ids)

    def _finish(self, reply: ReplyBuilder) -> Message:
        if isinstance(reply, OpenAIReply):
            self._reasoning = reply.reasoning or self._reasoning
        return reply.finish()

    def _leave_out(self, refusal: str) -> bool:
        # Servers that can't count tokens while streaming refuse this field.
        refused = self._counted and "stream_options" in refusal
        self._counted = self._counted and not refused
        return refused

    def _head(self, request: ModelRequest) -> bytes:
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


class AzureProvider(OpenAIProvider):
    """OpenAI's format at the user's Azure resource; a model is the name of a deployment.

    Raises:
        UsageError: there is no address, or no connection can be set up.
    """

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = azure_endpoint(key, url)
        return endpoint, CLOUDS["azure"].service(endpoint, self._model.name)
