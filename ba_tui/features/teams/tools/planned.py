"""The plan of a team: the model's where it can make one, else the roles work one after the other; made anew, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError, StopTurn
from ba_tui.core.events import Notice
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.teamwork.teams import Role
from ba_tui.core.text.wording import sentence
from ba_tui.core.turn import Branch
from ba_tui.features.teams.tools.forming import of_team, planned_in_a_row
from ba_tui.tools.model_requests import ModelRequests

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.orchestrator import Planning
    from ba_tui.features.teams.tools.carrying import Replanning


def planning(requests: ModelRequests | None) -> Planning:
    """What makes plans with ``requests`` to the session's model; without any, roles work one after the other."""

    async def plan(goal: str, roles: Sequence[Role], branch: Branch) -> Plan:
        if requests is None or len(roles) == 1:
            return await planned_in_a_row(goal, roles, branch)
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - for teams and plans alone

        try:
            draft = await Planner(partial(requests.ask, branch), described(roles)).create_plan(goal, (), may_ask=False)
        except StopTurn:
            raise
        except BaError as error:
            why = sentence(str(error))
            branch.emit(Notice(f"The roles work one after the other: no plan could be made. {why}", "info"))
            return await planned_in_a_row(goal, roles, branch)
        for text in (*draft.notes, *(f"Assumed: {each}" for each in draft.plan.task.assumptions)):
            branch.emit(Notice(sentence(text), "info"))
        if not draft.plan.subtasks:
            return await planned_in_a_row(goal, roles, branch)
        return replace(of_team(draft.plan), state="approved")

    return plan


def replanning(requests: ModelRequests | None, roles: Sequence[Role]) -> Replanning | None:
    """What makes plans anew; None where no model can be asked."""
    if requests is None:
        return None

    async def replan(plan: Plan, reason: str, branch: Branch) -> Plan:
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - see planning

        draft = await Planner(partial(requests.ask, branch), described(roles)).replan(plan, reason, ())
        branch.emit(Notice(sentence(f"The team's plan is made anew: {reason}"), "info"))
        return draft.plan

    return replan


def described(roles: Sequence[Role]) -> dict[str, str]:
    return {role.name: role.description or role.name for role in roles}
