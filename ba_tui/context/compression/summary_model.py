"""The model that writes summaries: its own connection, as a provider keeps the body of its last request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ba_tui.core.errors import ProviderError, UsageError
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.providers.access import SCRIPTED, ProviderAccess
from ba_tui.providers.retrying import Limits, Persistent
from ba_tui.providers.slots import SMALL, check_options
from ba_tui.providers.vendors import provider_for
from ba_tui.settings import Settings


class SummaryModel:
    """The model for small work beside the agent's ``own``."""

    def __init__(self, settings: Settings, access: ProviderAccess, own: Callable[[], ModelInfo]) -> None:
        self._settings = settings
        self._access = access
        self._own = own
        self._provider: Provider | None = None

    def model(self) -> ModelInfo:
        """The agent's own where the one that was set can't be a model: the face has told that."""
        try:
            return self._access.slots.small(self._own())
        except UsageError:
            return self._own()

    async def provider(self) -> Provider:
        info = self.model()
        if self._provider is None or self._provider.model.id != info.id:
            await self.close()
            self._provider = await asyncio.to_thread(self._made, info)
        return self._provider

    def _made(self, info: ModelInfo) -> Provider:
        chosen = self._access.slots.settings(SMALL)
        profile = self._access.profile(info)
        # Twice the cap: some models think before they write.
        tokens = chosen.max_output_tokens or 2 * self._settings.compression.summary_tokens
        try:
            if profile.kind != SCRIPTED:
                check_options(info, chosen, profile.format)
            provider = provider_for(info, replace(chosen, max_output_tokens=tokens), self._access)
        except UsageError as error:
            raise ProviderError(str(error), error.hint) from error
        return Persistent(provider, limits=Limits(self._access.limits.of(info.provider, profile)))

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None
