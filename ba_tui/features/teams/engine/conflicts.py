"""Facts that members state in their reports, conflicts between them, and the strategies that settle these. Pure.

Facts are parsed leniently, because weak models write them inexactly. A report may end with::

    Facts:
    - orders_march: 412 (confidence 0.9)
    - best_region: North

or with the same as JSON, ``{"facts": [{"key": …, "value": …, "confidence": …}]}``.

The strategies ``verifier`` and ``person`` need a question to another party, which ``ConflictSettler`` asks; ``settled``
has the fallback when there is no answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.teamwork import Claim, Conflict, Strategy
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.watching import TeamWatch

MOST = 50
"""Maximum facts of one report; further ones are ignored."""
LONGEST_KEY, LONGEST_VALUE = 60, 300
USUAL = 0.5
"""The default confidence of a fact."""
ASKED = (
    "End your report with the facts that others must agree with, one a line, under a line that says Facts, such as\n"
    "Facts:\n- short_key: value (confidence 0.9)\nUse the same key for the same thing. Leave the list out when there "
    "are none."
)
"""The part of members' prompts that describes the form of facts."""
_HEAD = regex(r"(?im)^[\s>#*_]*(?:key |shared )?facts[*_]*\s*:[*_\s]*$")
_LINE = regex(r"^[\s>]*(?:[-*•+]|\d+[.)])?\s*[`*_\"]*([^\s:=`*\"][^:=`*\"]{0,80}?)[`*_\"]*\s*[:=]\s*[*_]*(.+?)\s*$")
_SURE = regex(r"(?i)[\s,;]*[(\[]?\s*confidence\s*[:=]?\s*(1(?:\.0+)?|0?\.\d+|0|\d{1,3}\s*%)\s*[)\]]?\s*$")
_FENCE = regex(r"^\s*`{3,}")
_FENCE_BEFORE, _FENCE_AFTER = regex(r"`{3,}\w*$"), regex(r"^`{3,}")
_NOT_KEY = regex(r"[^\w]+")
_FIGURE = regex(
    r"^([$€£¥]|[A-Za-z]{3} )?\s*([+-]?(?:\d{1,3}(?:[ ,_'’\u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?|[+-]?\.\d+)"
    r"\s*((?:[^\d\s:.-][^\d:]{0,24})?)\.?$"
)
_TIMES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mio": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_BY_MARK = {"$": "usd", "€": "eur", "£": "gbp", "%": "%", "percent": "%"}


@frozen
class StatedFact:
    """``confidence`` from 0 to 1."""

    key: str
    value: Any
    confidence: float = USUAL


@frozen
class StatedFigure:
    """A number with its unit in lower case; an empty unit where none was written."""

    number: float
    unit: str = ""


def facts_in(report: str) -> tuple[str, Sequence[StatedFact]]:
    """Return the report without its block of facts, and the facts; the last fact of a key wins.

    Lines that are not facts are left out. A report without a block is returned unchanged.
    """
    body, found = _from_json(report)
    if found is None:
        body, found = _from_lines(report)
    named = {fact.key: fact for fact in found}
    return body, tuple(named.values())[:MOST]


def as_fact(value: Any) -> StatedFact | None:
    """Return the fact in a mapping with key, value and confidence; None for anything else."""
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Any]", value)
    key, said = key_of(str(found.get("key", ""))), found.get("value")
    if not key or said is None or isinstance(said, dict | list):
        return None
    if isinstance(said, str):
        said = clipped(" ".join(said.split()), LONGEST_VALUE)
    if isinstance(said, float) and said != said:
        return None
    return StatedFact(key, said, _confidence(found.get("confidence"))) if said != "" else None


def key_of(text: str) -> str:
    """Normalize ``text`` as a key: ``Orders in March`` and ``orders-in-march`` are equal."""
    return _NOT_KEY.sub("_", text.strip().casefold()).strip("_")[:LONGEST_KEY]


def figure_of(value: Any) -> StatedFigure | None:
    """Return ``value`` as a number, such as ``1,240 EUR`` or ``1.2 million``; None for words."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return StatedFigure(float(value)) if abs(value) < 1e300 else None
    if not isinstance(value, str) or not (found := _FIGURE.match(value.strip().strip("~≈").strip())):
        return None
    before, digits, unit = (found[1] or "").strip().casefold(), found[2], found[3].strip(" .").casefold()
    number = float(_grouping(digits))
    word, _, rest = unit.partition(" ")
    if word in _TIMES:
        number, unit = number * _TIMES[word], rest
    unit = unit or before
    return StatedFigure(number, _BY_MARK.get(unit, unit))


def _grouping(digits: str) -> str:
    return "".join(letter for letter in digits if letter.isdigit() or letter in ".+-")


def _from_json(report: str) -> tuple[str, Sequence[StatedFact] | None]:
    start = report.rfind('"facts"')
    start = report.rfind("{", 0, start) if start >= 0 else -1
    if start < 0:
        return report, None
    try:
        value, end = json.JSONDecoder().raw_decode(report, start)
    except (ValueError, RecursionError):
        return report, None
    listed: Any = cast("dict[str, Any]", value).get("facts") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return report, None
    found = [fact for each in cast("list[Any]", listed) if (fact := as_fact(each))]
    return "\n\n".join(filter(None, (_unfenced(report[:start]), _unfenced(report[end:], "start")))), found


def _unfenced(text: str, where: Literal["start", "end"] = "end") -> str:
    """Return ``text`` without the code fence that surrounded a neighbouring block."""
    text = text.strip()
    return (_FENCE_BEFORE if where == "end" else _FENCE_AFTER).sub("", text).strip()


def _from_lines(report: str) -> tuple[str, Sequence[StatedFact]]:
    heads = list(_HEAD.finditer(report))
    if not heads:
        return report, ()
    head = heads[-1]
    found, rest = list[StatedFact](), list[str]()
    lines = iter(report[head.end() :].splitlines())
    for line in lines:
        if fact := _fact(line):
            found.append(fact)
        elif line.strip() and not _FENCE.match(line):
            rest = [line, *lines]
            break
    if not found:
        return report, ()
    body = _unfenced(report[: head.start()])
    return "\n\n".join(filter(None, (body, "\n".join(rest).strip()))), found


def _fact(line: str) -> StatedFact | None:
    found = _LINE.match(line)
    if not found:
        return None
    said, sure = found[2].strip(), None
    if mark := _SURE.search(said):
        said, sure = said[: mark.start()], mark[1]
    return as_fact({"key": found[1], "value": said.strip().strip("`*\"'").strip(), "confidence": sure})


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or value is None:
        return USUAL
    try:
        said = str(value).strip()
        number = float(said.rstrip("% ")) / (100 if said.endswith("%") else 1)
    except ValueError:
        return USUAL
    return min(max(number, 0.0), 1.0) if number == number else USUAL


def fact_lines(facts: Sequence[StatedFact]) -> Iterator[str]:
    """Return the facts as lines for prompts."""
    for fact in facts:
        yield f"- {fact.key}: {fact.value}"


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
