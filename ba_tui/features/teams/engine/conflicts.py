"""Conflicts between members' statements, and the strategies that settle them. Pure.

The strategies ``verifier`` and ``person`` need a question to another party, which ``ConflictSettler`` asks; ``settled``
has the fallback when there is no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ba_tui.core.teamwork import Claim, Conflict, Strategy
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.facts import StatedFact, figure_of
from ba_tui.features.teams.engine.watching import TeamWatch

DIFFERENCE = 0.05
"""Figures of one key conflict when they differ by more than this share of the larger one."""
MOST_KEYS = 1_000
"""Maximum number of keys of one team that are compared."""
_MARKS = regex(r"[\W_]+")


def differ(one: object, other: object, share: float = DIFFERENCE) -> bool:
    """Return whether two values contradict each other. Figures do when they differ by more than ``share`` of the larger
    one or have different units; texts do when they differ in more than case, spaces and punctuation.
    """
    mine, theirs = figure_of(one), figure_of(other)
    if mine is None or theirs is None:
        return _words(one) != _words(other)
    if mine.unit and theirs.unit and mine.unit != theirs.unit:
        return True
    return abs(mine.number - theirs.number) > share * max(abs(mine.number), abs(theirs.number)) * (1 + 1e-9)


def _words(value: object) -> str:
    text = str(value).casefold()
    return _MARKS.sub(" ", text).strip() or text


def camps(claims: Sequence[Claim], share: float = DIFFERENCE) -> list[list[Claim]]:
    """Return the claims in groups whose members agree with their first claim: largest group first, then highest
    confidence.
    """
    found: list[list[Claim]] = []
    for claim in claims:
        camp = next((each for each in found if not differ(each[0].value, claim.value, share)), None)
        if camp is None:
            found.append([claim])
        else:
            camp.append(claim)
    return sorted(found, key=lambda camp: (-len(camp), -_sure(camp)))


def _sure(camp: Sequence[Claim]) -> float:
    return sum(claim.confidence for claim in camp)


def settled(conflict: Conflict, strategy: Strategy, authority: Callable[[str], float], share: float) -> Conflict:
    """Return ``conflict`` with the claim that wins under ``strategy`` and the reason in words.

    ``authority`` returns a member's authority from 0 to 1. ``verifier`` and ``person`` fall back to confidence here,
    for when there is no answer.
    """
    groups = camps(conflict.claims, share)
    if strategy == "majority":
        first = groups[0]
        even = len(groups) > 1 and len(groups[1]) == len(first)
        camp, reason = first, f"{len(first)} of {len(conflict.claims)} members say so"
        if even:
            reason += ", the most certain of them" if _sure(first) > _sure(groups[1]) else "; the first of them counts"
    elif strategy == "authority":
        best = max(conflict.claims, key=lambda claim: (authority(claim.member), claim.confidence))
        camp, reason = [best], f"{best.member} has the authority ({authority(best.member):g})"
    else:
        camp = max(groups, key=_sure)
        reason = f"the most certain: {_sure(camp):.2f} of {_sure(conflict.claims):.2f}"
    winner = max(camp, key=lambda claim: claim.confidence)
    return replace(conflict, strategy=strategy, winner=winner, reason=reason)


@frozen
class KeyState:
    """The current claim or conflict of a key."""

    claims: tuple[Claim, ...]
    conflict: Conflict | None = None

    @property
    def value(self) -> object:
        """Return the accepted value: that of a conflict's winner, else of the most certain claim."""
        return self.claim.value

    @property
    def claim(self) -> Claim:
        """Return the claim that states the accepted value."""
        if self.conflict and self.conflict.winner:
            return self.conflict.winner
        return max(self.claims, key=lambda claim: claim.confidence)


