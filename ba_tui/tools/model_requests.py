"""Requests to the session's model beside its main agent: the planner's, and the one for the answer to a plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from ba_tui.context.limits import BudgetLimits, Spending
from ba_tui.core.errors import ProviderError
from ba_tui.core.events import (
    MessageDone,
    MessageRestarted,
    Notice,
    PromptProgress,
    Retrying,
    SideRequest,
    TextDelta,
    ThinkingDelta,
)
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, Provider, ReplyChunk, charged
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.providers.in_use import ModelInUse
from ba_tui.settings import Settings


class ModelRequests:
    """Over a connection of its own, as a provider keeps the body of its last request. No request goes out beyond the
    limits of the session."""

    def __init__(self, model: ModelInUse, spending: Spending, settings: Settings) -> None:
        self._model = model
        self._limits = BudgetLimits(spending, model.info, settings.max_cost, settings.max_tokens)
        self._provider: Provider | None = None
        self._named = ""

    async def ask(self, branch: Branch, system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """The answer to a request that is no part of the conversation; its cost counts for the session.

        Raises:
            ProviderError: no answer comes. StopTurn: a limit is reached.
        """
        provider = await self._ready(branch)
        request = ModelRequest(system, messages, tools, call_tools=bool(tools), must_call=bool(tools))
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Message):
                    paid = charged(provider.model.prices, chunk.usage)
                    branch.emit(SideRequest("plan", chunk.model, chunk.usage, *paid))
                    return chunk
                if isinstance(chunk, Retrying | Notice):
                    branch.emit(chunk)
        raise ProviderError("The model's answer ended without a message.", "Send the request again.")

    async def say(self, branch: Branch, system: str, messages: Sequence[Message]) -> Message:
        """An answer of the branch's agent, shown as it comes. Raises as ``ask`` does."""
        provider = await self._ready(branch)
        request = ModelRequest(system, messages, (), call_tools=False)
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))) as chunks:
            async for chunk in chunks:
                match chunk:
                    case Message():
                        branch.emit(MessageDone(chunk, *charged(provider.model.prices, chunk.usage)))
                        return chunk
                    case TextDelta() | ThinkingDelta() | MessageRestarted() | PromptProgress() | Retrying() | Notice():
                        branch.emit(chunk)
                    case _:
                        pass
        raise ProviderError("The model's answer ended without a message.", "Send the request again.")

    def offered(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Those of ``tools`` that the model is told of: a plan of a small model has the tools that it knows."""
        return self._model.told("", tools)[1]

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None

    async def _ready(self, branch: Branch) -> Provider:
        await self._limits.before(branch)
        named = self._model.info().id
        if self._provider is None or self._named != named:
            await self.close()
            # It may read keys and load an SDK.
            self._provider, self._named = await asyncio.to_thread(self._model.provider, named), named
        return self._provider
