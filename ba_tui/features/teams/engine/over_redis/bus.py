"""core.ports.bus.MessageBus over Redis Streams, for members in several processes and on several machines.

While the server is away, what is published and acknowledged is kept in memory and sent in its order once it is back.
What was sent and not handled yet is kept as well: a server that comes back without its data gets it again. The server
knows a message by its id and takes it once; a consumer that acknowledged a message does not see it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.bus import Delivery
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.wording import count
from ba_tui.features.teams.engine.bus import DEAD, NEWEST, PASSING, REMEMBERED, full, obituary
from ba_tui.features.teams.engine.messages import inbox
from ba_tui.features.teams.engine.over_redis.names import groups, opened, stream
from ba_tui.features.teams.engine.over_redis.outbox import Outbox, Publication, Settlement, Unconfirmed
from ba_tui.features.teams.engine.over_redis.scripts import OPEN, PUBLISH, RENEW, SETTLE
from ba_tui.features.teams.engine.over_redis.seals import Seals
from ba_tui.features.teams.engine.over_redis.server import PREFIX, DataLost, NoGroup, RedisServer, ServerAway
from ba_tui.features.teams.engine.over_redis.signing import Signing
from ba_tui.features.teams.engine.over_redis.spent import Spent
from ba_tui.features.teams.engine.over_redis.subscription import RedisSubscription
from ba_tui.features.teams.engine.wire import USUAL, BusLimits, Redact, discreet, encoded

log = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[str], object]
"""Says a line to the person."""
_Run: TypeAlias = Callable[[str, Sequence[str], Sequence[str | int | float]], Awaitable[Any]]
CONFIRM = 500
"""Messages after which is looked which of them were handled."""
LATEST = 2.0
"""Longest pause between two looks for a server that is away, in seconds."""


class RedisBus:
    """One for a process. ``tell`` hears once that the server is away, back, lost data or holds messages that are
    refused. ``spent``: where it is kept what was handled here; without it only while the process runs."""

    def __init__(  # noqa: PLR0913 - the bus of a process is made in one place
        self,
        server: RedisServer,
        signing: Signing,
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
        self._unconfirmed = Unconfirmed()
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
        """See core.ports.bus.MessageBus. The sequence is 0 while the message waits for the server."""
        if self.closed:
            raise UsageError("The bus of this team is closed.")
        message = discreet(message, self.redact)
        given = Publication(topic, message.sender, message.id, self.seals.body(topic, message))
        if self._joining:
            # Who answers must find the group that waits for the answer.
            await asyncio.gather(*self._joining)
        async with self._locks.setdefault(message.sender, asyncio.Lock()):
            sequence = await self._send_or_keep(given)
        return replace(message, sequence=sequence)

    def subscribe(self, topic: str, group: str, consumer: str) -> RedisSubscription:
        """See core.ports.bus.MessageBus. The first group of a topic gets what waits there, another what comes from now
        on."""
        made = RedisSubscription(self, topic, group, consumer)
        self.subscriptions.add(made)
        task = asyncio.create_task(self._joined(made))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return made

    async def _joined(self, made: RedisSubscription) -> None:
        # Who reads from it tries again, and hears why it failed.
        with contextlib.suppress(StorageError):
            await made.join()

    async def ack(self, delivery: Delivery, group: str) -> None:
        """See core.ports.bus.MessageBus."""
        self._remember(delivery.message.id, group)
        await self.seals.handled(delivery, group)
        await self.settle(Settlement(delivery.topic, group, delivery.token.partition(" ")[0]))

    async def renew(self, delivery: Delivery, group: str) -> None:
        """See core.ports.bus.MessageBus. While the server is away nobody else can take it."""
        entry, _, consumer = delivery.token.partition(" ")
        with contextlib.suppress(ServerAway, NoGroup):
            await self.run(RENEW, [stream(delivery.topic)], [group, consumer, entry])

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None:
        """See core.ports.bus.MessageBus."""
        self._remember(delivery.message.id, group)
        await self.seals.handled(delivery, group)
        letter = json.dumps({"message": encoded(delivery.message, self.limits), "group": group, "reason": reason})
        await self.settle(Settlement(delivery.topic, group, delivery.token.partition(" ")[0], letter, reason))
        if said := obituary(delivery.message, group, reason):
            await self.publish(inbox(delivery.message.sender), said)

    async def reach(self, *, waits: bool) -> bool:
        """Whether the server is there; when not and ``waits`` it is looked for. Raises StorageError, ServerAway."""
        try:
            await self.server.greet()
        except ServerAway as error:
            if not waits:
                raise
            self.gone(error)
            return False
        return True

    async def close(self) -> None:
        """End all subscriptions. What waits for a server that is away is lost then, and that is said."""
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

    # What subscriptions need.

    async def run(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
        """What the script returns, on a server that has what this process knows. Raises ServerAway, NoGroup,
        StorageError."""
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
        """Say so once, and look for the server until it is back."""
        if self.closed or self._returning:
            return
        self._here.clear()
        self._tell(f"{error} Messages are kept in memory and sent when it is back.")
        self._returning = asyncio.create_task(self._return())

    @property
    def reachable(self) -> bool:
        """Whether the server answered the last time."""
        return self._here.is_set() and not self.closed

    async def back(self) -> None:
        """Return once the server is there, or the bus is closed."""
        await self._here.wait()

    def known(self, message: AgentMessage, group: str) -> bool:
        """Whether the message was acknowledged here before."""
        return f"{group} {message.id}" in self._done

    def _remember(self, id: str, group: str) -> None:
        self._done[f"{group} {id}"] = None
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    # Sending.

    async def _send_or_keep(self, given: Publication) -> int:
        """The sequence, 0 while the server is away. Raises UsageError, StorageError."""
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
        """Forget which of the messages sent were handled."""
        by_topic: dict[str, list[Publication]] = {}
        for each in self._unconfirmed.all():
            by_topic.setdefault(each.topic, []).append(each)
        for topic, sent in by_topic.items():
            for start in range(0, len(sent), CONFIRM):
                part = sent[start : start + CONFIRM]
                waits = cast("list[int]", await self.run(OPEN, [opened(topic)], [each.entry for each in part]))
                self._unconfirmed.drop([each.id for each, still in zip(part, waits, strict=True) if not still])

    # Coming back.

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
        """Give the server what it may have lost; it knows what it has. ``seen``: the losses that the caller knew of.
        Raises ServerAway, StorageError."""
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
