"""What the lead does with shared items: tells a change to those whose work depends on it, and compares facts.

A number, a yes or no, or a line of text is a fact: what two members say of it is compared, and the item holds what
counts. Everything else is an item that whoever read it last may change.
"""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Callable, Sequence

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.facts import LONGEST_VALUE, Fact, as_fact
from ba_tui.features.teams.engine.messages import Share, content, inbox
from ba_tui.features.teams.engine.settling import Settling
from ba_tui.features.teams.engine.shared_context import Item, SharedContext, checked_item
from ba_tui.features.teams.engine.watching import LONGEST

LISTED = 50
"""Items whose names a member is told when it begins."""


class Board:
    """The shared items of one team. ``sent`` hears of each message to a member."""

    def __init__(
        self, shared: SharedContext, bus: MessageBus, settling: Settling, sent: Callable[[AgentMessage], object]
    ) -> None:
        self._shared = shared
        self._bus = bus
        self._settling = settling
        self._sent = sent
        self._needs: dict[str, set[str]] = {}

    def needs(self, member: str, keys: Sequence[str]) -> None:
        """The work of ``member`` depends on items, until it has ended."""
        held = self._needs.setdefault(member, set())
        held.update(keys)
        self._shared.cares(member, *(glob.escape(key) for key in held))

    def ended(self, member: str) -> None:
        """``member`` has ended its work."""
        self._needs.pop(member, None)
        self._shared.cares(member)

    def heard(self, member: str, share: Share) -> None:
        """``member`` wrote an item. What follows is done beside the work."""
        self.needs(member, (share.key,))
        self._settling.beside(self._written(member, share, self._shared.told(share, member)))

    async def _written(self, member: str, share: Share, told: Sequence[AgentMessage]) -> None:
        with contextlib.suppress(BaError):
            for each in told:
                self._sent(await self._bus.publish(inbox(each.receiver), each))
        if fact := fact_of(share):
            await self._settling.state(member, (fact,))
            await self.keep((share.key,))

    async def keep(self, keys: Sequence[str]) -> None:
        """Let items of these keys hold what counts, such as what a conflict came out at."""
        if self._settling.held:
            return
        for key in keys:
            found = self._settling.claims.counts(key)
            now = None if found is None else await self._shared.read(key)
            if found is None or (now and now.value == found.value):
                continue
            value = found.value

            async def changed(before: object, value: object = value) -> object:
                return value

            # What no item can hold is still settled, and every prompt tells it.
            with contextlib.suppress(BaError):
                await self._shared.change(key, changed, found.member)

    async def listed(self) -> Sequence[str]:
        """The items that are no settled facts, a line each: members are told of those in full."""
        known = set(self._settling.claims.keys)
        with contextlib.suppress(BaError):
            items = [item for item in await self._shared.all() if item.key not in known]
            return [f"- {item.key} (version {item.version}, by {item.by})" for item in items[:LISTED]]
        return ()


def shared_before(messages: Sequence[AgentMessage]) -> tuple[Item, ...]:
    """The items that members had shared in an earlier run of the team, from its messages. Texts that are longer than
    what messages keep are left out: a part of an item would be another item."""
    found: dict[str, Item | None] = {}
    for each in messages:
        with contextlib.suppress(UsageError):
            share = content(Share, each)
            if share.kind == "item" and share.version:
                whole = not (isinstance(share.value, str) and len(share.value) >= LONGEST)
                item = {"key": share.key, "value": share.value, "version": share.version, "by": share.by, "at": each.at}
                found[share.key] = checked_item(item) if whole else None
    return tuple(item for item in found.values() if item)


def fact_of(share: Share) -> Fact | None:
    """The fact that an item states; None for lists, objects and texts of several lines."""
    if isinstance(share.value, str) and ("\n" in share.value or len(share.value) > LONGEST_VALUE):
        return None
    return as_fact({"key": share.key, "value": share.value})
