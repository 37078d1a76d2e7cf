"""A member's access to its team: shared items, questions, and news about changed items."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import MessageType, Role
from ba_tui.features.teams.engine.facts import key_of
from ba_tui.features.teams.engine.leases import Borrower, Lease
from ba_tui.features.teams.engine.messages import Content, ContextRequest, Share, inbox, may_send, message
from ba_tui.features.teams.engine.shared_context import Item, SharedContext

NEWS = 100
"""Maximum changes that are reported to a member in one message; older ones are dropped."""


class Seat:
    """The seat of one member. ``lead``: the lead that the member works for now; empty between two tasks."""

    def __init__(self, borrower: Borrower, role: Role, team: str, shared: SharedContext) -> None:
        self.borrower = borrower
        self.member = borrower.name
        self.role = role
        self._team = team
        self._bus = borrower.bus
        self._shared = shared
        self._news: deque[Share] = deque(maxlen=NEWS)
        self.lead = ""
        self._task = ""
        self.leases: dict[tuple[str, str], Lease] = {}
        """What it borrowed, by lender and tool."""

    def begin(self, lead: str, task: str) -> None:
        """Begin work on ``task`` for ``lead``."""
        self.lead, self._task = lead, task
        self._news.clear()
        self.borrower.lead = lead
        self.leases.clear()

    def may(self, type: MessageType) -> bool:
        """Return whether its role may send messages of that type."""
        return may_send(self.role, type)

    async def share(self, key: str, value: Any, version: int = 0) -> Item:
        """Write an item over ``version``, 0 for a new one, and report it to the lead.

        Raises:
            StaleWrite: the item has another version by now. UsageError: it can't be stored, or the role may not share.
            StorageError: the server is unreachable.
        """
        self._check("information_share")
        item = await self._shared.write(key_of(key), value, version)
        await self._tell(Share(item.key, item.value, item.version, item.by))
        return item

    async def ask(self, words: str) -> Sequence[Item]:
        """Return the items that match ``words``; the lead records that the member's work depends on them.

        Raises:
            UsageError: the role may not ask. StorageError: the server is unreachable.
        """
        self._check("context_request")
        found = await self._shared.query(words)
        await self._tell(ContextRequest("context", words, self._task, {"keys": [item.key for item in found]}))
        return found

    def hear(self, share: Share) -> None:
        """Record the lead's report that an item has changed."""
        self._news.append(share)

    def news(self) -> Sequence[Share]:
        """Return the changes since the last call: the newest state of each item."""
        newest = {share.key: share for share in self._news}
        self._news.clear()
        return list(newest.values())

    def _check(self, type: MessageType) -> None:
        if not self.may(type):
            raise UsageError(f"Members of the role {self.role.name} may not send {type}.", "Go on without it.")

    async def _tell(self, said: Content) -> None:
        if self.lead:
            await self._bus.publish(inbox(self.lead), message(said, self.member, self.lead, team=self._team))
