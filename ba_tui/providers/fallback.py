"""Another model answers while the main one is overloaded; the person is told of both changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from ba_tui.core.errors import BaError, Overloaded
from ba_tui.core.events import MessageRestarted, Notice
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk

REST = 300.0
"""Seconds after which the main model is asked again."""


class WithFallback:
    """core.provider.Provider: ``own``, and for a while after it raised Overloaded the model ``name``."""

    def __init__(
        self,
        own: Provider,
        name: str,
        make: Callable[[str], Provider],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own = own
        self._name = name
        self._make = make
        self._clock = clock
        self._other: Provider | None = None
        self._now = own
        self._until = 0.0

    @property
    def model(self) -> ModelInfo:
        """The one that answered last, or answers now."""
        return self._now.model

    def connect(self) -> None:
        self._now.connect()

    async def close(self) -> None:
        await self._own.close()
        if self._other:
            await self._other.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider. Raises what ``own`` raised where the fallback model can't be asked."""
        shown = False
        if self._clock() >= self._until:
            if self._now is not self._own:
                yield Notice(f"{self._own.model.id} is used again.")
            self._now = self._own
            try:
                async with aclosing(_answer(self._own, request)) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
                return
            except Overloaded as error:
                try:
                    self._now = await self._fallback()
                except BaError as other:
                    raise Overloaded(str(error), f"The fallback model can't be asked: {other}") from error
            self._until = self._clock() + REST
            yield Notice(
                f"{self._own.model.id} is overloaded. {self._now.model.id} is used for the next minutes.", "warning"
            )
            if shown:
                yield MessageRestarted()
        async with aclosing(_answer(self._now, request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _fallback(self) -> Provider:
        if self._other is None:
            self._other = await asyncio.to_thread(self._make, self._name)
        return self._other


def _answer(provider: Provider, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    return cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))
