"""The signed bodies that a process sends, and what it refuses: forged, late, repeated or revoked messages."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from ba_tui.core.ports.bus import Delivery
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.bus import PASSING, REMEMBERED
from ba_tui.features.teams.engine.over_redis.server import PREFIX
from ba_tui.features.teams.engine.over_redis.signing import Opened, Signing, Unsigned
from ba_tui.features.teams.engine.over_redis.spent import Spent, read_revoked
from ba_tui.features.teams.engine.wire import BusLimits, encoded

REVOKED = f"{PREFIX}revoked"
"""Where the lead publishes the members that it revoked."""
LOOK = 10.0
"""Seconds between two looks at that list."""
MOST_TOLD = 20
"""Kinds of refused messages that are told one by one; all are counted."""


class Repeated(Unsigned):
    """A message that was handled here before."""


class Seals:
    """``tell`` says lines to the user; ``spent`` keeps what was handled over restarts."""

    def __init__(
        self, signing: Signing, limits: BusLimits, tell: Callable[[str], object], spent: Spent | None = None
    ) -> None:
        self._signing = signing
        self._limits = limits
        self._tell = tell
        self._spent = spent
        self._counts: dict[str, int] = {}
        self._taken: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """The entry on the server, and the time of signing, of what was handed out and is not handled yet."""
        self._told: set[str] = set()
        self._looked = float("-inf")
        self.refused = 0

    def body(self, topic: str, message: AgentMessage) -> str:
        """Return the message as it goes to ``topic``. Raises UsageError: see ``encoded``."""
        # The sender's own count is signed: the server gives the other one.
        self._counts[message.sender] = own = self._counts.get(message.sender, 0) + 1
        return self._signing.seal(topic, encoded(replace(message, sequence=own), self._limits))

    def refuse(self, topic: str, error: Unsigned) -> None:
        """Count a message that is refused, and say why the first time that this happens."""
        self.refused += 1
        if error.about not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(error.about)
            self._tell(f"Refused a message in {topic}: {error.with_hint}")

    async def repeated(self, delivery: Delivery, group: str, opened: Opened) -> Repeated | None:
        """Return why a delivery is refused that was handled here before, or is handled now; None when it is new. The
        server may deliver one entry again: that is no repetition."""
        if delivery.topic in PASSING:
            return None
        key, entry = _key(delivery, group), delivery.token.partition(" ")[0]
        taken = self._taken.get(key)
        if (taken and taken[0] != entry) or (self._spent and await asyncio.to_thread(self._spent.has, key, opened.at)):
            text = f"{delivery.message.sender} sent it before, and it was taken here: it was repeated or replayed."
            return Repeated(text)
        self._taken[key] = (entry, opened.at)
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)
        return None

    async def handled(self, delivery: Delivery, group: str) -> None:
        """Remember that a delivery was handled. Raises StorageError."""
        taken = self._taken.pop(key := _key(delivery, group), None)
        if taken and self._spent:
            await asyncio.to_thread(self._spent.add, key, taken[1])

    def looks(self, now: float) -> bool:
        """Return whether it is time to look for members that the lead revoked."""
        due = now - self._looked >= LOOK
        self._looked = now if due else self._looked
        return due

    async def learn(self, sealed: str) -> None:
        """Learn a published list of revoked members, if the lead itself signed it. Raises StorageError."""
        if not sealed:
            return
        try:
            opened = self._signing.open(REVOKED, sealed)
        except Unsigned as error:
            self.refuse(REVOKED, error)
            return
        own = opened.signer.key == self._signing.identity.lead
        if own and self._signing.learn(read_revoked(opened.text)) and self._spent:
            await asyncio.to_thread(self._spent.keep_revoked, self._signing.revoked)

    def close(self) -> None:
        """Say how many messages were refused."""
        if self.refused > 1:
            self._tell(f"{self.refused} messages were refused.")
        if self._spent:
            self._spent.close()


def _key(delivery: Delivery, group: str) -> str:
    return f"{delivery.topic} {group} {delivery.message.id}"
