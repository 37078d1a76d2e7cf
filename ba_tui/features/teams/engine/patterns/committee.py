"""Committee: every member answers by itself; then they vote where answers can be compared, else answers are merged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ba_tui.core.teamwork.plans import TEAM_PLAN, Plan, SubTask, Task
from ba_tui.features.teams.engine.conflicts import differ
from ba_tui.features.teams.engine.patterns.results import Answer, missing_of
from ba_tui.features.teams.engine.prompts import ANSWER, answering

if TYPE_CHECKING:
    from ba_tui.core.teamwork.teams import Role
    from ba_tui.features.teams.engine.jobs import Outcome
    from ba_tui.features.teams.engine.patterns.results import Floor


async def committee(team: Floor) -> Answer:
    """The report of a member whose answer won the vote; an answer from all reports when there was none to count."""
    goal = team.assignment.goal
    said: dict[str, Outcome] = {}

    async def work(subtask: SubTask, prompt: str) -> Outcome:
        outcome = await team.work(subtask, prompt)
        said[subtask.id] = outcome
        return outcome

    # A vote is counted when all have spoken.
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
    """One subtask for each member; none waits for another."""
    subtasks = tuple(
        SubTask(f"{role.name}-{number}", answering(goal, role), role=role.name)
        for role in roles
        for number in range(1, role.members + 1)
    )
    return Plan(f"{TEAM_PLAN}{id}", Task(id, goal, goal), subtasks, state="approved")


def _voted(team: Floor, said: dict[str, Outcome]) -> str:
    """The report behind the answer that counts; empty when members did not state one."""
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
        # The person decided otherwise than every member.
        return f"{ANSWER}: {counts.value}" if counts else ""
    return f"{said[best].report}\n\nAnswer: {counts.value} ({len(found)} of {len(stated)} members)" if counts else ""
