"""Shared knowledge of a team: items with versions, read on request and reported to interested members.

A write names the version that it replaces. If another member was faster, the write is refused, and the writer reads
again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, Protocol, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.text.untrusted import CONTROL, neutralized
from ba_tui.core.text.wording import clipped, matching
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import MessageBus
from ba_tui.features.teams.engine.messages import Share, inbox, message

KEY = 200
"""Maximum characters of a key."""
LARGEST = 1_000_000
"""Maximum bytes of an item as JSON; longer texts are artifacts."""
MOST = 10_000
"""Maximum items of one team."""
TRIES = 20
LONGEST = 8_000
"""Maximum characters of one value in a member's prompt."""


@frozen
class Item:
    """A shared item. ``version`` counts its writes from 1. ``by``: the last writer; ``at``: seconds since the epoch."""

    key: str
    value: Any
    version: int = 1
    by: str = ""
    at: float = field(default_factory=time.time)


class StaleWrite(UsageError):
    """Another member wrote the item first. ``now``: its present state; None if it is gone."""

    kind = "stale_write"

    def __init__(self, now: Item | None, wanted: Item) -> None:
        who = f"{now.by or 'Another member'} wrote version {now.version}" if now else "it is not there any more"
        super().__init__(f"{wanted.key} was changed meanwhile: {who}.", "Read it again, then write.")
        self.now = now


class Items(Protocol):
    """A store of items. Methods raise StorageError."""

    async def all(self) -> Sequence[Item]:
        """Return all items by key."""
        ...

    async def get(self, key: str) -> Item | None: ...

    async def put(self, item: Item) -> None:
        """Store the item as the successor of the previous version, atomically. Raises StaleWrite, UsageError."""
        ...


class MemoryItems:
    """Items for members of one process; ``before``: initial items, where the last of a key wins."""

    def __init__(self, before: Sequence[Item] = ()) -> None:
        self._items: dict[str, Item] = {item.key: item for item in before}

    async def all(self) -> Sequence[Item]:
        return [self._items[key] for key in sorted(self._items)]

    async def get(self, key: str) -> Item | None:
        return self._items.get(key)

    async def put(self, item: Item) -> None:
        now = self._items.get(item.key)
        if (now.version if now else 0) != item.version - 1:
            raise StaleWrite(now, item)
        if now is None and len(self._items) >= MOST:
            raise UsageError(f"The team shares {MOST:,} items; no more fit.", "Put several values into one item.")
        self._items[item.key] = item


class SharedContext:
    """The items of one team as seen by ``member``. Writes are reported only to members that are interested in the
    key.
    """

    def __init__(self, items: Items, bus: MessageBus, team: str, member: str) -> None:
        self._items = items
        self._bus = bus
        self._team = team
        self._member = member
        self._cares: dict[str, tuple[str, ...]] = {}

    def cares(self, member: str, *patterns: str) -> None:
        """Report writes to keys that match ``patterns``, such as ``orders.*``, to ``member``; without patterns report
        none.
        """
        self._cares[member] = patterns

    async def read(self, key: str) -> Item | None:
        return await self._items.get(key)

    async def all(self) -> Sequence[Item]:
        """Return all items by key."""
        return await self._items.all()

    async def query(self, words: str, most: int = 20) -> Sequence[Item]:
        """Return the items whose keys or texts match ``words``, best first; a pattern such as ``orders.*`` matches
        keys.
        """
        items = await self._items.all()
        if any(letter in words for letter in "*?["):
            return [item for item in items if fnmatchcase(item.key, words)][:most]
        return matching(words, items, lambda item: (item.key, _text(item.value)))[:most]

    async def write(self, key: str, value: Any, version: int = 0, by: str = "") -> Item:
        """Store ``value`` over ``version`` of the item, 0 for a new one, and report it to interested members. ``by``:
        the member whose value it is, if it is not the writer's.

        Raises:
            StaleWrite: the item has another version by now. UsageError: the key or value can't be stored.
        """
        who = by or self._member
        item = checked_item({"key": key, "value": value, "version": version + 1, "by": who, "at": time.time()})
        await self._items.put(item)
        for told in self.told(Share(item.key, item.value, item.version, item.by), self._member):
            await self._bus.publish(inbox(told.receiver), told)
        return item

    def told(self, share: Share, but: str) -> Sequence[AgentMessage]:
        """Return the messages that report an item to interested members, except the writer ``but``."""
        care = [
            member
            for member, patterns in self._cares.items()
            if member != but and any(fnmatchcase(share.key, pattern) for pattern in patterns)
        ]
        return [message(share, self._member, member, team=self._team) for member in care]

    async def change(self, key: str, change: Callable[[Any], Awaitable[Any]], by: str = "") -> Item:
        """Write the result of ``change`` on the value (None for a new item); after a stale write retry with the newest
        value.

        Raises:
            StaleWrite: other members were faster each time. UsageError: see ``write``.
        """
        now = await self._items.get(key)
        for left in reversed(range(TRIES)):
            try:
                return await self.write(key, await change(now.value if now else None), now.version if now else 0, by)
            except StaleWrite as stale:
                if not left:
                    raise
                now = stale.now
        raise AssertionError


def checked_item(data: Any) -> Item:
    """Return ``data`` as an item. Raises UsageError if it is invalid."""
    given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    match given:
        case {"key": str(key), "value": value, "version": int(version), "by": str(by), "at": int() | float() as at}:
            pass
        case _:
            raise UsageError("A shared item has wrong fields.")
    if not key.strip() or len(key) > KEY:
        raise UsageError(f"A key has 1 to {KEY} characters.")
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"The value of {key} is no JSON: {error}.") from error
    if size > LARGEST:
        raise UsageError(
            f"The value of {key} is {size / 1e6:.1f} MB, at most {LARGEST / 1e6:g} MB.",
            "Store the text as an artifact and share its reference.",
        )
    return Item(key, value, version, by, float(at))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def item_text(key: str, value: Any, version: int, by: str) -> str:
    """Return an item as text for a model."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"- {key} (version {version}, by {by}): {neutralized(clipped(text, LONGEST), CONTROL)}"
