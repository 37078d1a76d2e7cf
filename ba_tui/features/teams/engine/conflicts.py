"""Conflicts between members: found by comparing what they state, and settled by a strategy. Pure.

Who asks a verifier or the person is elsewhere: those strategies are named here, and what to do without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ba_tui.core.teamwork.teams import Claim, Conflict, Strategy
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.facts import Fact, figure_of

DIFFERENCE = 0.05
"""Figures of one key that are further apart than this share of the larger are a conflict."""
STRATEGIES: Mapping[Strategy, str] = {
    "majority": "what most members say",
    "confidence": "what members are most certain of",
    "authority": "what the role with most authority says",
    "verifier": "what a verifier finds",
    "person": "what you decide",
}
MOST_KEYS = 1_000
"""Keys of one team; facts beyond them are not compared."""
_MARKS = regex(r"[\W_]+")


def differ(one: object, other: object, share: float = DIFFERENCE) -> bool:
    """Whether two values contradict each other. Figures do when they are further apart than ``share`` of the larger, or
    have different units; words do when they differ in more than case, spaces and punctuation."""
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
    """The claims in groups that agree with their first one; the largest group first, then the most certain."""
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
    """``conflict`` with the claim that wins by ``strategy`` and the reason in words.

    ``authority`` gives that of a member, from 0 to 1. ``verifier`` and ``person`` are settled by confidence here, for
    when nobody answers.
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
class Standing:
    """What counts for a key: one claim, or those of a conflict."""

    claims: tuple[Claim, ...]
    conflict: Conflict | None = None

    @property
    def value(self) -> object:
        """What is taken for true: the winner of a conflict, else the most certain claim."""
        return self.claim.value

    @property
    def claim(self) -> Claim:
        """The claim whose value that is."""
        if self.conflict and self.conflict.winner:
            return self.conflict.winner
        return max(self.claims, key=lambda claim: claim.confidence)


class Claims:
    """What the members of one team state, by key. ``verifiers``: members whose word contradicts by any difference."""

    def __init__(self, team: str, verifiers: Collection[str] = (), share: float = DIFFERENCE) -> None:
        self._team = team
        self._verifiers = verifiers
        self._share = share
        self._standing: dict[str, Standing] = {}
        self._conflicts = 0

    def state(self, member: str, facts: Sequence[Fact]) -> Sequence[Conflict]:
        """Take in what ``member`` states, in place of what it said of the same keys before. Returns the conflicts that
        are new, or open again because of it."""
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
            self._standing[fact.key] = Standing(claims, conflict)
        return found

    def _contradicts(self, claim: Claim, others: Sequence[Claim], conflict: Conflict | None) -> bool:
        if conflict and conflict.winner:
            # What was settled stays so unless somebody says something new.
            known = [conflict.winner, *conflict.claims]
            return all(differ(claim.value, each.value, self._share) for each in known)
        return any(differ(claim.value, each.value, self._between(claim.member, each.member)) for each in others)

    def _between(self, one: str, other: str) -> float:
        return 0.0 if {one, other} & set(self._verifiers) else self._share

    def settle(self, conflict: Conflict) -> None:
        """Let the winner of ``conflict`` count for its key."""
        standing = self._standing[conflict.key]
        self._standing[conflict.key] = replace(standing, conflict=conflict)

    def counts(self, key: str) -> Claim | None:
        """What counts for ``key``; None when nobody said anything of it, or a conflict is open."""
        found = self._standing.get(key)
        if found is None or (found.conflict and not found.conflict.winner):
            return None
        return found.claim

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._standing)

    @property
    def facts(self) -> Sequence[Fact]:
        """What counts now, by key."""
        return [Fact(key, each.value) for key, each in self._standing.items()]

    @property
    def conflicts(self) -> Sequence[Conflict]:
        return [each.conflict for each in self._standing.values() if each.conflict]
