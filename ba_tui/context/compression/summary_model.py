"""The model that writes summaries: its own connection, as a provider keeps the body of its last request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ba_tui.core.errors import ProviderError, UsageError
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.retrying import Persistent
from ba_tui.providers.vendors import provider_for
from ba_tui.settings import Settings


class SummaryModel:
    """The one that the settings name for compression, or else the agent's ``own``."""

    def __init__(self, settings: Settings, access: ProviderAccess, own: Callable[[], ModelInfo]) -> None:
        self._settings = settings
        self._access = access
        self._own = own
        self._provider: Provider | None = None

    def model(self) -> ModelInfo:
        name = self._settings.compression.model
        try:
            return self._access.model(name) if name else self._own()
        except UsageError:
            return self._own()

    async def provider(self) -> Provider:
        info = self.model()
        if self._provider is None or self._provider.model.id != info.id:
            await self.close()
            self._provider = await asyncio.to_thread(self._made, info)
        return self._provider

    def _made(self, info: ModelInfo) -> Provider:
        # Twice the cap: some models think before they write.
        tokens = 2 * self._settings.compression.summary_tokens
        chosen = replace(self._settings, max_output_tokens=tokens, effort=None)
        try:
            return Persistent(provider_for(info, chosen, self._access))
        except UsageError as error:
            raise ProviderError(str(error), error.hint) from error

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None
