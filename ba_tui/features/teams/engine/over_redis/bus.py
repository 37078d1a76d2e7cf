"""engine.bus.MessageBus over Redis Streams, for members in several processes and on several machines.

While the server is unreachable, published messages and acknowledgements are kept in memory and sent in order once it is
back. Sent messages that are not processed yet are kept as well: a server that returns without its data gets them again.
The server recognizes a message by its id and stores it once; a consumer that acknowledged a message does not get it
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import DEAD, NEWEST, PASSING, REMEMBERED, Delivery, full, obituary, too_often
from ba_tui.features.teams.engine.messages import (
    MB,
    TAKERS,
    USUAL,
    BusLimits,
    Redact,
    decoded,
    discreet,
    encoded,
    inbox,
    number_in,
)
from ba_tui.features.teams.engine.over_redis.server import (
    CLAIM,
    FIND,
    JOIN,
    LEAVE,
    OPEN,
    PATIENCE,
    PREFIX,
    PUBLISH,
    RENEW,
    SETTLE,
    DataLost,
    NoGroup,
    RedisServer,
    ServerAway,
)
from ba_tui.features.teams.engine.over_redis.signing import REVOKED, OtherLead, Seals, Signer, Spent, UnsignedText

# Messages that could not be sent, or may not have been processed: kept in memory until the server has them.

KEPT = 10_000
KEPT_BYTES = 64_000_000


@frozen
class Publication:
    """A message to send to ``topic``. ``sequence``: 0 until the server assigns one. ``entry``: its id on the server."""

    topic: str
    sender: str
    id: str
    body: str
    sequence: int = 0
    entry: str = ""


@frozen
class Settlement:
    """Acknowledges an entry for a group; with ``reason`` the entry becomes a dead letter."""

    topic: str
    group: str
    entry: str
    body: str = ""
    reason: str = ""


class Outbox:
    """Messages and acknowledgements in the order in which they are to be sent."""

    def __init__(self) -> None:
        self._waiting: deque[Publication | Settlement] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def messages(self) -> int:
        return sum(isinstance(each, Publication) for each in self._waiting)

    def keep(self, step: Publication | Settlement) -> None:
        """Add an element. Raises StorageError when the outbox is full."""
        size = len(step.body)
        if len(self._waiting) >= KEPT or self._size + size > KEPT_BYTES:
            raise StorageError(
                f"The Redis server is away, and {len(self._waiting):,} messages wait for it: no more are kept.",
                "Start the server again; see the setting team.bus_url.",
            )
        self._waiting.append(step)
        self._size += size

    def first(self) -> Publication | Settlement | None:
        return self._waiting[0] if self._waiting else None

    def sent(self) -> None:
        """Remove the first element, which the server has received."""
        self._size -= len(self._waiting.popleft().body)


class UnconfirmedMessages:
    """The newest messages on the server that may not have been processed: sent again if the server loses them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Publication] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, sent: Publication) -> None:
        self.drop([sent.id])
        self._kept[sent.id] = sent
        self._size += len(sent.body)
        while len(self._kept) > KEPT or self._size > KEPT_BYTES:
            self.drop([next(iter(self._kept))])

    def drop(self, ids: list[str]) -> None:
        for id in ids:
            if known := self._kept.pop(id, None):
                self._size -= len(known.body)

    def all(self) -> list[Publication]:
        """Return all messages, oldest first."""
        return list(self._kept.values())


# Names of a topic's keys on the server. Pure.


def stream(topic: str) -> str:
    return f"{PREFIX}topic:{topic}"


def groups(topic: str) -> str:
    return f"{PREFIX}groups:{topic}"


def opened(topic: str) -> str:
    return f"{PREFIX}open:{topic}"


# The messages of one consumer: read from the server, signature checked, delivered once.

BATCH = 64
"""Number of messages that a consumer of its own inbox reads in one request."""


