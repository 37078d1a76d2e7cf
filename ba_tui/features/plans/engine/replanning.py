"""When a plan is made anew, and what of it stays: finished work is kept as it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.filling import refused

TRIES = 3
"""Failures of one step after which the plan is made anew."""
REPLANS = 3
_NUMBER = regex(r"\d+")


@frozen
class Failure:
    """One try of a step that failed. ``hopeless``: trying again would give the same. ``passing``: it will probably go
    away by itself, such as a lost connection. ``blocked``: something outside the plan stands in the way, such as a
    person who said no. ``revise``: the agent says that the plan must be changed."""

    step: SubTask
    hopeless: bool = False
    passing: bool = False
    blocked: bool = False
    revise: bool = False


class Failures:
    """The failures of a plan in the order in which they came; tells when it has to be made anew."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        """Why the newest try failed; empty when it succeeded."""

    def succeeded(self) -> None:
        self.last = ""

    def reason(self, failure: Failure) -> str:
        """Note ``failure``; why the plan must be made anew, or empty when it goes on."""
        step, before = failure.step, self.last
        name, error = f"Step {step.id}", one_line(step.error, 300)
        if failure.revise:
            return f"{name} asks for another plan: {error}"
        if step.critical and not failure.passing:
            return f"{name} is critical and failed: {error}"
        if failure.blocked:
            return ""
        self.last = _kind(step.error)
        if step.attempts >= TRIES:
            return f"{name} failed {step.attempts} times: {error}"
        if before and before != self.last:
            return f"Two different failures in a row, the last one of step {step.id}: {error}"
        if failure.hopeless:
            return f"{name} failed, and trying it again can't help: {error}"
        return ""


def _kind(error: str) -> str:
    """What two failures have in common that differ in numbers only."""
    return _NUMBER.sub("#", one_line(error, 200)).casefold()


def merged(old: Plan, new: Plan) -> Plan:
    """``new`` in the place of ``old``: completed steps stay byte for byte, all others begin anew.

    Raises:
        UsageError: the new plan can't be carried out.
    """
    done = {step.id: step for step in old.subtasks if step.status == "completed"}
    named = {step.id for step in new.subtasks}
    kept = [step for step in done.values() if step.id not in named]
    steps = (*kept, *(done.get(step.id) or fresh(step) for step in new.subtasks))
    plan = replace(new, id=old.id, subtasks=steps, state="running", replans=old.replans + 1)
    plan = replace(plan, task=replace(plan.task, id=old.task.id, original_query=old.task.original_query))
    if wrong := refused(plan):
        raise UsageError(f"The new plan can't be carried out: {'; '.join(wrong[:3])}.")
    return plan


def fresh(step: SubTask) -> SubTask:
    """``step`` as if it was never begun."""
    return replace(step, status="pending", result="", value=None, artifact="", error="", attempts=0, agent_id="")


def missing(steps: Sequence[SubTask]) -> list[SubTask]:
    """Those that did not come to their end."""
    return [step for step in steps if step.status != "completed"]
