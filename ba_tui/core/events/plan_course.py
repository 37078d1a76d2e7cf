"""How the plans of a session went: a fold over its events, the same live and replayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ba_tui.core.events import MAIN, Answered, Asked, TurnEnded
from ba_tui.core.events.teamwork import AgentStarted, PlanChanged, SubTaskChanged
from ba_tui.core.teamwork.plans import ENDED, Plan, SubTask
from ba_tui.core.text.wording import one_line

NAMED = 80
"""Characters of a step's description that its agent is described with."""


@dataclass
class StepTimes:
    """When a step began and ended, in seconds since the epoch; 0 where it did not."""

    began: float = 0.0
    ended: float = 0.0

    def lasted(self, now: float) -> float | None:
        """Seconds that it took, or takes so far; None for a step that was not begun."""
        return max(0.0, (self.ended or now) - self.began) if self.began else None


@dataclass
class PlanRecord:
    """One plan as it stands. ``reason``: why it was changed last."""

    plan: Plan
    began: float
    reason: str = ""
    changed: float = 0.0
    begun: bool = False
    times: dict[str, StepTimes] = field(default_factory=dict[str, StepTimes])
    agents: dict[str, str] = field(default_factory=dict[str, str])
    """The step that an agent was started for, by the agent's name in events."""
    asks: dict[str, str] = field(default_factory=dict[str, str])
    """The step that an open question to the user belongs to, by the question's id."""

    @property
    def waiting(self) -> frozenset[str]:
        """The steps that wait for an answer of the user."""
        return frozenset(self.asks.values())

    def time_of(self, step: SubTask) -> StepTimes:
        return self.times.get(step.id) or StepTimes()


class PlanCourse:
    """Feed it events with ``apply``, which returns whether a plan changed. Newest plan last in ``plans``."""

    def __init__(self, events: Iterable[object] = ()) -> None:
        self._records: dict[str, PlanRecord] = {}
        for event in events:
            self.apply(event)

    @property
    def plans(self) -> Sequence[PlanRecord]:
        return list(self._records.values())

    @property
    def newest(self) -> PlanRecord | None:
        return self.plans[-1] if self._records else None

    def find(self, id: str) -> PlanRecord | None:
        return self._records.get(id)

    def apply(self, event: object) -> bool:
        match event:
            case PlanChanged(plan=plan, reason=reason, at=at):
                record = self._records.setdefault(plan.id, PlanRecord(plan, at))
                before = record.plan
                if plan.state == "running" and not record.begun:
                    # Until then somebody thought about it.
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

    def _time(self, record: PlanRecord, before: SubTask | None, step: SubTask, at: float) -> None:
        """A step that is tried again goes on from its first beginning; one that waits again has none."""
        times = record.times.setdefault(step.id, StepTimes())
        if step.status == "executing" and (before is None or before.status != "executing" or not times.began):
            times.began, times.ended = times.began or at, 0.0
        elif step.status == "pending":
            times.began = times.ended = 0.0
        elif step.status in ENDED and times.began and not times.ended:
            times.ended = at
