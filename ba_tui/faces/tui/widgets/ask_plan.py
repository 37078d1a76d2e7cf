"""A question about a plan: which plan it is, and what a yes means once the person changed it. Pure."""

from __future__ import annotations

from dataclasses import field, replace

from ba_tui.core.displays.plans import PlanGraph
from ba_tui.core.questions import Question
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.values import frozen
from ba_tui.faces.tui.widgets.ask_edit import Chosen


@frozen
class PlanEdit:
    """The plan as it was changed, and texts that could not be taken yet: of the whole under the empty name, of a step
    under its id."""

    plan: Plan
    texts: dict[str, str] = field(default_factory=dict[str, str])


def plan_in(question: Question) -> Plan | None:
    """The plan that is asked about; None for a plan in prose, and for every other question."""
    shown = question.preview
    return shown.plan if question.kind == "plan" and isinstance(shown, PlanGraph) else None


def choose_plan(question: Question, plan: Plan) -> Chosen:
    """The question about ``plan``, whose JSON is what a yes carries; as it came when nothing differs."""
    from ba_tui.plotting.plans.changing import differences  # noqa: PLC0415 - only once a plan was edited
    from ba_tui.plotting.plans.plan_json import as_json  # noqa: PLC0415 - see above

    first = plan_in(question)
    said = differences(first, plan) if first else ""
    if not said or not isinstance(question.preview, PlanGraph):
        return Chosen(frozenset((0,)), 1, question)
    about = replace(question, args=as_json(plan), preview=replace(question.preview, plan=plan))
    return Chosen(frozenset(), 1, about, f"You changed the plan ({said}): yes carries out yours")
