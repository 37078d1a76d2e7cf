"""A plan that is carried out, as lines: for people who watch print mode, and for programs that read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ba_tui.core.events import Event, PlanChanged, SubTaskChanged
from ba_tui.core.events.plan_course import PlanCourse
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.text.wording import count
from ba_tui.plotting.plans.plan_json import as_json
from ba_tui.plotting.plans.signs import STATES, counted, lasted, step_name, words


class PlanLines:
    """Feed it events; ``said`` gives the line that one is worth, or nothing."""

    def __init__(self) -> None:
        self._course = PlanCourse()
        self._why = ""

    def said(self, event: Event) -> str:
        if not self._course.apply(event):
            return ""
        match event:
            case PlanChanged(plan=plan, reason=reason):
                return _changed(plan, self._once(words(reason)))
            case SubTaskChanged(plan=id, subtask=step):
                record = self._course.find(id)
                if record is None or step.status == "pending":
                    return ""
                ids = [each.id for each in record.plan.subtasks]
                place = f"Step {ids.index(step.id) + 1} of {len(ids)}" if step.id in ids else f"Step {words(step.id)}"
                seconds = record.time_of(step).lasted(event.at)
                took = f" after {lasted(seconds)}" if seconds is not None and step.status != "executing" else ""
                why = f" {words(step.error)}" if step.error else ""
                return f"{place} {step.status}{took}: {step_name(step)}.{why}".replace("..", ".")
            case _:
                return ""

    def _once(self, reason: str) -> str:
        """``reason``; when the line before told why, it is not told again."""
        what, _, why = reason.partition(": ")
        before, self._why = self._why, why
        return what if why and why == before else reason


def _changed(plan: Plan, reason: str) -> str:
    """What is to be told of a plan as a whole."""
    if not plan.subtasks:
        return "Planning."
    if plan.state == "proposed":
        return f"Planned {count(len(plan.subtasks), 'step')}."
    if plan.state in {"approved", "running"}:
        return f"{reason.rstrip('.')}." if reason else ""
    return ". ".join(filter(None, (f"Plan {STATES[plan.state]}, {counted(plan)} done", reason.rstrip(".")))) + "."


def plan_fields(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines of stream-json that an event about a plan is worth: their type and fields."""
    match event:
        case PlanChanged(plan=plan, reason=reason):
            yield "plan", {"plan": as_json(plan), "reason": reason}
        case SubTaskChanged(plan=id, subtask=step):
            yield "subtask", {"plan": id, "subtask": asdict(step)}
        case _:
            pass
