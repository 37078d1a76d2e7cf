"""A provider whose model's server is asked what it knows of the model, while its first answer comes in.

What is asked is the business of ``facts``; what was told counts from the next request on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import cast

from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import Listed

log = logging.getLogger(__name__)
LEARNING = "model facts"
"""The name of the task that asks."""
AFTER = 0.4
"""Seconds after the first piece of an answer: quick first steps must not share the processor with the asking."""
GRACE = 1.0
"""Seconds that closing waits for an answer."""
SET_WINDOW = "Set it in your models.yaml: models: [{match: [NAME], window: TOKENS}]. See ba guide prices."


class Informed:
    """core.provider.Provider: what ``make`` made of the facts known by now of the model ``name``."""

    def __init__(self, name: str, access: ProviderAccess, make: Callable[[ModelInfo], Provider]) -> None:
        self._name = name
        self._access = access
        self._make = make
        self._provider = make(access.model(name))
        self._asking: asyncio.Task[None] | None = None
        self._notices: list[Notice] = []

    @property
    def model(self) -> ModelInfo:
        return self._provider.model

    def connect(self) -> None:
        self._provider.connect()

    async def close(self) -> None:
        if self._asking:
            # A connection that is cancelled while it is made leaves its socket open.
            await asyncio.wait([self._asking], timeout=GRACE)
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking
        await self._provider.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        await self._renew()
        while self._notices:
            yield self._notices.pop(0)
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))) as chunks:
            async for chunk in chunks:
                self._ask()
                yield chunk

    async def _renew(self) -> None:
        info = self._access.model(self._name)
        if info == self._provider.model:
            return
        before, self._provider = self._provider, await asyncio.to_thread(self._make, info)
        await before.close()

    def _ask(self) -> None:
        """Begin to ask, once: the request is out by now, and the server has time while it writes."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._learn(), name=LEARNING)

    async def _learn(self) -> None:
        await asyncio.sleep(AFTER)
        try:
            self._notices += await learn(self._access, self._access.model(self._name))
        except (BaError, OSError) as error:
            log.info("%s tells nothing of itself: %s", self._name, error)


async def learn(access: ProviderAccess, info: ModelInfo) -> Sequence[Notice]:
    """Ask the server of ``info`` for its facts and keep them, unless it was asked of late; what a person should know.

    Raises:
        BaError: nobody answers, or what comes can't be read.
    """
    server = await asyncio.to_thread(access.server, info)
    if server is None or not access.facts.wanted(server, info.name):
        return ()
    from ba_tui.providers.facts.asking import ask_facts  # noqa: PLC0415 - an HTTP client; the provider has one by now

    listed = await ask_facts(server, info.name)
    told = listed.find(info.name)
    if told:
        # Under the name that was asked for: the server's own may have a tag behind it.
        await asyncio.to_thread(access.facts.learn, server, replace(told, name=info.name))
    return _notices(access.model(info.id), server, listed)


def _notices(info: ModelInfo, server: ModelServer, listed: Listed) -> list[Notice]:
    notices = [Notice(line, "warning") for line in listed.problems]
    if not info.known:
        text = f"{server.host} does not say how large the window of {info.id} is. ba assumes {info.window:,} tokens."
        notices.append(Notice(text, "warning", SET_WINDOW.replace("NAME", info.name)))
    return notices
