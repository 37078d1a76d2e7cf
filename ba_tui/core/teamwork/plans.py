"""A plan: subtasks that wait for each other. Values that never change; who carries them out is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

from ba_tui.core.values import frozen

SubTaskStatus: TypeAlias = Literal["pending", "executing", "completed", "failed", "blocked", "skipped"]
PlanState: TypeAlias = Literal[
    "proposed", "approved", "running", "paused", "completed", "partial", "rejected", "cancelled"
]
TEAM_PLAN = "team-"
"""Begins the id of a plan whose subtasks members of a team do: only a team can go on with it."""
UNDECIDED = "Interrupted after calls that may have changed something: "
"""Begins the error of a step that is blocked until the user says what becomes of it."""
ENDED: frozenset[SubTaskStatus] = frozenset({"completed", "failed", "blocked", "skipped"})


@frozen
class Task:
    """What is wanted: the person's own words, and the goal as the planner understood it. ``context``: facts that every
    subtask is told, ``assumptions``: what was taken for granted where nobody could be asked."""

    id: str
    original_query: str
    goal: str = ""
    context: str = ""
    assumptions: tuple[str, ...] = ()


@frozen
class SubTask:
    """One step. With ``tool_name`` it is a call of that tool, a workflow included; without, an agent works on it.

    ``dependencies``: ids of the subtasks whose results it needs; those of ``optional`` among them may be missing.
    ``{id}`` in its texts and arguments stands for the result of the subtask ``id``, ``{id.key}`` for a value in it.
    ``role``: the agent or the role of a team that works on it. ``critical``: when it fails, the plan is made anew.
    ``result``: what it gave, as text; ``value``: the same as JSON where it is data. ``artifact``: where the whole is
    stored when ``result`` is only a part. ``error``: why it failed, or why it was not begun.
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
        """Whether the step was interrupted and waits for the user to say what becomes of it."""
        return self.status == "blocked" and self.error.startswith(UNDECIDED)


@frozen
class Plan:
    """Subtasks in the order in which they were written, for one task. ``replans``: how often it was made anew."""

    id: str
    task: Task
    subtasks: tuple[SubTask, ...] = ()
    state: PlanState = "proposed"
    replans: int = 0

    @property
    def dag(self) -> Mapping[str, tuple[str, ...]]:
        """The ids that each subtask waits for, by its id."""
        return {each.id: each.dependencies for each in self.subtasks}

    @property
    def execution_order(self) -> tuple[str, ...]:
        """Every id behind those that it waits for. Raises graphlib.CycleError."""
        from graphlib import TopologicalSorter  # noqa: PLC0415 - few sessions have a plan

        known = {each.id for each in self.subtasks}
        graph = {id: [other for other in needed if other in known] for id, needed in self.dag.items()}
        return tuple(TopologicalSorter(graph).static_order())

    def find(self, id: str) -> SubTask | None:
        return next((each for each in self.subtasks if each.id == id), None)

    def updated(self, subtask: SubTask) -> Plan:
        """The plan with ``subtask`` in the place of the one with its id."""
        return replace(self, subtasks=tuple(subtask if each.id == subtask.id else each for each in self.subtasks))
