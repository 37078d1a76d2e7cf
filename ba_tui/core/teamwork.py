"""Values of shared work: activities and specs of agents, plans, and teams. May import what ``core.results`` may; no
events."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.effects import UNLIMITED, AgentCeiling
from ba_tui.core.values import frozen

AgentActivity: TypeAlias = Literal[
    "idle",
    "planning",
    "thinking",
    "acting",
    "observing",
    "replanning",
    "awaiting_approval",
    "paused",
    "finished",
    "error",
    "cancelled",
]
SubTaskStatus: TypeAlias = Literal["pending", "executing", "completed", "failed", "blocked", "skipped"]
PlanState: TypeAlias = Literal[
    "proposed", "approved", "running", "paused", "completed", "partial", "rejected", "cancelled"
]
TEAM_PLAN = "team-"
"""Prefix of the id of a plan that members of a team work on: only a team can continue it."""
UNDECIDED = "Interrupted after calls that may have changed something: "
"""Prefix of the error of a step that is blocked until the user decides about it."""
ENDED_STATUSES: frozenset[SubTaskStatus] = frozenset({"completed", "failed", "blocked", "skipped"})
SHARE, ASK_TEAM, BORROW = "share", "ask_team", "borrow_tool"
"""Tools that only members have."""


@frozen
class PlanTask:
    """The request behind a plan: the user's words, and the goal as the planner understood it. ``context``: facts for
    every subtask; ``assumptions``: assumptions made because the user could not be asked."""

    id: str
    original_query: str
    goal: str = ""
    context: str = ""
    assumptions: tuple[str, ...] = ()


@frozen
class SubTask:
    """One step of a plan. With ``tool_name`` it is a call of that tool or workflow; otherwise an agent works on it.

    ``dependencies``: ids of the subtasks whose results it needs; those also in ``optional`` may be missing. ``{id}`` in
    its texts and arguments stands for the result of subtask ``id``, ``{id.key}`` for a value in it. ``role``: the agent
    or team role that works on it. ``critical``: its failure causes replanning.

    ``result``: its result as text; ``value``: the same as JSON if it is data. ``artifact``: where the full result is
    stored if ``result`` is a part. ``error``: why it failed or was not started.
    """

    id: str
    description: str
    expected_output: str = ""
    tool_name: str = ""
    tool_args: dict[str, Any] = field(default_factory=dict[str, Any])
    dependencies: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    role: str = ""
    critical: bool = False
    max_loops: int = 10
    status: SubTaskStatus = "pending"
    result: str = ""
    value: Any = None
    artifact: str = ""
    error: str = ""
    attempts: int = 0
    agent_id: str = ""

    @property
    def undecided(self) -> bool:
        """Return whether the step was interrupted and waits for a decision of the user."""
        return self.status == "blocked" and self.error.startswith(UNDECIDED)


@frozen
class Plan:
    """Subtasks of one task, in the order written. ``replans``: the number of replans."""

    id: str
    task: PlanTask
    subtasks: tuple[SubTask, ...] = ()
    state: PlanState = "proposed"
    replans: int = 0

    @property
    def dag(self) -> Mapping[str, tuple[str, ...]]:
        """Return the dependencies of each subtask by id."""
        return {each.id: each.dependencies for each in self.subtasks}

    @property
    def execution_order(self) -> tuple[str, ...]:
        """Return all ids, each after its dependencies. Raises graphlib.CycleError."""
        from graphlib import TopologicalSorter  # noqa: PLC0415 - few sessions have a plan

        known = {each.id for each in self.subtasks}
        graph = {id: [other for other in needed if other in known] for id, needed in self.dag.items()}
        return tuple(TopologicalSorter(graph).static_order())

    def find(self, id: str) -> SubTask | None:
        return next((each for each in self.subtasks if each.id == id), None)

    def updated(self, subtask: SubTask) -> Plan:
        """Return the plan with ``subtask`` in place of the one with its id."""
        return replace(self, subtasks=tuple(subtask if each.id == subtask.id else each for each in self.subtasks))


@frozen
class Budget:
    """Limits for one task of an agent and its sub-agents: ``cost`` in US dollars, ``tokens`` in and out; None for no
    limit."""

    cost: float | None = None
    tokens: int | None = None


@frozen
class ProjectCopy:
    """``files`` is a copy of ``project``, the top folder of the repository. Both paths are resolved. ``left``: what was
    not copied, and why."""

    project: Path
    files: Path
    left: tuple[str, ...] = ()


@frozen
class AgentSpec:
    """Specification of an agent: main, sub-agent, planner or team member. Other agents choose it by ``name`` and
    ``description``; ``prompt`` is its system prompt.

    ``model`` None uses the model of the agent that starts it. ``tools``: the names of its tools; None for all that its
    role allows. ``ceiling``: the most that it may do. ``max_loops``: maximum model requests for one task.
    ``expected_output``: requirements that a model checks before the agent ends; empty for no check. ``effort``:
    reasoning effort, empty for that of the settings. ``skills``: names of skills whose instructions it has from the
    start. ``copy``: its project copy.
    """

    name: str
    description: str = ""
    prompt: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    ceiling: AgentCeiling = UNLIMITED
    max_loops: int = 100
    budget: Budget | None = None
    expected_output: str = ""
    effort: str = ""
    skills: tuple[str, ...] = ()
    copy: ProjectCopy | None = None


MessageType: TypeAlias = Literal[
    "task_request",
    "task_response",
    "status_update",
    "information_share",
    "context_request",
    "error",
    "heartbeat",
    "bid",
]
Pattern: TypeAlias = Literal["hierarchical", "committee", "market"]
Strategy: TypeAlias = Literal["majority", "confidence", "authority", "verifier", "person"]
EVERYBODY = "*"
"""The receiver of a message to all members."""
PROTOCOL = 1
"""Version of messages; increased when workers of an older version could not understand them."""


@frozen
class Role:
    """A role in a team. ``agent``: the agent that provides prompt, tools and model, by name; ``prompt`` is appended.

    ``capabilities``: words for matching work. ``messages``: the message types that it may send; empty for all.
    ``authority``: weight of its word in a conflict, from 0 to 1. ``members``: number of members. ``lends``: names of
    tools that other members may call at a member of this role.
    """

    name: str
    description: str = ""
    agent: str = "general"
    prompt: str = ""
    capabilities: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    messages: tuple[MessageType, ...] = ()
    model: str | None = None
    max_loops: int = 10
    budget: Budget | None = None
    authority: float = 0.5
    members: int = 1
    lends: tuple[str, ...] = ()


@frozen
class AgentMessage:
    """A message between members. ``sender`` and ``receiver`` are members' names; ``EVERYBODY`` receives broadcasts.

    ``sequence`` numbers the messages of one sender from 1, without gaps; the bus assigns it. ``correlation_id``: the id
    of the message that this one refers to. ``idempotency_key``: equal for every delivery of one piece of work. ``at``
    in seconds since the epoch.
    """

    sender: str
    receiver: str
    type: MessageType
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    team: str = ""
    correlation_id: str = ""
    idempotency_key: str = ""
    sequence: int = 0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    at: float = field(default_factory=time.time)
    protocol: int = PROTOCOL


@frozen
class Member:
    """A team member as shown to people. ``doing``: its subtask in a line. ``heard``: time of its last message, in
    seconds since the epoch. ``where``: its process, empty for this one."""

    name: str
    role: str
    activity: AgentActivity = "idle"
    doing: str = ""
    agent_id: str = ""
    heard: float = 0.0
    where: str = ""


@frozen
class TeamOrder:
    """A request to run a team. ``roles``: names of roles or agents; empty if the orchestrator chooses. None: as in the
    settings."""

    goal: str
    roles: tuple[str, ...] = ()
    pattern: Pattern | None = None
    conflicts: Strategy | None = None
    deadline: float | None = None


@frozen
class Team:
    id: str
    goal: str
    pattern: Pattern
    members: tuple[Member, ...] = ()
    state: Literal["forming", "working", "synthesizing", "completed", "partial", "failed", "cancelled"] = "forming"


@frozen
class Claim:
    """The value of a key according to ``member``. ``confidence`` from 0 to 1."""

    member: str
    value: Any
    confidence: float = 0.5


@frozen
class Conflict:
    """Contradicting claims about one ``key``. ``winner`` is the accepted claim; None while undecided."""

    id: str
    key: str
    claims: tuple[Claim, ...]
    strategy: Strategy = "majority"
    winner: Claim | None = None
    reason: str = ""


def conflict_facts(conflict: Conflict) -> dict[str, Any]:
    """Return the conflict as JSON: the claims and the decision."""
    won = conflict.winner
    return {
        "id": conflict.id,
        "key": conflict.key,
        "claims": [
            {"member": each.member, "value": each.value, "confidence": each.confidence} for each in conflict.claims
        ],
        "strategy": conflict.strategy,
        "winner": {"member": won.member, "value": won.value} if won else None,
        "reason": conflict.reason,
    }
