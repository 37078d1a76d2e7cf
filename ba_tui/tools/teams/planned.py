"""The plan of a team: the model's where it can make one, else the roles work one after the other."""

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
from ba_tui.tools.planning.asking import ModelRequests
from ba_tui.tools.teams.forming import planned_in_a_row

if TYPE_CHECKING:
    from ba_tui.team.orchestrator import Planning


def planning(requests: ModelRequests | None) -> Planning:
    """What makes plans with ``requests`` to the session's model; without any, roles work one after the other."""

    async def plan(goal: str, roles: Sequence[Role], branch: Branch) -> Plan:
        if requests is None or len(roles) == 1:
            return await planned_in_a_row(goal, roles, branch)
        from ba_tui.planning.planner import Planner  # noqa: PLC0415 - for teams and plans alone

        described = {role.name: role.description or role.name for role in roles}
        try:
            draft = await Planner(partial(requests.ask, branch), described).create_plan(goal, (), may_ask=False)
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
        return replace(draft.plan, state="approved")

    return plan
