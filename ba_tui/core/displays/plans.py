"""A plan as it is shown: to be approved, or as it stood when a call ended."""

from __future__ import annotations

from typing import Literal

from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.values import frozen


@frozen
class PlanGraph:
    """``notes``: what the planner changed or doubts, a sentence each."""

    plan: Plan
    notes: tuple[str, ...] = ()
    type: Literal["plan"] = "plan"