class RedisSubscription:
    """The message stream of one consumer of a group."""

    def __init__(self, bus: RedisBus, topic: str, group: str, consumer: str) -> None:
        self._bus = bus
        self._topic = topic
        self._group = group
        self._consumer = consumer
        self._ready: deque[tuple[str, str, int, int]] = deque()
        """Entry, body, sequence, times: read from the server, not handed out yet."""
        self._joined = -1
        self._looked = 0.0
        # Work is pulled one message at a time, so that no member reserves work that another could do.
        self._most = 1 if group == TAKERS else BATCH

    def __aiter__(self) -> RedisSubscription:
        return self

    async def __anext__(self) -> Delivery:
        while not self._bus.closed:
            if not self._ready:
                await self._fill()
                continue
            if delivery := await self._delivery(*self._ready.popleft()):
                return delivery
        raise StopAsyncIteration

    async def join(self) -> None:
        """Register the group at the server. Raises ServerAway, StorageError."""
        while self._joined != self._bus.losses:
            losses = self._bus.losses
            # After a loss of data the group existed before: it must not miss a message.
            missing = int(self._joined >= 0)
            await self._bus.run(JOIN, [stream(self._topic), groups(self._topic)], [self._group, missing])
            self._joined = losses

    async def aclose(self) -> None:
        """Close the subscription; unacknowledged messages go to other consumers immediately."""
        if self not in self._bus.subscriptions:
            return
        self._bus.subscriptions.discard(self)
        late, passing = int(self._bus.limits.lease * 1000) + 1, int(self._topic in PASSING)
        if self._bus.reachable:
            keys = [stream(self._topic), groups(self._topic)]
            with contextlib.suppress(ServerAway, NoGroup):
                await self._bus.run(LEAVE, keys, [self._group, self._consumer, late, passing])

    async def _fill(self) -> None:
        """Read the next messages; redeliveries come first."""
        lease = self._bus.limits.lease
        wait, now = min(lease / 4, PATIENCE / 2), asyncio.get_running_loop().time()
        try:
            await self.join()
            await self._look_for_revoked()
            if now - self._looked >= wait:
                self._looked = now
                args = [self._group, self._consumer, int(lease * 1000), self._most]
                for entry, body, sequence, times in await self._bus.run(CLAIM, [stream(self._topic)], args):
                    self._ready.append((entry, body or "", number_in(sequence), int(times)))
            if not self._ready:
                name, group = stream(self._topic), self._group
                for entry, held in await self._bus.server.read(name, group, self._consumer, self._most, wait):
                    self._ready.append((entry, held.get("m", ""), number_in(held.get("s")), 1))
        except NoGroup:
            # The topic was deleted or has expired.
            with contextlib.suppress(ServerAway):
                await self._bus.run(JOIN, [stream(self._topic), groups(self._topic)], [self._group, 1])
        except ServerAway as error:
            self._bus.gone(error)
            await self._bus.back()

    async def _look_for_revoked(self) -> None:
        """Read from time to time which members the lead revoked. Raises ServerAway, NoGroup, MembershipRevoked."""
        if self._bus.seals.looks(asyncio.get_running_loop().time()):
            found = await self._bus.run(FIND, [REVOKED], [])
            await self._bus.seals.learn(str(found or ""))
            self._bus.signing.check_own()

    async def _delivery(self, entry: str, body: str, sequence: int, times: int) -> Delivery | None:
        """Return a delivery; None for a message that is settled without being processed."""
        token, settled = f"{entry} {self._consumer}", Settlement(self._topic, self._group, entry)
        try:
            opened = self._bus.signing.open(self._topic, body)
            message = replace(decoded(opened.text, self._bus.limits), sequence=sequence)
            self._bus.signing.admit(self._topic, message, opened)
        except UnsignedText as error:
            self._bus.seals.refuse(self._topic, error)
            if isinstance(error, OtherLead) and self._group == TAKERS and times <= self._bus.limits.deliveries:
                # The message may be work for a member of that lead, which gets it once the lease has ended.
                return None
            await self._bus.settle(settled if self._topic in PASSING else self._letter(settled, body, error))
            return None
        except UsageError as error:
            await self._bus.settle(self._letter(settled, body, error))
            return None
        delivery = Delivery(self._topic, message, token, times)
        if self._bus.known(message, self._group):
            await self._bus.settle(settled)
            return None
        if error := await self._bus.seals.repeated(delivery, self._group, opened):
            self._bus.seals.refuse(self._topic, error)
            await self._bus.settle(self._letter(settled, body, error))
            return None
        if times > self._bus.limits.deliveries:
            await self._bus.dead(delivery, self._group, too_often(self._bus.limits.deliveries))
            return None
        return delivery

    def _letter(self, settled: Settlement, body: str, error: UsageError) -> Settlement:
        part = body[: int(self._bus.limits.message_mb * MB)]
        letter = json.dumps({"message": part, "group": self._group, "reason": str(error)})
        return replace(settled, body=letter, reason=str(error))


log = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[str], object]
"""Shows a line to the user."""
_Run: TypeAlias = Callable[[str, Sequence[str], Sequence[str | int | float]], Awaitable[Any]]
CONFIRM = 500
"""Number of messages after which the bus checks which of them were processed."""
LATEST = 2.0
"""Maximum pause between two connection attempts to an unreachable server, in seconds."""


