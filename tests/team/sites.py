"""Buses of a team's members on one real server, and bodies as a stranger writes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ba_tui.core.teamwork import AgentMessage
from ba_tui.features.teams.engine.bus import Deliveries, Delivery
from ba_tui.features.teams.engine.messages import TaskRequest, message
from ba_tui.features.teams.engine.over_redis.bus import RedisBus, stream
from ba_tui.features.teams.engine.over_redis.server import PREFIX, PUBLISH, RedisServer
from ba_tui.features.teams.engine.over_redis.signing import (
    Identity,
    Signer,
    Spent,
    identity_of_lead,
    new_key,
)
from tests.team.redis_process import LEAD_KEY, RedisProcess, member

ANN, BOB = "writer@ann-1-aaaa", "writer@bob-2-bbbb"
SENT = AgentMessage(ANN, BOB, "information_share", {"key": "k", "value": 1}, team="t")
TASK = message(TaskRequest("1", "look", deadline=0.0), "lead:t", "role:reader", team="t")


class Site:
    """Buses of members on one server, and what they say."""

    def __init__(self, server: RedisProcess, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.told: list[str] = []
        self.heard = asyncio.Event()
        """Set once a bus said something."""
        self.buses: list[RedisBus] = []

    def tell(self, text: str) -> None:
        self.told.append(text)
        self.heard.set()

    def bus(self, identity: Identity | None = None, clock: Callable[[], float] = time.time, **more: Any) -> RedisBus:
        signing = Signer(identity or identity_of_lead(LEAD_KEY), clock=clock)
        made = RedisBus(RedisServer(self.server.url), signing, tell=self.tell, **more)
        self.buses.append(made)
        return made

    def worker(self, name: str = "ann", **more: Any) -> RedisBus:
        """A worker whose machine remembers what was handled."""
        return self.bus(member(name), spent=Spent(self.folder / f"{name}.db"), **more)

    async def close(self) -> None:
        for each in self.buses:
            await each.close()


async def first(deliveries: Deliveries) -> Delivery:
    return await asyncio.wait_for(anext(deliveries), 10)


async def stored(bus: RedisBus, topic: str) -> str:
    """The body of the newest message in a topic, as anybody on the server can read it."""
    script = "return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][2][2]"
    return str(await bus.server.run(script, [stream(topic)], []))


async def injected(bus: RedisBus, topic: str, body: str) -> None:
    """Write a body to a topic as anybody who can write to the server could."""
    keys = [stream(topic), f"{PREFIX}sequences", f"{PREFIX}sent:{new_key()}", f"{PREFIX}groups:{topic}"]
    await bus.server.run(PUBLISH, [*keys, f"{PREFIX}open:{topic}"], ["x", body, 0, 0, 1000, 0])
