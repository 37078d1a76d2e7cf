"""A provider that compresses what it is told is too long, and asks once more."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import cast

from ba_tui.context.compression.compressor import Compressor
from ba_tui.core.errors import ContextOverflow
from ba_tui.core.events import MessageRestarted
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, Provider, ProviderWrapper, ReplyChunk


class Fitting(ProviderWrapper):
    """``provider`` with a second attempt. That it was compressed is among the chunks, so that the log holds it."""

    def __init__(self, provider: Provider, compressor: Compressor) -> None:
        super().__init__(provider)
        self._compressor = compressor

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        shown = False
        try:
            async with contextlib.aclosing(self._answer(request)) as chunks:
                async for chunk in chunks:
                    shown = True
                    yield chunk
                    if isinstance(chunk, Message):
                        return
            return
        except ContextOverflow as error:
            done = await self._compressor.rescue(request.messages, str(error))
            if done is None:
                raise
        yield done
        if shown:
            yield MessageRestarted()
        shorter = replace(request, messages=done.messages, tools=self._compressor.tools(request.tools))
        async with contextlib.aclosing(self._answer(shorter)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _answer(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        return cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))
