"""The model for small work beside a conversation: summaries, and conditions that hooks put in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from ba_tui.core.errors import ProviderError, UsageError
from ba_tui.core.events import SideRequest
from ba_tui.core.messages import Message, user
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk, charged
from ba_tui.providers.access import SCRIPTED, ProviderAccess
from ba_tui.providers.retrying import Limits, Persistent
from ba_tui.providers.slots import SMALL, check_options
from ba_tui.providers.vendors import provider_for


class SmallModel:
    """The model of the slot small beside the agent's ``own``; an answer has at most ``tokens`` where no limit is set.

    It has a connection of its own, as a provider keeps the body of its last request.
    """

    def __init__(self, access: ProviderAccess, own: Callable[[], ModelInfo], tokens: int) -> None:
        self._access = access
        self._own = own
        self._tokens = tokens
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

    async def ask(self, system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        """The answer to one message, and what it cost. Raises ProviderError when none comes."""
        provider = await self.provider()
        answer = await one_answer(provider, system, text)
        paid = charged(provider.model.prices, answer.usage)
        return answer.text, SideRequest(purpose, answer.model, answer.usage, *paid)

    def _made(self, info: ModelInfo) -> Provider:
        chosen = self._access.slots.settings(SMALL)
        profile = self._access.profile(info)
        tokens = chosen.max_output_tokens or self._tokens
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


async def one_answer(provider: Provider, system: str, text: str) -> Message:
    """What ``provider`` answers to one message, without tools. Raises ProviderError when it breaks off."""
    request = ModelRequest(system, (user(text),), (), call_tools=False)
    async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, Message):
                return chunk
    raise ProviderError("The answer broke off.")
