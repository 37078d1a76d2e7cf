"""Which result of a task counts: the first that is written. And who began one that may have changed something."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.bus import REMEMBERED


class Accepted(Protocol):
    """Records of tasks by their idempotency key. Methods raise StorageError."""

    async def find(self, key: str) -> AgentMessage | None:
        """The accepted response, if there is one."""
        ...

    async def first(self, key: str, response: AgentMessage) -> AgentMessage:
        """The accepted response: ``response``, unless another was written before."""
        ...

    async def begin(self, key: str, member: str) -> str:
        """Who began the task and has not ended it in order; empty when nobody had. From now on it is ``member``."""
        ...

    async def ended(self, key: str) -> None:
        """Whoever began it has said how it came out."""
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
