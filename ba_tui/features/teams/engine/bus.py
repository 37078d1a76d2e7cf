"""The bus of a team: its protocol, and the bus within one process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.messages import USUAL, WORKERS, BusLimits, Trouble, encoded, inbox, message

PASSING = frozenset({WORKERS})
"""Topics of which only the newest messages matter: nothing is stored for groups that subscribe later."""
NEWEST = 1_000
"""Number of messages that a PASSING topic keeps."""
DEAD = 1_000
"""Number of dead letters that are kept."""
REMEMBERED = 10_000
"""Number of message ids that are remembered to detect duplicates."""
BUS = "bus"
"""Sender of the bus's own messages."""


@frozen
class Delivery:
    """A message taken from ``topic``; it is delivered again unless acknowledged. ``times``: number of deliveries so
    far."""

    topic: str
    message: AgentMessage
    token: str
    times: int = 1


_Expired: TypeAlias = Callable[[Delivery, str, str], Awaitable[None]]


class Deliveries(Protocol):
    """Messages for one consumer, until the bus is closed."""

    def __aiter__(self) -> Deliveries: ...

    async def __anext__(self) -> Delivery: ...

    async def aclose(self) -> None:
        """Leave; unacknowledged messages go to another consumer."""
        ...


class MessageBus(Protocol):
    """Messages by topic, delivered at least once, in the order of each sender. A member's inbox is the topic of its
    name. Methods raise UsageError for a message that is too large, StorageError if the server stays unreachable."""

    async def publish(self, topic: str, message: AgentMessage) -> AgentMessage:
        """Send a message and return it with its sequence number. While the server is unreachable, the message is
        queued."""
        ...

    def subscribe(self, topic: str, group: str, consumer: str) -> Deliveries:
        """Return the messages of ``topic``, each for one consumer of ``group``; messages of a dead consumer go to
        another one."""
        ...

    async def ack(self, delivery: Delivery, group: str) -> None: ...

    async def renew(self, delivery: Delivery, group: str) -> None:
        """Extend the lease of a delivery. Consumers that work for long call this from time to time."""
        ...

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None:
        """Move a message that cannot be processed to the dead letters."""
        ...

    async def close(self) -> None: ...


@frozen
class DeadLetter:
    """A message that no member could process, and why."""

    topic: str
    group: str
    message: AgentMessage
    reason: str


