"""Claude on clouds: the SDK says where requests go, how their fields look and how they are signed.

All else is as at Anthropic: the messages, the connection, and what is recorded, which are the bytes of the network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.providers.anthropic import COUNTING, AnthropicProvider
from ba_tui.providers.anthropic_sdk import CloudClient
from ba_tui.providers.clouds.needs import CLOUDS
from ba_tui.providers.credentials import BoundKey, Endpoint
from ba_tui.providers.faults import ModelService


class CloudProvider(AnthropicProvider):
    """``kind`` is one of CLOUDS; ``given`` is what AnthropicProvider takes.

    Raises:
        UsageError: the environment names no region or address, or no connection can be set up.
        AuthFailed: there is no key where one is needed.
    """

    def __init__(self, kind: str, model: ModelInfo, **given: Any) -> None:
        self._kind = kind
        super().__init__(model, **given)
        self._url = self._client.url

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[Endpoint, ModelService]:
        self._client = CloudClient(self._kind, self._model.name, key.sent_to(url) if key else None, url)
        endpoint = self._client.endpoint
        return endpoint, CLOUDS[self._kind].service(endpoint, self._model.name)

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        return self._client.fields(head)

    def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        return self._client.events(body, self._service)

    def _leave_out(self, refusal: str) -> bool:
        """Some clouds know marks for the cache on blocks only, so these stay until they are refused themselves."""
        marks = self._marks
        if super()._leave_out(refusal):
            self._marks = marks
            return True
        self._marks = marks and "cache_control" not in refusal
        return marks != self._marks

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Raises UsageError: clouds count at addresses of their own, or not at all."""
        raise UsageError(f"{self._service.name} has no endpoint that counts tokens.", "They are counted here instead.")
