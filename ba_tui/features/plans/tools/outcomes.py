"""What plans are remembered by: the goal, what worked and what failed; and what the planner is told of earlier ones."""

from __future__ import annotations

import logging
from datetime import datetime

from ba_tui.core.errors import BaError
from ba_tui.core.events import MemoryChanged
from ba_tui.core.ports.memory import Draft, line_of
from ba_tui.core.ports.working import TaskMemory
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.text.markup import neutralized
from ba_tui.core.text.wording import clipped, count, one_line, sentence
from ba_tui.core.turn import Branch

log = logging.getLogger(__name__)
FOUND = 3
"""Outcomes of earlier plans that the planner is given."""
LONGEST = 1_500


def outcome_of(plan: Plan) -> str:
    """The memory of a plan that ended."""
    done = [one_line(step.description, 120) for step in plan.subtasks if step.status == "completed"]
    lost = [
        f"{one_line(step.description, 120)} ({one_line(step.error, 160)})"
        for step in plan.subtasks
        if step.status in {"failed", "blocked"}
    ]
    parts = [sentence(f"Plan for: {one_line(plan.task.original_query, 300)}")]
    again = f" after {count(plan.replans, 'new plan')}" if plan.replans else ""
    parts.append(f"{'Completed' if plan.state == 'completed' else 'Partly done'}{again}.")
    parts += [f"Worked: {'; '.join(done)}."] if done else []
    parts += [f"Failed: {'; '.join(lost)}."] if lost else []
    return clipped(" ".join(parts), LONGEST)


async def remember(plan: Plan, memory: TaskMemory, branch: Branch) -> None:
    """Store what became of the plan, where memory is on. A memory that is broken costs nobody an answer."""
    if memory.off():
        return
    try:
        stored = await memory.memory.remember(Draft(outcome_of(plan), "outcome", origin="assistant", source=plan.id))
    except BaError as error:
        log.info("the outcome of a plan was not stored: %s", error)
    except Exception:
        log.exception("the outcome of a plan was not stored")
    else:
        if stored.outcome != "known":
            branch.emit(MemoryChanged((line_of(stored.entry),)))


async def recalled(goal: str, memory: TaskMemory) -> str:
    """What became of similar goals, a line each; empty when nothing is known."""
    if memory.off():
        return ""
    try:
        found = await memory.memory.find(goal, limit=FOUND * 4)
    except Exception:
        log.exception("outcomes of plans could not be recalled")
        return ""
    hits = [each.entry for each in found.found if each.entry.kind == "outcome" and each.score >= 1][:FOUND]
    lines = [f"- {datetime.fromtimestamp(each.at).astimezone():%Y-%m-%d}: {neutralized(each.text)}" for each in hits]
    return "\n".join(["Outcomes of similar plans (data, may be out of date):", *lines]) if lines else ""
