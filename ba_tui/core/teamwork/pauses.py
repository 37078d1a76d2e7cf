"""Which agents of a turn stand still, and for how long they did. No I/O; it keeps time."""

from __future__ import annotations

import asyncio
import time


class Pauses:
    """By the names of agents: whoever is below a paused agent is paused, too."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._over: list[tuple[str, float, float]] = []
        """Pauses that ended: of which agent, from when, until when."""
        self._resumed = asyncio.Event()

    def begin(self, agent: str) -> None:
        self._since.setdefault(agent, time.monotonic())

    def end(self, agent: str) -> bool:
        """Return whether ``agent`` itself was paused. All that stand still look again whether they may go on."""
        since = self._since.pop(agent, None)
        if since is None:
            return False
        self._over.append((agent, since, time.monotonic()))
        self._resumed.set()
        self._resumed = asyncio.Event()
        return True

    def now(self, agent: str) -> bool:
        """Return whether ``agent`` is to stand still."""
        return bool(self._since) and any(_within(agent, each) for each in self._since)

    async def over(self, agent: str) -> None:
        """Return once ``agent`` may go on."""
        while self.now(agent):
            await self._resumed.wait()

    def seconds(self, agent: str) -> float:
        """Return how long ``agent`` was paused until now; times that overlap count once."""
        now = time.monotonic()
        open_ones = [(name, since, now) for name, since in self._since.items()]
        total, until = 0.0, 0.0
        for name, since, end in sorted([*self._over, *open_ones], key=lambda pause: pause[1]):
            if _within(agent, name) and end > until:
                total += end - max(since, until)
                until = end
        return total


def _within(agent: str, other: str) -> bool:
    """Return whether ``agent`` is ``other`` or below it."""
    return agent == other or agent.startswith(f"{other}/")
