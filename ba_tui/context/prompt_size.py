"""How large the prompt is that the model reads now, for people who wait for its first word."""

from __future__ import annotations

from ba_tui.context.compression.gauge import Gauge
from ba_tui.core.events import PromptProgress
from ba_tui.core.messages import Message
from ba_tui.core.turn import Branch


class PromptSize:
    """core.agent.Interceptor: tells the size of each request. It comes last, when all notes of the step are there."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge

    async def before(self, branch: Branch) -> None:
        messages = branch.transcript.messages
        await self._gauge.ready(messages)
        branch.emit(PromptProgress(self._gauge.about(messages)))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: the prompt was read."""