class MemoryBus:
    """A bus in memory. The cost of a message does not grow over time: messages that all groups acknowledged are
    dropped.
    """

    def __init__(self, limits: BusLimits = USUAL) -> None:
        self._limits = limits
        self._topics: dict[str, _Topic] = {}
        self._sequences: dict[str, int] = {}
        self._published: dict[str, int] = {}
        self._dead: deque[DeadLetter] = deque(maxlen=DEAD)
        self._closed = False

    async def publish(self, topic: str, message: AgentMessage) -> AgentMessage:
        """See MessageBus. A message whose id was published before is ignored."""
        if self._closed:
            raise UsageError("The bus of this team is closed.")
        if message.id in self._published:
            return replace(message, sequence=self._published[message.id])
        encoded(message, self._limits)
        known = self._topic(topic)
        if topic not in PASSING:
            known.check(self._limits.waiting)
        sequence = self._sequences[message.sender] = self._sequences.get(message.sender, 0) + 1
        sent = replace(message, sequence=sequence)
        known.add(sent, passing=topic in PASSING)
        self._published[sent.id] = sequence
        if len(self._published) > REMEMBERED:
            del self._published[next(iter(self._published))]
        return sent

    def subscribe(self, topic: str, group: str, consumer: str) -> Subscription:
        """See MessageBus. The first group of a topic receives the messages that already wait; later
        groups receive only new ones.
        """
        return Subscription(topic, self._topic(topic).joined(group, self._limits), consumer, self._expired)

    async def ack(self, delivery: Delivery, group: str) -> None:
        """See MessageBus."""
        self._group(delivery, group).settled(delivery.token)

    async def renew(self, delivery: Delivery, group: str) -> None:
        """See MessageBus."""
        self._group(delivery, group).renewed(delivery.token)

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None:
        """See MessageBus."""
        if self._group(delivery, group).settled(delivery.token):
            await self._expired(delivery, group, reason)

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Return the dead letters, oldest first."""
        return tuple(self._dead)

    def waiting(self, topic: str) -> int:
        """Return the number of messages in ``topic`` that some group has not acknowledged."""
        return self._topic(topic).waiting

    async def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        for topic in self._topics.values():
            for group in topic.groups.values():
                group.close()

    async def _expired(self, delivery: Delivery, group: str, reason: str) -> None:
        self._dead.append(DeadLetter(delivery.topic, group, delivery.message, reason))
        if letter := obituary(delivery.message, group, reason):
            await self.publish(inbox(delivery.message.sender), letter)

    def _topic(self, name: str) -> _Topic:
        if name not in self._topics:
            self._topics[name] = _Topic(name)
        return self._topics[name]

    def _group(self, delivery: Delivery, group: str) -> _Group:
        """Raises UsageError."""
        found = self._topic(delivery.topic).groups.get(group)
        if found is None:
            raise UsageError(f"The topic {delivery.topic} has no group {group}.")
        return found


def obituary(dead: AgentMessage, group: str, reason: str) -> AgentMessage | None:
    """Return the message that tells the sender of a request that no member could process it. The message id is
    deterministic.
    """
    if dead.type != "task_request" or dead.sender == BUS:
        return None
    task = str(dead.content.get("task", ""))
    said = message(Trouble("dead_letter", f"Nobody could handle this request: {reason}", "", task), BUS, about=dead)
    return replace(said, receiver=dead.sender, id=f"dead-{group}-{dead.id}"[:200])


class Subscription:
    """The message stream of one consumer. Closing it releases its unacknowledged messages to other consumers
    immediately.
    """

    def __init__(self, topic: str, group: _Group, consumer: str, expired: _Expired) -> None:
        self._topic = topic
        self._group = group
        self._consumer = consumer
        self._expired = expired

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Delivery:
        while True:
            taken = await self._group.take(self._consumer)
            if taken is None:
                raise StopAsyncIteration
            delivery = Delivery(self._topic, taken.message, taken.token, taken.times)
            if taken.times <= self._group.limits.deliveries:
                return delivery
            self._group.settled(taken.token)
            await self._expired(delivery, self._group.name, too_often(self._group.limits.deliveries))

    async def aclose(self) -> None:
        self._group.left(self._consumer)


def too_often(deliveries: int) -> str:
    return f"it was delivered {deliveries} times, and never acknowledged."


class _Topic:
    """The groups of a topic; without any group, published messages wait."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.groups: dict[str, _Group] = {}
        self._early: deque[AgentMessage] = deque()

    @property
    def waiting(self) -> int:
        return max((group.waiting for group in self.groups.values()), default=len(self._early))

    def check(self, most: int) -> None:
        """Check that the topic has room for another message. Raises UsageError."""
        if self.waiting >= most:
            raise full(self.name, most)

    def add(self, message: AgentMessage, *, passing: bool) -> None:
        for group in self.groups.values():
            group.add(message, NEWEST if passing else None)
        if not self.groups and not passing:
            self._early.append(message)

    def joined(self, name: str, limits: BusLimits) -> _Group:
        if name not in self.groups:
            first = not self.groups
            self.groups[name] = _Group(name, limits, self._early if first else deque())
            self._early = deque()
        return self.groups[name]


def full(topic: str, most: int) -> UsageError:
    return UsageError(
        f"{most:,} messages wait in the topic {topic}, and nobody takes them.",
        "Start more workers, or raise the setting team.max_waiting.",
    )


class _Taken:
    """A delivered message, reserved for ``consumer`` until ``until`` on the event loop's clock."""

    __slots__ = ("consumer", "message", "times", "token", "until")

    def __init__(self, message: AgentMessage, token: str, times: int = 0) -> None:
        self.message = message
        self.token = token
        self.times = times
        self.consumer = ""
        self.until = 0.0