class Claims:
    """All statements of one team's members by key. ``verifiers``: members whose statements conflict on any
    difference.
    """

    def __init__(self, team: str, verifiers: Collection[str] = (), share: float = DIFFERENCE) -> None:
        self._team = team
        self._verifiers = verifiers
        self._share = share
        self._standing: dict[str, KeyState] = {}
        self._conflicts = 0

    def state(self, member: str, facts: Sequence[StatedFact]) -> Sequence[Conflict]:
        """Replace the earlier statements of ``member`` on the same keys. Return the conflicts that are new or reopened
        by this.
        """
        found: list[Conflict] = []
        for fact in facts:
            before = self._standing.get(fact.key)
            if before is None and len(self._standing) >= MOST_KEYS:
                continue
            others = [claim for claim in (before.claims if before else ()) if claim.member != member]
            claims = (*others, Claim(member, fact.value, fact.confidence))
            conflict = before.conflict if before else None
            if self._contradicts(claims[-1], others, conflict):
                if conflict is None:
                    self._conflicts += 1
                id = conflict.id if conflict else f"{self._team}-c{self._conflicts}"
                conflict = Conflict(id, fact.key, claims)
                found.append(conflict)
            elif conflict:
                conflict = replace(conflict, claims=claims)
            self._standing[fact.key] = KeyState(claims, conflict)
        return found

    def _contradicts(self, claim: Claim, others: Sequence[Claim], conflict: Conflict | None) -> bool:
        if conflict and conflict.winner:
            # A settled conflict stays settled until a member states something new.
            known = [conflict.winner, *conflict.claims]
            return all(differ(claim.value, each.value, self._share) for each in known)
        return any(differ(claim.value, each.value, self._between(claim.member, each.member)) for each in others)

    def _between(self, one: str, other: str) -> float:
        return 0.0 if {one, other} & set(self._verifiers) else self._share

    def settle(self, conflict: Conflict) -> None:
        """Accept the winner of ``conflict`` for its key."""
        standing = self._standing[conflict.key]
        self._standing[conflict.key] = replace(standing, conflict=conflict)

    def counts(self, key: str) -> Claim | None:
        """Return the accepted value of ``key``; None without any statement, or while a conflict is open."""
        found = self._standing.get(key)
        if found is None or (found.conflict and not found.conflict.winner):
            return None
        return found.claim

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._standing)

    @property
    def facts(self) -> Sequence[StatedFact]:
        """Return the accepted facts by key."""
        return [StatedFact(key, each.value) for key, each in self._standing.items()]

    @property
    def conflicts(self) -> Sequence[Conflict]:
        return [each.conflict for each in self._standing.values() if each.conflict]


Judging: TypeAlias = Callable[[Conflict], Awaitable[Claim | None]]
"""Decides a conflict; returns None without an answer."""


@frozen
class Judges:
    """``verify`` asks a verifying member, ``ask`` the user; ``authority`` returns a member's authority from 0 to 1."""

    authority: Callable[[str], float]
    verify: Judging
    ask: Judging


class ConflictSettler:
    """Collects the statements of one team and settles conflicts as they arise. Each conflict is reported when it opens
    and when it is settled, with the winner and the reason.
    """

    def __init__(
        self, claims: Claims, watch: TeamWatch, strategy: Strategy, judges: Judges, share: float = DIFFERENCE
    ) -> None:
        self.claims = claims
        self._watch = watch
        self._strategy: Strategy = strategy
        self._judges = judges
        self._share = share
        # The user answers one question at a time, and an answer may settle further conflicts, which are then not asked.
        self._one = asyncio.Lock()
        self.held = False
        """Whether conflicts wait for ``release``: until all members have spoken."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def state(self, member: str, facts: Sequence[StatedFact]) -> None:
        """Record a member's statements; return when the conflicts that they cause are settled."""
        opened = self.claims.state(member, facts)
        if self.held:
            return
        for conflict in opened:
            await self._open(conflict)
        keys = {fact.key for fact in facts}
        for conflict in [each for each in self.claims.conflicts if each.key in keys and each not in opened]:
            self._count_again(conflict)

    async def release(self) -> None:
        """Settle the deferred conflicts, and from now on each new one immediately."""
        self.held = False
        for conflict in [each for each in self.claims.conflicts if each.winner is None]:
            await self._open(conflict)

    async def _open(self, conflict: Conflict) -> None:
        self._watch.conflict(conflict)
        async with self._one:
            await self._settle(conflict)

    def _count_again(self, conflict: Conflict) -> None:
        """Count again: a new statement may change a majority. Decisions of the user or a verifier stay."""
        if conflict.winner is None or self._strategy in {"verifier", "person"}:
            return
        ended = settled(conflict, self._strategy, self._judges.authority, self._share)
        if ended.winner and differ(ended.winner.value, conflict.winner.value, self._share):
            self.claims.settle(ended)
            self._watch.conflict(ended)

    def heard(self, member: str, facts: Sequence[StatedFact]) -> None:
        """Record statements that arrive during work; conflicts are settled in the background."""
        self.beside(self.state(member, facts))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in the background; the team waits for it before it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def done(self) -> None:
        """Wait until no conflict is open."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self.done()

    async def _settle(self, conflict: Conflict) -> None:
        # Other members may have stated values while this one waited.
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
