"""Words and signs of plans: a character for each state, and for lines. Never colour alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ba_tui.core.teamwork import ENDED_STATUSES, Plan, PlanState, SubTask, SubTaskStatus
from ba_tui.core.text.untrusted import paintable


class PlanSigns(NamedTuple):
    """``lines``: by the directions in which a line leaves the cell, the sum of 1 up, 2 right, 4 down and 8 left."""

    pending: str = "○"
    executing: str = "●"
    completed: str = "✓"
    failed: str = "✗"
    blocked: str = "⊘"
    skipped: str = "–"
    waiting: str = "?"
    branch: str = "├─ "
    last: str = "╰─ "
    rail: str = "│  "
    then: str = "↓  "
    lines: str = " │─╰││╭├─╯─┴╮┤┬┼"
    box: str = "╭─╮│╰╯"
    arrow: str = "▼"
    more: str = "…"

    def mark(self, status: SubTaskStatus) -> str:
        """Return the sign of a state."""
        signs = (self.pending, self.executing, self.completed, self.failed, self.blocked, self.skipped)
        return signs[_STATES.index(status)]


_STATES: tuple[SubTaskStatus, ...] = ("pending", "executing", "completed", "failed", "blocked", "skipped")
UNICODE = PlanSigns()
ASCII = PlanSigns(
    pending="o",
    executing="*",
    completed="+",
    failed="x",
    blocked="!",
    skipped="-",
    branch="|- ",
    last="`- ",
    rail="|  ",
    then="v  ",
    lines=" |-+||++-+-+++++",
    box="+-+|++",
    arrow="v",
    more="...",
)


def signs_for(environ: Mapping[str, str]) -> PlanSigns:
    """Return the characters that the terminal can show: ASCII wherever charts use it."""
    from ba_tui.plotting import canvas, drawing  # noqa: PLC0415 - only what is drawn needs them

    return ASCII if drawing.signs_for(environ) is canvas.ASCII else UNICODE


STATES: dict[PlanState, str] = {
    "proposed": "waits for your approval", "approved": "approved", "running": "running", "paused": "paused",
    "completed": "completed", "partial": "partly done", "rejected": "rejected", "cancelled": "interrupted",
}  # fmt: skip
"""Words for the states of a plan."""


def words(text: str) -> str:
    """Return model text as one line that is safe to paint."""
    return paintable(" ".join(text.split()), newlines=False)


def step_name(step: SubTask) -> str:
    """Return the display name of a step in one line."""
    return words(step.description) or words(step.id)


def shown_status(step: SubTask, *, live: bool) -> SubTaskStatus:
    """Return the state to paint for a step. ``live`` False: no plan is running, so an interrupted step counts as
    pending."""
    return "pending" if step.status == "executing" and not live else step.status


def done(plan: Plan) -> int:
    """Return the number of completed steps."""
    return sum(step.status == "completed" for step in plan.subtasks)


def under_way(plan: Plan) -> bool:
    """Return whether the plan is running or waits for approval."""
    return plan.state in {"proposed", "approved", "running", "paused"}


def at_work(plan: Plan) -> bool:
    """Return whether the plan is running, or was interrupted if the session is not working."""
    return plan.state in {"approved", "running", "paused"}


def can_resume(plan: Plan) -> bool:
    """Return whether a started and stopped plan has steps left."""
    begun = plan.state not in {"proposed", "rejected", "completed"}
    return begun and any(step.status not in ENDED_STATUSES for step in plan.subtasks)


def counted(plan: Plan) -> str:
    """Return the progress: ``3 of 7 steps``."""
    total = len(plan.subtasks)
    return f"{done(plan)} of {total} step{'' if total == 1 else 's'}"


def lasted(seconds: float) -> str:
    """Return a duration in short form: ``0.4 s``, ``12 s``, ``3:05``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
