"""The bus that members of a team talk over: in one process, or over a server. Protocols and a value only."""

from __future__ import annotations

from typing import Protocol

from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.values import frozen


@frozen
class Delivery:
    """A message that was taken from ``topic``; it comes again unless it is acknowledged. ``times``: how often it was
    delivered, this time included."""

    topic: str
    message: AgentMessage
    token: str
    times: int = 1


class Deliveries(Protocol):
    """What comes to one consumer; it ends when the bus is closed."""

    def __aiter__(self) -> Deliveries: ...

    async def __anext__(self) -> Delivery: ...

    async def aclose(self) -> None:
        """Leave: what was taken and not acknowledged goes to another consumer."""
        ...


class MessageBus(Protocol):
    """Messages by topic, at least once, in the order of each sender. A member's inbox is the topic of its name.

    Its methods raise UsageError for a message that is too large, StorageError when the server stays away.
    """

    async def publish(self, topic: str, message: AgentMessage) -> AgentMessage:
        """Returns the message as it was sent, with its sequence. While the server is away it is kept and sent later."""
        ...

    def subscribe(self, topic: str, group: str, consumer: str) -> Deliveries:
        """What comes to ``topic``, each message to one consumer of ``group``; what a consumer that died had taken comes
        to another."""
        ...

    async def ack(self, delivery: Delivery, group: str) -> None: ...

    async def renew(self, delivery: Delivery, group: str) -> None:
        """Keep a delivery for another lease: whoever works on it for long says so now and then."""
        ...

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None:
        """Set a message aside that nobody can handle."""
        ...

    async def close(self) -> None: ...
