"""A provider that tries again: waits are announced, so that people see a countdown and can stop it.

Which errors may pass is their type (core.errors.Passing); how long to wait is resilience.Backoff's and rate_limits'.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import cast

from ba_tui.core.errors import Overloaded, Passing
from ba_tui.core.events import MessageRestarted, Retrying
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, Provider, ProviderWrapper, ReplyChunk
from ba_tui.core.values import frozen
from ba_tui.providers.rate_limits import RateLimit
from ba_tui.resilience import Backoff

log = logging.getLogger(__name__)


@frozen
class Limits:
    """``rate`` of the provider, if it is limited; after ``overloads`` in a row no further attempt is made, if not 0."""

    rate: RateLimit | None = None
    overloads: int = 0


class Persistent(ProviderWrapper):
    """``provider`` with further attempts. Raises what the last attempt raised."""

    def __init__(
        self,
        provider: Provider,
        backoff: Backoff | None = None,
        limits: Limits | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,  # noqa: S311 - spreads retries, guards nothing
    ) -> None:
        super().__init__(provider)
        self._backoff = backoff or Backoff()
        self._limits = limits or Limits()
        self._sleep = sleep
        self._chance = chance

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        attempt, overloads, shown = 0, 0, False
        while True:
            async for waiting in self._admitted():
                yield waiting
            attempt += 1
            try:
                answer = cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))
                async with contextlib.aclosing(answer) as chunks:
                    async for chunk in chunks:
                        shown = True
                        if isinstance(chunk, Message) and self._limits.rate:
                            self._limits.rate.used(chunk.usage)
                        yield chunk
                        if isinstance(chunk, Message):
                            return
                return
            except Passing as error:
                overloads = overloads + 1 if isinstance(error, Overloaded) else 0
                wait = self._backoff.wait(attempt, self._chance(), error.retry_after)
                if wait is None or overloads == self._limits.overloads > 0:
                    raise
                log.info("attempt %d failed: %s", attempt, error)
                yield Retrying(reason=str(error), delay=wait, attempt=attempt + 1, attempts=self._backoff.attempts)
            await self._sleep(wait)
            if shown:
                shown = False
                yield MessageRestarted()

    async def _admitted(self) -> AsyncIterator[Retrying]:
        """Wait until the rate limit lets the next request go."""
        while self._limits.rate and (wait := self._limits.rate.next()):
            yield Retrying(reason=wait.reason, delay=wait.seconds, attempt=0, attempts=0)
            await self._sleep(wait.seconds)
