"""A provider that tries again: waits are announced, so that people see a countdown and can stop it.

Which errors may pass is their type (core.errors.Passing); how long to wait is resilience.Backoff's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import cast

from ba_tui.core.errors import Passing
from ba_tui.core.events import MessageRestarted, Retrying
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk
from ba_tui.resilience import Backoff

log = logging.getLogger(__name__)


class Persistent:
    """``provider`` with further attempts. Raises what the last attempt raised."""

    def __init__(
        self,
        provider: Provider,
        backoff: Backoff | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,  # noqa: S311 - spreads retries, guards nothing
    ) -> None:
        self._provider = provider
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._chance = chance

    @property
    def model(self) -> ModelInfo:
        return self._provider.model

    def connect(self) -> None:
        self._provider.connect()

    async def close(self) -> None:
        await self._provider.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        attempt, shown = 0, False
        while True:
            attempt += 1
            try:
                answer = cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))
                async with contextlib.aclosing(answer) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
                        if isinstance(chunk, Message):
                            return
                return
            except Passing as error:
                wait = self._backoff.wait(attempt, self._chance(), error.retry_after)
                if wait is None:
                    raise
                log.info("attempt %d failed: %s", attempt, error)
                yield Retrying(reason=str(error), delay=wait, attempt=attempt + 1, attempts=self._backoff.attempts)
            await self._sleep(wait)
            if shown:
                shown = False
                yield MessageRestarted()
