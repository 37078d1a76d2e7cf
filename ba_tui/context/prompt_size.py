"""How large the prompt is that the model reads now, for people who wait for its first word."""

from __future__ import annotations

import asyncio

from ba_tui.context.compression.gauge import Gauge
from ba_tui.core.events import PromptProgress
from ba_tui.core.messages import Message
from ba_tui.core.turn import Branch

SOON = 1.0
"""Seconds that a first prompt is not counted for: most models answer meanwhile, and the request goes out first."""


class PromptSize:
    """core.agent.Interceptor: tells the size of each request. It comes last, when all notes of the step are there."""

    def __init__(self, gauge: Gauge, soon: float = SOON) -> None:
        self._gauge = gauge
        self._soon = soon
        self._counting: asyncio.Task[None] | None = None

    async def before(self, branch: Branch) -> None:
        messages = branch.transcript.messages
        if any(message.usage for message in messages):
            await self._gauge.ready(messages)
            branch.emit(PromptProgress(self._gauge.used(messages)))
        else:
            self._stop()
            counting = self._counting = asyncio.create_task(self._count(branch))
            if work := asyncio.current_task():
                # After an error or a cancel no reply comes: the count ends with the work of its agent.
                work.add_done_callback(lambda _: counting.cancel())

    async def _count(self, branch: Branch) -> None:
        """What no provider has counted yet is counted as the context report does it, beside the request."""
        messages = tuple(branch.transcript.messages)
        await asyncio.sleep(self._soon)
        tokens = await asyncio.to_thread(self._gauge.estimate, messages)
        if tuple(branch.transcript.messages) == messages:
            branch.emit(PromptProgress(tokens))

    async def after(self, reply: Message, branch: Branch) -> None:
        """The prompt was read."""
        self._stop()

    def _stop(self) -> None:
        if self._counting:
            self._counting.cancel()
            self._counting = None
