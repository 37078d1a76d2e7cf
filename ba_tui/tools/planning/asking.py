"""Requests to the session's model beside its main agent: the planner's, and the one for the answer to a plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import cast

from ba_tui.core.agent import Interceptor
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
from ba_tui.core.provider import ModelRequest, Provider, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch


class ModelRequests:
    """Over a connection of its own, as a provider keeps the body of its last request.

    ``model``: the id of the model in use, ``made`` makes a connection to it (it may read keys and load an SDK).
    ``limits``: what must let each request through, such as the session's budget.
    """

    def __init__(
        self, model: Callable[[], str], made: Callable[[str], Provider], limits: Sequence[Interceptor] = ()
    ) -> None:
        self._model = model
        self._made = made
        self._limits = limits
        self._provider: Provider | None = None
        self._named = ""

    async def ask(self, branch: Branch, system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """The answer to a request that is no part of the conversation; its cost counts for the session.

        Raises:
            ProviderError: no answer comes. StopTurn: a limit is reached.
        """
        provider = await self._ready(branch)
        request = ModelRequest(system, messages, tools, call_tools=bool(tools))
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Message):
                    cost = self._cost(provider, chunk)
                    branch.emit(SideRequest("plan", chunk.model, chunk.usage, cost))
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
                        branch.emit(MessageDone(chunk, self._cost(provider, chunk)))
                        return chunk
                    case TextDelta() | ThinkingDelta() | MessageRestarted() | PromptProgress() | Retrying() | Notice():
                        branch.emit(chunk)
                    case _:
                        pass
        raise ProviderError("The model's answer ended without a message.", "Send the request again.")

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None

    async def _ready(self, branch: Branch) -> Provider:
        for limit in self._limits:
            await limit.before(branch)
        if self._provider is None or self._named != self._model():
            await self.close()
            self._named = self._model()
            self._provider = await asyncio.to_thread(self._made, self._named)
        return self._provider

    @staticmethod
    def _cost(provider: Provider, answer: Message) -> float | None:
        prices = provider.model.prices
        return prices.cost(answer.usage) if prices and answer.usage else None
