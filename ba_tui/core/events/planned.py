"""The plans of a session as its events tell them: the journal is their state. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ba_tui.core.events.teamwork import PlanChanged, SubTaskChanged
from ba_tui.core.teamwork.plans import Plan, SubTask


class PlanRecord:
    """One plan as it stands. ``reason``: why it was changed as a whole last. ``failure``: why the newest try of a step
    failed; empty when it did not."""

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
    """Feed it every event of a session. An event costs the same however many steps a plan has."""

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
        """The record of the plan that was begun last."""
        return next(reversed(self._records.values()), None)
