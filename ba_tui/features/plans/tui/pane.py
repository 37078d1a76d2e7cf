"""The newest plan in the side panel of a wide window: as a tree or a graph, live.

It keeps only the newest record and repaints at most a few times a second, so its cost depends on the size of the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from ba_tui.core.plan_folds import PlanTimeline
from ba_tui.faces.tui.widgets.main_area import SidePlan
from ba_tui.features.plans.tui.view import WAITS, PlanMode, PlanView
from ba_tui.plotting.plan_signs import STATES, at_work, can_resume, done

REST = 0.1
"""Seconds within which several changes are painted once."""
CLOCK = 1.0
"""Seconds between two paintings of a plan in which only times change."""
KEYS: dict[PlanMode, str] = {"tree": "F8 graph · F6 open", "graph": "F8 tree · F6 open"}


class FollowedPlan(PlanView, can_focus=False):
    """A plan without a cursor that keeps the running step visible; a click opens the whole plan."""

    POINTED = False

    def show(self, record: PlanTimeline) -> None:
        super().show(record)
        steps = record.plan.subtasks
        for wanted in ("executing", "pending"):
            if here := next((step.id for step in steps if step.status == wanted), ""):
                self.choose(here)
                return

    def on_click(self, event: Click) -> None:
        event.prevent_default()
        self.call_later(self.run_action, "screen.act('plan-view')")


class PlanPane(SidePlan, Vertical):
    """The plan pane. ``live``: whether the session works now; otherwise a running plan was interrupted."""

    DEFAULT_CSS = """
    PlanPane {
        height: 1fr;
        min-height: 8;
        margin-top: 1;
        & .plan-head, & .plan-keys { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & .plan-keys { color: $text-muted; }
    }
    """

    def __init__(self, live: Callable[[], bool], *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id="side-plan")
        self.view = FollowedPlan(clock=clock)
        self._live = live
        self._record: PlanTimeline | None = None
        self._waiting = False
        self._halted = False
        """Whether steps are left over that are not being carried out."""

    def compose(self) -> ComposeResult:
        yield Static(classes="plan-head", markup=False)
        yield self.view
        yield Static(KEYS[self.view.mode], classes="plan-keys", markup=False)

    def on_mount(self) -> None:
        self.set_interval(CLOCK, self._tick)
        self.call_after_refresh(self._paint)

    def show(self, record: PlanTimeline) -> None:
        """Show the newest plan, or newer states of it."""
        self._record = record
        if not self._waiting and self.is_mounted:
            self._waiting = True
            self.set_timer(REST, self._paint)

    def switch(self) -> None:
        """Switch between tree and graph."""
        self.view.switch()
        self._say_keys()

    def _tick(self) -> None:
        """Update the times of running steps; once more after the session has stopped."""
        if self.view.running and self.is_on_screen:
            self.view.live = self._live()
            self.view.advance()
            if not self.view.live:
                self._paint()

    def _paint(self) -> None:
        self._waiting = False
        record = self._record
        if record is None or not self.is_mounted:
            return
        plan = record.plan
        self.view.live = self._live()
        halted = at_work(plan) and not self.view.live
        state = "interrupted" if halted else "" if plan.state == "running" else STATES[plan.state]
        state = WAITS if record.waiting and self.view.live else state
        said = f"{done(plan)} of {len(plan.subtasks)} done{f' · {state}' if state else ''}"
        self.query_one(".plan-head", Static).update(Content.assemble(("Plan", "bold"), (f"  {said}", "$text-muted")))
        self._halted = can_resume(plan) and not self.view.live
        self._say_keys()
        self.view.show(record)

    def _say_keys(self) -> None:
        more = " · /plan resume" if self._halted else ""
        self.query_one(".plan-keys", Static).update(f"{KEYS[self.view.mode]}{more}")
