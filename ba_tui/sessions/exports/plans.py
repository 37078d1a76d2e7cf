"""The plans of a session: the newest one as Mermaid or JSON, and each as a part of a document. Secrets are taken out.

Pure: events in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event
from ba_tui.core.events.plan_course import PlanCourse
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.text.untrusted import paintable
from ba_tui.plotting.plans.mermaid import mermaid
from ba_tui.plotting.plans.plan_json import as_json, plan_of
from ba_tui.plotting.plans.signs import STATES, counted, words
from ba_tui.plotting.plans.tree import tree_text
from ba_tui.sessions.foreign import escaped, without_secrets
from ba_tui.sessions.timeline import Timeline, current_events, follow

Hide = Callable[[str], str]


def newest_plan(events: Iterable[Event], format: str, hide: Hide) -> str:
    """The newest plan that stands, in the format ``mermaid`` or ``plan-json``. Raises UsageError when there is none."""
    timeline = Timeline()
    for _ in follow(events, timeline):
        pass
    record = PlanCourse(current_events(events, timeline)).newest
    if record is None or not record.plan.subtasks:
        raise UsageError("This session has no plan.", "ba plan list shows which sessions have one.")
    plan = shown(record.plan, hide)
    if format == "mermaid":
        return mermaid(plan)
    return escaped(json.dumps(as_json(plan), ensure_ascii=False, indent=2, default=str)) + "\n"


def shown(plan: Plan, hide: Hide) -> Plan:
    """``plan`` without secrets."""
    data: Any = without_secrets(json.loads(json.dumps(as_json(plan), default=str)), hide)
    # Ids and states join its parts: they are no words.
    ids = {"id": plan.id, "state": plan.state, "schema_version": 1}
    steps = [
        {**new, "id": old.id, "status": old.status, "dependencies": old.dependencies, "optional": old.optional}
        for new, old in zip(data["subtasks"], plan.subtasks, strict=True)
    ]
    return plan_of({**data, **ids, "subtasks": steps})


def plan_lines(plan: Plan, hide: Hide) -> list[str]:
    """A plan in a document: what it is for and how it stands, then its steps as a tree, and why some failed."""
    plan = shown(plan, hide)
    lines = [f"{STATES[plan.state]}, {counted(plan)} done", *tree_text(plan)]
    lines += [f"{words(step.id)}: {words(step.error)}" for step in plan.subtasks if step.error]
    return [paintable(line, newlines=False) for line in lines]


def plan_title(plan: Plan, hide: Hide) -> str:
    """``Plan: `` and its goal."""
    return f"Plan: {words(hide(plan.task.goal or plan.task.original_query))}".rstrip(": ")
