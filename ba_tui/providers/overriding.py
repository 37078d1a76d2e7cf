"""Another model answers for a while: a provider that passes requests on to the one that is wanted now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from ba_tui.core.errors import BaError
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk

log = logging.getLogger(__name__)


class Overridden:
    """core.provider.Provider: ``own`` answers unless ``wanted`` names another model."""

    def __init__(self, own: Provider, wanted: Callable[[ModelRequest], str], make: Callable[[str], Provider]) -> None:
        self._own = own
        self._wanted = wanted
        self._make = make
        self._others: dict[str, Provider] = {}
        self._now = own

    @property
    def model(self) -> ModelInfo:
        return self._now.model

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        name = self._wanted(request)
        if name and name != self._own.model.id:
            return self._answer(name, request)
        self._now = self._own
        return self._own.stream(request)

    async def _answer(self, name: str, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self._now = await self._chosen(name)
        # Left as soon as the message is there: see core.agent.
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._now.stream(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    def connect(self) -> None:
        self._own.connect()

    async def close(self) -> None:
        for provider in (self._own, *self._others.values()):
            await provider.close()

    async def _chosen(self, name: str) -> Provider:
        if name not in self._others:
            try:
                self._others[name] = await asyncio.to_thread(self._make, name)
            except BaError as error:
                log.warning("the model %s that is wanted can't answer: %s", name, error)
                return self._own
        return self._others[name]
