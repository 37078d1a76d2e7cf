"""What comes to one consumer of a topic on the Redis server: read, checked for its signature, handed out once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.bus import Delivery
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.bus import PASSING, too_often
from ba_tui.features.teams.engine.messages import TAKERS
from ba_tui.features.teams.engine.over_redis.names import groups, stream
from ba_tui.features.teams.engine.over_redis.outbox import Settlement
from ba_tui.features.teams.engine.over_redis.scripts import CLAIM, FIND, JOIN, LEAVE
from ba_tui.features.teams.engine.over_redis.seals import REVOKED, Seals
from ba_tui.features.teams.engine.over_redis.server import PATIENCE, NoGroup, RedisServer, ServerAway
from ba_tui.features.teams.engine.over_redis.signing import OtherLead, Signing, Unsigned
from ba_tui.features.teams.engine.wire import MB, BusLimits, decoded, number_in

BATCH = 64
"""Messages that a consumer of its own inbox reads at once."""


class SubscribedBus(Protocol):
    """What a subscription needs of its bus, which has the same names."""

    server: RedisServer
    limits: BusLimits
    signing: Signing
    seals: Seals
    subscriptions: set[RedisSubscription]
    losses: int
    closed: bool

    @property
    def reachable(self) -> bool: ...

    async def run(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any: ...

    def gone(self, error: ServerAway) -> None: ...

    async def back(self) -> None: ...

    def known(self, message: AgentMessage, group: str) -> bool: ...

    async def settle(self, step: Settlement) -> None: ...

    async def dead(self, delivery: Delivery, group: str, reason: str) -> None: ...


class RedisSubscription:
    """What comes to one consumer of a group."""

    def __init__(self, bus: SubscribedBus, topic: str, group: str, consumer: str) -> None:
        self._bus = bus
        self._topic = topic
        self._group = group
        self._consumer = consumer
        self._ready: deque[tuple[str, str, int, int]] = deque()
        """Entry, body, sequence, times: read from the server, not handed out yet."""
        self._joined = -1
        self._looked = 0.0
        # Work is pulled one by one, so that nobody holds what another could do.
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
        """Let the server know the group. Raises ServerAway, StorageError."""
        while self._joined != self._bus.losses:
            losses = self._bus.losses
            # Behind a loss the group was there before: it must miss nothing.
            missing = int(self._joined >= 0)
            await self._bus.run(JOIN, [stream(self._topic), groups(self._topic)], [self._group, missing])
            self._joined = losses

    async def aclose(self) -> None:
        """What was taken and not acknowledged goes to another at once."""
        if self not in self._bus.subscriptions:
            return
        self._bus.subscriptions.discard(self)
        late, passing = int(self._bus.limits.lease * 1000) + 1, int(self._topic in PASSING)
        if self._bus.reachable:
            keys = [stream(self._topic), groups(self._topic)]
            with contextlib.suppress(ServerAway, NoGroup):
                await self._bus.run(LEAVE, keys, [self._group, self._consumer, late, passing])

    async def _fill(self) -> None:
        """Read what comes next. What must be delivered again comes first."""
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
            # Somebody removed the topic, or it expired.
            with contextlib.suppress(ServerAway):
                await self._bus.run(JOIN, [stream(self._topic), groups(self._topic)], [self._group, 1])
        except ServerAway as error:
            self._bus.gone(error)
            await self._bus.back()

    async def _look_for_revoked(self) -> None:
        """Learn now and then which members the lead revoked. Raises ServerAway, NoGroup, Revoked."""
        if self._bus.seals.looks(asyncio.get_running_loop().time()):
            found = await self._bus.run(FIND, [REVOKED], [])
            await self._bus.seals.learn(str(found or ""))
            self._bus.signing.check_own()

    async def _delivery(self, entry: str, body: str, sequence: int, times: int) -> Delivery | None:
        """None for what is not to be handled: it is settled."""
        token, settled = f"{entry} {self._consumer}", Settlement(self._topic, self._group, entry)
        try:
            opened = self._bus.signing.open(self._topic, body)
            message = replace(decoded(opened.text, self._bus.limits), sequence=sequence)
            self._bus.signing.admit(self._topic, message, opened)
        except Unsigned as error:
            self._bus.seals.refuse(self._topic, error)
            if isinstance(error, OtherLead) and self._group == TAKERS and times <= self._bus.limits.deliveries:
                # It may be work for a member of that lead, which gets it once the lease has ended.
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
