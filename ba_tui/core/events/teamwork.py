"""Events of work that is shared out: agents that start and change their state, plans, messages of a team."""

from __future__ import annotations

from typing import Literal

from ba_tui.core.events.signed import Signed
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.teamwork.teams import AgentMessage, Conflict, Team
from ba_tui.core.values import frozen


@frozen
class AgentStarted(Signed):
    """A sub-agent begins, or goes on when ``resumed``; its TurnStarted follows. ``kind`` is its type, such as
    ``explore``; ``call_id`` the call that started it; ``worktree`` the copy of the project that it works in, empty for
    the project itself."""

    kind: str
    description: str = ""
    call_id: str = ""
    model: str = ""
    background: bool = False
    resumed: bool = False
    worktree: str = ""
    type: Literal["agent_started"] = "agent_started"


@frozen
class ActivityChanged(Signed):
    """The state of the agent from now on. It follows from the other events, so the journal does not hold it."""

    activity: AgentActivity
    before: AgentActivity
    type: Literal["activity_changed"] = "activity_changed"


@frozen
class AgentPaused(Signed):
    """The agent stands still before its next request, or goes on again."""

    paused: bool
    type: Literal["agent_paused"] = "agent_paused"


@frozen
class PlanChanged(Signed):
    """The whole plan from now on: proposed, edited, approved, rejected, made anew, ended. ``reason``: why."""

    plan: Plan
    reason: str = ""
    type: Literal["plan_changed"] = "plan_changed"


@frozen
class SubTaskChanged(Signed):
    """One subtask of the plan with the id ``plan`` from now on."""

    plan: str
    subtask: SubTask
    type: Literal["subtask_changed"] = "subtask_changed"


@frozen
class TeamChanged(Signed):
    """The whole team from now on: who is in it and what each does."""

    team: Team
    type: Literal["team_changed"] = "team_changed"


@frozen
class TeamMessage(Signed):
    """A message between members was delivered. Heartbeats are not among them."""

    message: AgentMessage
    type: Literal["team_message"] = "team_message"


@frozen
class ConflictChanged(Signed):
    """Members disagree, or their conflict was settled."""

    team: str
    conflict: Conflict
    type: Literal["conflict_changed"] = "conflict_changed"