class RedisBus:
    """The bus of one process. ``tell`` is called once when the server goes away, returns, has lost data or stores
    refused messages. ``spent`` records processed messages; without it they are known only while the process runs.
    """

    def __init__(
        self,
        server: RedisServer,
        signing: Signer,
        limits: BusLimits = USUAL,
        redact: Redact = str,
        tell: Tell = log.warning,
        spent: Spent | None = None,
    ) -> None:
        self.server = server
        self.limits = limits
        self.redact = redact
        self._tell = tell
        self.signing = signing
        self.seals = Seals(signing, limits, tell, spent)
        self._outbox = Outbox()
        self._unconfirmed = UnconfirmedMessages()
        self._last: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._joining: set[asyncio.Task[None]] = set()
        self.subscriptions: set[RedisSubscription] = set()
        """Those that have not left."""
        self._recovering = asyncio.Lock()
        self._returning: asyncio.Task[None] | None = None
        self._here = asyncio.Event()
        self._here.set()
        self._published = 0
        self.losses = 0
        """How often the server came back, perhaps with less than it had."""
        self.closed = False

    async def publish(self, topic: str, message: AgentMessage) -> AgentMessage:
        """See engine.bus.MessageBus. The sequence is 0 while the message waits for the server."""
        if self.closed:
            raise UsageError("The bus of this team is closed.")
        message = discreet(message, self.redact)
        given = Publication(topic, message.sender, message.id, self.seals.body(topic, message))
        if self._joining:
            # The group that receives the answer must exist before the request is sent.
            await asyncio.gather(*self._joining)
        async with self._locks.setdefault(message.sender, asyncio.Lock()):
            sequence = await self._send_or_keep(given)
        return replace(message, sequence=sequence)

    def subscribe(self, topic: str, group: str, consumer: str) -> RedisSubscription:
        """See engine.bus.MessageBus. The first group of a topic receives the messages that already wait; later
        groups receive only new ones.
        """
        made = RedisSubscription(self, topic, group, consumer)
        self.subscriptions.add(made)
        task = asyncio.create_task(self._joined(made))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return made

    async def _joined(self, made: RedisSubscription) -> None:
        # The reader retries and gets the error.
        with contextlib.suppress(StorageError):
            await made.join()

    async def ack(self, delivery: Delivery, group: str) -> None:
        """See engine.bus.MessageBus."""
        self._remember(delivery.message.id, group)
        await self.seals.handled(delivery, group)
        await self.settle(Settlement(delivery.topic, group, delivery.token.partition(" ")[0]))

    async def renew(self, delivery: Delivery, group: str) -> None:
        """See engine.bus.MessageBus. No other member can take the message while the server is unreachable."""
        entry, _, consumer = delivery.token.partition(" ")
        with contextlib.suppress(ServerAway, NoGroup):
            await self.run(RENEW, [stream(delivery.topic)], [group, consumer, entry])

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None:
        """See engine.bus.MessageBus."""
        self._remember(delivery.message.id, group)
        await self.seals.handled(delivery, group)
        letter = json.dumps({"message": encoded(delivery.message, self.limits), "group": group, "reason": reason})
        await self.settle(Settlement(delivery.topic, group, delivery.token.partition(" ")[0], letter, reason))
        if said := obituary(delivery.message, group, reason):
            await self.publish(inbox(delivery.message.sender), said)

    async def reach(self, *, waits: bool) -> bool:
        """Return whether the server is reachable; with ``waits``, keep trying in the background. Raises StorageError,
        ServerAway.
        """
        try:
            await self.server.greet()
        except ServerAway as error:
            if not waits:
                raise
            self.gone(error)
            return False
        return True

    async def close(self) -> None:
        """End all subscriptions. Messages that wait for an unreachable server are lost; a notice says so."""
        if self.closed:
            return
        for each in tuple(self.subscriptions):
            with contextlib.suppress(StorageError):
                await each.aclose()
        self.closed = True
        self._here.set()
        if self._returning:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        self.seals.close()
        if messages := self._outbox.messages:
            self._tell(f"{count(messages, 'message')} for the Redis server {self.server.place} could not be sent.")
        await self.server.close()

    # Called by subscriptions.

    async def run(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
        """Return the result of the script, on a server that has all data of this process. Raises ServerAway, NoGroup,
        StorageError.
        """
        for _ in range(3):
            seen = self.losses
            try:
                return await self.server.run(script, keys, args)
            except DataLost:
                await self._recover(seen)
            except ServerAway as error:
                self.gone(error)
                raise
        raise ServerAway(f"The Redis server {self.server.place} loses its data again and again.")

    def gone(self, error: ServerAway) -> None:
        """Report once that the server is unreachable, and try until it is back."""
        if self.closed or self._returning:
            return
        self._here.clear()
        self._tell(f"{error} Messages are kept in memory and sent when it is back.")
        self._returning = asyncio.create_task(self._return())

    @property
    def reachable(self) -> bool:
        """Return whether the last request to the server succeeded."""
        return self._here.is_set() and not self.closed

    async def back(self) -> None:
        """Wait until the server is back or the bus is closed."""
        await self._here.wait()

    def known(self, message: AgentMessage, group: str) -> bool:
        """Return whether this process acknowledged the message before."""
        return f"{group} {message.id}" in self._done

    def _remember(self, id: str, group: str) -> None:
        self._done[f"{group} {id}"] = None
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    # Sending.

    async def _send_or_keep(self, given: Publication) -> int:
        """Return the sequence, 0 while the server is unreachable. Raises UsageError, StorageError."""
        if self._here.is_set():
            try:
                return await self._send(given)
            except ServerAway:
                pass
        if given.topic not in PASSING:
            self._outbox.keep(given)
        return 0

    async def _send(self, given: Publication) -> int:
        sequence = await self._put(given, self.run)
        self._published += 1
        if self._published % CONFIRM == 0:
            await self._confirm()
        return sequence

    async def _put(self, given: Publication, run: _Run) -> int:
        topic, sender = given.topic, given.sender
        keys = [stream(topic), f"{PREFIX}sequences", f"{PREFIX}sent:{given.id}", groups(topic), opened(topic)]
        newest = NEWEST if topic in PASSING else 0
        least = self._last.get(sender, 0)
        args = [sender, given.body, least, given.sequence, self.limits.waiting, newest]
        sequence, entry = cast("tuple[int, str]", await run(PUBLISH, keys, args))
        if sequence < 0:
            raise full(topic, self.limits.waiting)
        self._last[sender] = max(least, sequence)
        if not newest:
            self._unconfirmed.add(replace(given, sequence=sequence, entry=entry))
        return sequence

    async def settle(self, step: Settlement) -> None:
        if self._here.is_set():
            try:
                await self._sent_settlement(step)
            except ServerAway:
                pass
            else:
                return
        self._outbox.keep(step)

    async def _sent_settlement(self, step: Settlement) -> None:
        keys = [stream(step.topic), opened(step.topic), f"{PREFIX}dead:{step.topic}"]
        with contextlib.suppress(NoGroup):
            await self.run(SETTLE, keys, [step.group, step.entry, step.body, DEAD])

    async def _confirm(self) -> None:
        """Forget the sent messages that were processed."""
        by_topic: dict[str, list[Publication]] = {}
        for each in self._unconfirmed.all():
            by_topic.setdefault(each.topic, []).append(each)
        for topic, sent in by_topic.items():
            for start in range(0, len(sent), CONFIRM):
                part = sent[start : start + CONFIRM]
                waits = cast("list[int]", await self.run(OPEN, [opened(topic)], [each.entry for each in part]))
                self._unconfirmed.drop([each.id for each, still in zip(part, waits, strict=True) if not still])

    # Reconnecting.

    async def _return(self) -> None:
        pause = 0.05
        while not self.closed:
            try:
                await self._recover(self.losses)
                kept = self._outbox.messages
                await self._flush()
            except (ServerAway, UsageError):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LATEST)
            except StorageError as error:
                self._tell(error.with_hint)
                await asyncio.sleep(LATEST)
            else:
                self._returning = None
                self._here.set()
                sent = f" {count(kept, 'message')} that waited {'was' if kept == 1 else 'were'} sent." if kept else ""
                self._tell(f"The Redis server {self.server.place} is back.{sent}")
                return

    async def _flush(self) -> None:
        while step := self._outbox.first():
            if isinstance(step, Publication):
                await self._send(step)
            else:
                await self._sent_settlement(step)
            self._outbox.sent()

    async def _recover(self, seen: int) -> None:
        """Send the server again what it may have lost; it ignores what it has. ``seen``: the number of losses that the
        caller knew. Raises ServerAway, StorageError.
        """
        async with self._recovering:
            if self.losses != seen:
                return
            before = self.server.epoch
            if await self.server.greet() != before and before:
                self._tell(
                    f"The Redis server {self.server.place} has lost its data: it keeps none over a restart. What this "
                    "process sent and nobody handled is sent again; shared context and broadcasts may be missing."
                )
            self.losses += 1
            try:
                for each in self._unconfirmed.all():
                    await self._put(each, self.server.run)
            except DataLost as error:
                raise ServerAway(f"The Redis server {self.server.place} was restarted again.") from error
