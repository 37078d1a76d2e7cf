"""A provider whose answers always say how many tokens they used: where the server reports none, ba estimates them.

Limits on tokens and cost would never be reached with a server that reports no usage.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from ba_tui.core.messages import Message, Usage
from ba_tui.core.provider import ModelRequest, Provider, ProviderWrapper, ReplyChunk
from ba_tui.providers.tokens.counter import DynamicTokenCounter


class UsageEstimator(ProviderWrapper):
    """core.provider.Provider: ``provider``, with estimates for answers without token counts. An answer that claims a
    prompt of 0 tokens, or an output of 0 tokens for words, was not counted either."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self._counter: DynamicTokenCounter | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))) as chunks:
            async for chunk in chunks:
                yield await self._counted(request, chunk) if isinstance(chunk, Message) else chunk

    async def _counted(self, request: ModelRequest, answer: Message) -> Message:
        told = answer.usage or Usage()
        if told.prompt and (told.output or not answer.blocks):
            return answer
        # In a thread: the first estimate of a long conversation takes longer than the screen can wait.
        return replace(answer, usage=await asyncio.to_thread(self._estimated, request, answer, told))

    def _estimated(self, request: ModelRequest, answer: Message, told: Usage) -> Usage:
        """Return ``told`` with estimates for what is missing."""
        counter = self._counter = self._counter or DynamicTokenCounter()
        prompt = output = 0
        if not told.prompt:
            fixed = counter.text(request.system) + counter.tools(request.tools)
            prompt = fixed + counter.conversation(request.messages)
        if not told.output and answer.blocks:
            output = counter.message(answer)
        return told + Usage(input=prompt, output=output, estimated=prompt + output)
