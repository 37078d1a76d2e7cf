"""How the plans of a session went: a fold over its events, the same live and replayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ba_tui.core.events.teamwork import PlanChanged, SubTaskChanged
from ba_tui.core.teamwork.plans import ENDED, Plan, SubTask


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
    times: dict[str, StepTimes] = field(default_factory=dict[str, StepTimes])

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
                record.plan, record.reason, record.changed = plan, reason, at
                for step in plan.subtasks:
                    self._time(record, before.find(step.id), step, at)
            case SubTaskChanged(plan=id, subtask=step, at=at) if id in self._records:
                record = self._records[id]
                self._time(record, record.plan.find(step.id), step, at)
                record.plan, record.changed = record.plan.updated(step), at
            case _:
                return False
        return True

    def _time(self, record: PlanRecord, before: SubTask | None, step: SubTask, at: float) -> None:
        """A step that is tried again goes on from its first beginning; one that waits again has none."""
        times = record.times.setdefault(step.id, StepTimes())
        if step.status == "executing" and (before is None or before.status != "executing" or not times.began):
            times.began, times.ended = times.began or at, 0.0
        elif step.status == "pending":
            times.began = times.ended = 0.0
        elif step.status in ENDED and times.began and not times.ended:
            times.ended = at