class _Group:
    """Delivers each message to one consumer. Redeliveries come before new messages."""

    def __init__(self, name: str, limits: BusLimits, fresh: deque[AgentMessage]) -> None:
        self.name = name
        self.limits = limits
        self._fresh = fresh
        self._again: deque[_Taken] = deque()
        self._taken: dict[str, _Taken] = {}
        """By token, in the order in which their leases end."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        return len(self._fresh) + len(self._again) + len(self._taken)

    def add(self, message: AgentMessage, most: int | None) -> None:
        self._fresh.append(message)
        if most and len(self._fresh) > most:
            self._fresh.popleft()
        self._wake()

    async def take(self, consumer: str) -> _Taken | None:
        """Wait for the next message for ``consumer``; return None once the bus is closed."""
        while not self._closed:
            if self._again or self._fresh:
                return self._lend(consumer)
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    # The consumer was cancelled after it was woken: wake another for the message.
                    self._wake()
                raise
        return None

    def settled(self, token: str) -> bool:
        """Mark a delivery as settled; return False if it was settled before."""
        if self._taken.pop(token, None):
            return True
        # The lease ended, and no other consumer has taken the message yet.
        late = next((taken for taken in self._again if taken.token == token), None)
        if late:
            self._again.remove(late)
        return late is not None

    def renewed(self, token: str) -> None:
        if taken := self._taken.pop(token, None):
            self._keep(taken)

    def left(self, consumer: str) -> None:
        self._return([taken for taken in self._taken.values() if taken.consumer == consumer])
        if not self._taken and self._timer:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self._closed = True
        if self._timer:
            self._timer.cancel()
        while self._waiters:
            self._wake()

    def _lend(self, consumer: str) -> _Taken:
        if self._again:
            taken = self._again.popleft()
        else:
            self._count += 1
            taken = _Taken(self._fresh.popleft(), str(self._count))
        taken.times += 1
        taken.consumer = consumer
        self._keep(taken)
        return taken

    def _keep(self, taken: _Taken) -> None:
        loop = asyncio.get_running_loop()
        taken.until = loop.time() + self.limits.lease
        self._taken[taken.token] = taken
        if self._timer is None:
            self._timer = loop.call_at(taken.until, self._lapse)

    def _lapse(self) -> None:
        """Release messages that were not acknowledged in time."""
        loop = asyncio.get_running_loop()
        self._timer = None
        late: list[_Taken] = []
        for taken in self._taken.values():
            if taken.until > loop.time():
                self._timer = loop.call_at(taken.until, self._lapse)
                break
            late.append(taken)
        self._return(late)

    def _return(self, lent: Sequence[_Taken]) -> None:
        """Put messages back in publication order, before those that wait for a later redelivery."""
        for taken in lent:
            del self._taken[taken.token]
        self._again = deque(sorted([*self._again, *lent], key=lambda taken: int(taken.token)))
        for _ in lent:
            self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


class AcceptedResults(Protocol):
    """Record of tasks by their idempotency key: who began each, and its accepted response. Methods raise
    StorageError.
    """

    async def find(self, key: str) -> AgentMessage | None:
        """Return the accepted response, or None."""
        ...

    async def first(self, key: str, response: AgentMessage) -> AgentMessage:
        """Return the accepted response: ``response``, unless another was stored before."""
        ...

    async def begin(self, key: str, member: str) -> str:
        """Record that ``member`` begins the task. Return the member that began it before without ending it, or ""."""
        ...

    async def ended(self, key: str) -> None:
        """Record that the member that began the task has reported its outcome."""
        ...


class MemoryAccepted:
    """Accepted for members of one process."""

    def __init__(self) -> None:
        self._responses: OrderedDict[str, AgentMessage] = OrderedDict()
        self._begun: dict[str, str] = {}

    async def find(self, key: str) -> AgentMessage | None:
        return self._responses.get(key)

    async def first(self, key: str, response: AgentMessage) -> AgentMessage:
        winner = self._responses.setdefault(key, response)
        while len(self._responses) > REMEMBERED:
            self._responses.popitem(last=False)
        return winner

    async def begin(self, key: str, member: str) -> str:
        before = self._begun.get(key, "")
        self._begun[key] = member
        return before

    async def ended(self, key: str) -> None:
        self._begun.pop(key, None)
