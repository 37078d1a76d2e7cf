"""Settles conflicts as they come up: each one is told when it opens and when it is settled, with who won and why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ba_tui.core.teamwork.teams import Claim, Conflict, Strategy
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.conflicts import DIFFERENCE, Claims, differ, settled
from ba_tui.features.teams.engine.facts import Fact
from ba_tui.features.teams.engine.watching import TeamWatch

Judging: TypeAlias = Callable[[Conflict], Awaitable[Claim | None]]
"""Decides a conflict, or knows no answer."""


@frozen
class Judges:
    """``verify`` asks a member who checks, ``ask`` the person; ``authority`` is that of a member, from 0 to 1."""

    authority: Callable[[str], float]
    verify: Judging
    ask: Judging


class Settling:
    """The facts of one team. What members state goes through here."""

    def __init__(
        self, claims: Claims, watch: TeamWatch, strategy: Strategy, judges: Judges, share: float = DIFFERENCE
    ) -> None:
        self.claims = claims
        self._watch = watch
        self._strategy: Strategy = strategy
        self._judges = judges
        self._share = share
        # One person answers one question at a time, and what one answer settles need not be asked again.
        self._one = asyncio.Lock()
        self.held = False
        """Whether conflicts wait for ``release``: until all members have spoken."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def state(self, member: str, facts: Sequence[Fact]) -> None:
        """Take in what a member states; returns when the conflicts that it makes are settled."""
        opened = self.claims.state(member, facts)
        if self.held:
            return
        for conflict in opened:
            await self._open(conflict)
        keys = {fact.key for fact in facts}
        for conflict in [each for each in self.claims.conflicts if each.key in keys and each not in opened]:
            self._count_again(conflict)

    async def release(self) -> None:
        """Settle what was held back, and from now on at once."""
        self.held = False
        for conflict in [each for each in self.claims.conflicts if each.winner is None]:
            await self._open(conflict)

    async def _open(self, conflict: Conflict) -> None:
        self._watch.conflict(conflict)
        async with self._one:
            await self._settle(conflict)

    def _count_again(self, conflict: Conflict) -> None:
        """Another voice may turn a majority; what a person or a verifier decided stays."""
        if conflict.winner is None or self._strategy in {"verifier", "person"}:
            return
        ended = settled(conflict, self._strategy, self._judges.authority, self._share)
        if ended.winner and differ(ended.winner.value, conflict.winner.value, self._share):
            self.claims.settle(ended)
            self._watch.conflict(ended)

    def heard(self, member: str, facts: Sequence[Fact]) -> None:
        """The same for what comes in between; settled beside the work."""
        self.beside(self.state(member, facts))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do ``work`` beside the team's; the team does not end before it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def done(self) -> None:
        """Wait until nothing is open."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self.done()

    async def _settle(self, conflict: Conflict) -> None:
        # Other members may have spoken while this one waited.
        now = next((each for each in self.claims.conflicts if each.id == conflict.id), conflict)
        if now.winner:
            return
        ended = await self._judged(now)
        self.claims.settle(ended)
        self._watch.conflict(ended)

    async def _judged(self, conflict: Conflict) -> Conflict:
        judges: dict[Strategy, Judging] = {"verifier": self._judges.verify, "person": self._judges.ask}
        judge = judges.get(self._strategy)
        if judge is None:
            return settled(conflict, self._strategy, self._judges.authority, self._share)
        found = await judge(conflict)
        if found is None:
            nobody = "no verifier gave an answer" if self._strategy == "verifier" else "nobody answered"
            ended = settled(conflict, "confidence", self._judges.authority, self._share)
            return replace(ended, strategy=self._strategy, reason=f"{nobody}; {ended.reason}")
        agreeing = [each.member for each in conflict.claims if not differ(each.value, found.value, self._share)]
        who = "you decided" if self._strategy == "person" else f"{found.member} checked"
        reason = f"{who}; {', '.join(agreeing)} said so" if agreeing else f"{who}; no member had said so"
        return replace(conflict, strategy=self._strategy, winner=found, reason=reason)
