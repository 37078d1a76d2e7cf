"""Folds of events into plans: their current state, and how they ran over time. The same live and replayed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ba_tui.core.events import MAIN, AgentStarted, Answered, Asked, PlanChanged, SubTaskChanged, TurnEnded
from ba_tui.core.teamwork import ENDED_STATUSES, Plan, SubTask
from ba_tui.core.text.wording import one_line

NAMED = 80
"""Length of a step's description as its agent's description."""


@dataclass
class StepTimes:
    """Start and end of a step in seconds since the epoch; 0 if missing."""

    began: float = 0.0
    ended: float = 0.0

    def lasted(self, now: float) -> float | None:
        """Return the duration so far in seconds; None if the step was not started."""
        return max(0.0, (self.ended or now) - self.began) if self.began else None


@dataclass
class PlanTimeline:
    """One plan over time. ``reason``: why it changed last."""

    plan: Plan
    began: float
    reason: str = ""
    changed: float = 0.0
    begun: bool = False
    times: dict[str, StepTimes] = field(default_factory=dict[str, StepTimes])
    agents: dict[str, str] = field(default_factory=dict[str, str])
    """Maps an agent's name in events to the step that it was started for."""
    asks: dict[str, str] = field(default_factory=dict[str, str])
    """Maps the id of an open question to its step."""

    @property
    def waiting(self) -> frozenset[str]:
        """Return the steps that wait for an answer of the user."""
        return frozenset(self.asks.values())

    def time_of(self, step: SubTask) -> StepTimes:
        return self.times.get(step.id) or StepTimes()


class PlanCourse:
    """The plans of a session over time, newest last in ``plans``. ``apply`` returns whether a plan changed."""

    def __init__(self, events: Iterable[object] = ()) -> None:
        self._records: dict[str, PlanTimeline] = {}
        for event in events:
            self.apply(event)

    @property
    def plans(self) -> Sequence[PlanTimeline]:
        return list(self._records.values())

    @property
    def newest(self) -> PlanTimeline | None:
        return self.plans[-1] if self._records else None

    def find(self, id: str) -> PlanTimeline | None:
        return self._records.get(id)

    def apply(self, event: object) -> bool:
        match event:
            case PlanChanged(plan=plan, reason=reason, at=at):
                record = self._records.setdefault(plan.id, PlanTimeline(plan, at))
                before = record.plan
                if plan.state == "running" and not record.begun:
                    # Time before that was planning and approval.
                    record.began, record.begun = at, True
                record.plan, record.reason, record.changed = plan, reason, at
                for step in plan.subtasks:
                    self._time(record, before.find(step.id), step, at)
            case SubTaskChanged(plan=id, subtask=step, at=at) if id in self._records:
                record = self._records[id]
                self._time(record, record.plan.find(step.id), step, at)
                record.plan, record.changed = record.plan.updated(step), at
            case AgentStarted() | Asked() | Answered() | TurnEnded():
                return self._asked(event)
            case _:
                return False
        return True

    def _asked(self, event: AgentStarted | Asked | Answered | TurnEnded) -> bool:
        """Note which step of the newest plan waits for the user."""
        record = self.newest
        if record is None:
            return False
        running = [step for step in record.plan.subtasks if step.status == "executing"]
        match event:
            case AgentStarted(agent=agent, description=said):
                named = [step.id for step in running if one_line(step.description, NAMED) == said]
                free = [id for id in named if id not in record.agents.values()]
                record.agents.update((agent, id) for id in (free or named)[:1])
                return False
            case Asked(ask_id=id, agent=agent, question=question):
                while agent and agent not in record.agents:
                    agent = agent.rpartition("/")[0]
                by_call = (step.id for step in running if question.call_id.endswith(f".{step.id}.{step.attempts}"))
                if not (step := record.agents.get(agent) or next(by_call, "")):
                    return False
                record.asks[id] = step
                return True
            case Answered(ask_id=id):
                return record.asks.pop(id, None) is not None
            case TurnEnded(agent=agent):
                over = bool(record.asks) and agent == MAIN
                if over:
                    record.asks.clear()
                return over

    def _time(self, record: PlanTimeline, before: SubTask | None, step: SubTask, at: float) -> None:
        """Update the times of a step. A retried step keeps its first start; a pending step has none."""
        times = record.times.setdefault(step.id, StepTimes())
        if step.status == "executing" and (before is None or before.status != "executing" or not times.began):
            times.began, times.ended = times.began or at, 0.0
        elif step.status == "pending":
            times.began = times.ended = 0.0
        elif step.status in ENDED_STATUSES and times.began and not times.ended:
            times.ended = at


class PlanRecord:
    """One plan. ``reason``: why the whole plan changed last. ``failure``: why the newest attempt of a step failed;
    empty if it succeeded."""

    def __init__(self, plan: Plan, reason: str = "") -> None:
        self.reason = reason
        self.failure = ""
        self._plan: Plan | None = plan
        self._whole = plan
        self._steps = {step.id: step for step in plan.subtasks}

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            self._plan = replace(self._whole, subtasks=tuple(self._steps.values()))
        return self._plan

    def change(self, plan: Plan, reason: str) -> None:
        if plan.replans != self._whole.replans:
            self.failure = ""
        self.reason, self._plan, self._whole = reason, plan, plan
        for step in plan.subtasks:
            self._note(self._steps.get(step.id), step)
        self._steps = {step.id: step for step in plan.subtasks}

    def step(self, step: SubTask) -> None:
        if step.id in self._steps:
            self._note(self._steps[step.id], step)
            self._steps[step.id] = step
            self._plan = None

    def _note(self, before: SubTask | None, step: SubTask) -> None:
        if before is None or (before.status, before.attempts) == (step.status, step.attempts):
            return
        if step.status == "completed":
            self.failure = ""
        elif step.status == "failed" or (step.status == "executing" and step.attempts > 1):
            self.failure = step.error or self.failure


class PlanFold:
    """The plans of a session. Apply every event; the cost of an event is independent of the size of a plan."""

    def __init__(self, events: Iterable[object] = ()) -> None:
        self._records: dict[str, PlanRecord] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: object) -> None:
        match event:
            case PlanChanged(plan=plan, reason=reason):
                if record := self._records.get(plan.id):
                    record.change(plan, reason)
                else:
                    self._records[plan.id] = PlanRecord(plan, reason)
            case SubTaskChanged(plan=id, subtask=step) if id in self._records:
                self._records[id].step(step)
            case _:
                pass

    def find(self, id: str) -> PlanRecord | None:
        return self._records.get(id)

    @property
    def newest(self) -> PlanRecord | None:
        """Return the record of the plan started last."""
        return next(reversed(self._records.values()), None)
