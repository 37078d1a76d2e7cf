"""Patterns of a team (hierarchical, committee, market) and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ba_tui.core.teamwork import TEAM_PLAN, Plan, PlanTask, Role, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.conflicts import differ
from ba_tui.features.teams.engine.jobs import ANSWER, answering, unfinished
from ba_tui.features.teams.engine.messages import Bid

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.conflicts import ConflictSettler
    from ba_tui.features.teams.engine.jobs import Assignment, JobOutcome, TeamJob


@frozen
class Answer:
    """The answer of a team. ``complete``: no part is missing. ``missing`` says what is."""

    text: str
    complete: bool = True
    missing: tuple[str, ...] = ()

    @staticmethod
    def unfinished(results: Mapping[str, str], missing: Sequence[str]) -> Answer:
        """Return the answer that lists the plain results."""
        text = unfinished(results, missing) if results else ""
        return Answer(text, complete=not missing and bool(results), missing=tuple(missing))


class Floor(Protocol):
    """The operations of a team that a pattern uses."""

    @property
    def assignment(self) -> Assignment: ...

    @property
    def settling(self) -> ConflictSettler: ...

    async def planned(self) -> Plan: ...

    async def carry(self, plan: Plan, work: Callable[[SubTask, str], Awaitable[JobOutcome]]) -> Plan: ...

    async def work(self, subtask: SubTask, prompt: str) -> JobOutcome: ...

    async def results(self, plan: Plan) -> Mapping[str, str]: ...

    def overruled(self, task: str) -> bool: ...

    async def do(self, job: TeamJob) -> JobOutcome: ...

    async def synthesized(self, results: Mapping[str, str], missing: Sequence[str]) -> Answer: ...


def missing_of(plan: Plan) -> Sequence[str]:
    """Return one line for each subtask that was not done, with the reason."""
    left = [each for each in plan.subtasks if each.status != "completed"]
    return [f"{each.id} ({each.description[:80]}): {each.error or each.status}" for each in left]


# Committee: every member answers independently; comparable answers are put to the vote, others are merged.


async def committee(team: Floor) -> Answer:
    """Return the report of a member whose answer won the vote; without countable votes, an answer from all reports."""
    goal = team.assignment.goal
    said: dict[str, JobOutcome] = {}

    async def work(subtask: SubTask, prompt: str) -> JobOutcome:
        outcome = await team.work(subtask, prompt)
        said[subtask.id] = outcome
        return outcome

    # Votes are counted once all members have answered.
    team.settling.held = True
    plan = await team.carry(team.assignment.plan or _plan(goal, team.assignment.id, team.assignment.roles), work)
    results, missing = await team.results(plan), missing_of(plan)
    if not results:
        return Answer("", complete=False, missing=tuple(missing))
    await team.settling.release()
    if (voted := _voted(team, said)) and len(said) == len(results):
        return Answer(voted, complete=not missing, missing=tuple(missing))
    if len(results) == 1:
        return Answer(next(iter(results.values())), not missing, tuple(missing))
    return replace(await team.synthesized(results, missing), missing=tuple(missing))


def _plan(goal: str, id: str, roles: tuple[Role, ...]) -> Plan:
    """Return a plan with one independent subtask per member."""
    subtasks = tuple(
        SubTask(f"{role.name}-{number}", answering(goal, role), role=role.name)
        for role in roles
        for number in range(1, role.members + 1)
    )
    return Plan(f"{TEAM_PLAN}{id}", PlanTask(id, goal, goal), subtasks, state="approved")


def _voted(team: Floor, said: dict[str, JobOutcome]) -> str:
    """Return the report behind the winning answer; empty if members stated none."""
    stated = {
        id: next((fact for fact in reversed(outcome.facts) if fact.key == ANSWER), None)
        for id, outcome in said.items()
        if outcome.ok
    }
    if len(stated) < 2 or not all(stated.values()):
        return ""
    counts = next((fact for fact in team.settling.claims.facts if fact.key == ANSWER), None)
    found = [id for id, fact in stated.items() if fact and counts and not differ(fact.value, counts.value)]
    best = max(found, key=lambda id: next(f.confidence for f in said[id].facts if f.key == ANSWER), default="")
    if not best:
        # The user chose a value that no member stated.
        return f"{ANSWER}: {counts.value}" if counts else ""
    return f"{said[best].report}\n\nAnswer: {counts.value} ({len(found)} of {len(stated)} members)" if counts else ""


# Market: members bid for each subtask; quality, cost and time decide. No model is asked.

QUALITY, COST, TIME = 0.6, 0.2, 0.2
"""Weights of quality, cost and time."""
LOOP_SECONDS = 8.0
"""Estimated seconds of one model request; used only to compare bids."""
_WORD = regex(r"[^\W_]{3,}")


def offer(role: Role, task: str, work: str, *, busy: bool) -> Bid:
    """Return the bid of a member of ``role`` for ``work``: how well its words fit, and its maximum duration.

    ``cost`` is 1 for the session's model, else the limit of the role's budget.
    """
    wanted = {word.casefold() for word in _WORD.findall(work)}
    offered = [word.casefold() for word in _WORD.findall(" ".join((role.name, *role.capabilities)))]
    described = {word.casefold() for word in _WORD.findall(role.description)}
    exact = {word for word in wanted if any(_alike(word, other) for other in offered)}
    loose = {word for word in wanted - exact if any(_alike(word, other) for other in described)}
    fit = (len(exact) + len(loose) / 2) / (1 + len(exact) + len(loose))
    quality = min(1.0, 0.8 * fit + 0.2 * role.authority)
    seconds = role.max_loops * LOOP_SECONDS * (2 if busy else 1)
    cost = role.budget.cost if role.budget and role.budget.cost is not None else 1.0
    return Bid(task, cost, quality, seconds, reason=", ".join(sorted(exact | loose)) or "no word of the task fits")


def _alike(one: str, other: str) -> bool:
    return one == other or (len(one) > 3 and len(other) > 3 and (one.startswith(other) or other.startswith(one)))


def awarded(bids: Sequence[tuple[str, Bid]]) -> tuple[str, Bid] | None:
    """Return the best bid: cost and time are relative to the most expensive and the slowest bid. The first one wins a
    tie.
    """
    if not bids:
        return None
    dearest = max((bid.cost for _, bid in bids), default=0.0) or 1.0
    slowest = max((bid.seconds for _, bid in bids), default=0.0) or 1.0

    def worth(each: tuple[str, Bid]) -> float:
        bid = each[1]
        return QUALITY * bid.quality - COST * bid.cost / dearest - TIME * bid.seconds / slowest

    return max(bids, key=worth)


# Hierarchical: a manager assigns the subtasks of one plan to workers and combines their results.


async def hierarchical(team: Floor) -> Answer:
    """Return the result of the plan's last subtask if all others lead to it and none of it was overruled by a settled
    conflict; else an answer from all results.
    """
    plan = await team.carry(await team.planned(), team.work)
    results, missing = await team.results(plan), missing_of(plan)
    if not results:
        return Answer("", complete=False, missing=tuple(missing))
    needed = {id for each in plan.subtasks for id in each.dependencies}
    last = [each for each in plan.subtasks if each.id not in needed]
    if not missing and len(last) == 1 and not team.overruled(last[0].id):
        return Answer(results[last[0].id])
    answer = await team.synthesized(results, missing)
    return Answer(answer.text, answer.complete, tuple(missing))
