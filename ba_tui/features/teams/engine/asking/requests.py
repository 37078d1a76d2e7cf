"""Sends a request to another member, and waits for its answer while that member gives signs of life."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.messages import inbox


class NoAnswer(UsageError):
    """Whether it was done is not known."""

    kind = "timeout"


@dataclass
class _Waiting:
    member: str
    answer: asyncio.Future[AgentMessage]
    heard: float = field(default_factory=time.monotonic)


class Requests:
    """Those of the member ``name``. Hand it what comes to its inbox with ``take``. ``patience``: seconds without a
    sign of life after which the other member is gone."""

    def __init__(self, name: str, bus: MessageBus, patience: float = 30.0) -> None:
        self.name = name
        self.bus = bus
        self._patience = patience
        self._waiting: dict[str, _Waiting] = {}

    def take(self, received: AgentMessage) -> bool:
        """Whether the message belongs to a request that waits for its answer, and comes from who was asked."""
        found = self._waiting.get(received.correlation_id)
        if found is None or found.answer.done() or received.sender != found.member:
            return False
        found.heard = time.monotonic()
        if received.type != "status_update":
            found.answer.set_result(received)
        return True

    async def ask(self, request: AgentMessage) -> AgentMessage:
        """The answer of the request's receiver.

        Raises:
            NoAnswer: it is silent. UsageError: the request can't be sent.
        """
        member = request.receiver
        found = _Waiting(member, asyncio.get_running_loop().create_future())
        self._waiting[request.id] = found
        try:
            await self.bus.publish(inbox(member), request)
            while (left := found.heard + self._patience - time.monotonic()) > 0:
                if (await asyncio.wait({found.answer}, timeout=left))[0]:
                    break
            else:
                text = f"{member} gives no sign of life for {self._patience:g} s: it may be gone."
                raise NoAnswer(text, "Ask another member.")
            return found.answer.result()
        finally:
            del self._waiting[request.id]
