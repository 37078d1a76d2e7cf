"""Hierarchical: a manager hands the subtasks of one plan to workers and puts their results together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.features.teams.engine.patterns.results import Answer, missing_of

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.patterns.results import Floor


async def hierarchical(team: Floor) -> Answer:
    """The result of the plan's last subtask when all of it leads there and nothing in it was overruled by what members
    settled; else an answer from all results."""
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
