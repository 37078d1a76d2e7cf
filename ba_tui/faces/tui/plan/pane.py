"""The newest plan beside the conversation, where a window is wide: as a tree or a graph, live.

It holds the newest record alone and paints it at most a few times a second, so its cost follows the size of the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from ba_tui.core.events.plan_course import PlanRecord
from ba_tui.faces.tui.plan.painting import WAITS, PlanMode
from ba_tui.faces.tui.plan.view import PlanView
from ba_tui.plotting.plans.signs import STATES, at_work, can_resume, done

REST = 0.1
"""Seconds within which several changes are painted once."""
CLOCK = 1.0
"""Seconds between two paintings of a plan in which only times change."""
KEYS: dict[PlanMode, str] = {"tree": "F8 graph · F6 open", "graph": "F8 tree · F6 open"}


class FollowedPlan(PlanView, can_focus=False):
    """Keeps the step that is carried out in sight, without a cursor; a click opens the whole plan."""

    POINTED = False

    def show(self, record: PlanRecord) -> None:
        super().show(record)
        steps = record.plan.subtasks
        for wanted in ("executing", "pending"):
            if here := next((step.id for step in steps if step.status == wanted), ""):
                self.choose(here)
                return

    def on_click(self, event: Click) -> None:
        event.prevent_default()
        self.call_later(self.run_action, "screen.act('plan-view')")


class PlanPane(Vertical):
    """``live``: whether the session works now; else a plan that runs was interrupted."""

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
        self._record: PlanRecord | None = None
        self._waiting = False
        self._halted = False
        """Whether steps are left that nobody carries out."""

    def compose(self) -> ComposeResult:
        yield Static(classes="plan-head", markup=False)
        yield self.view
        yield Static(KEYS[self.view.mode], classes="plan-keys", markup=False)

    def on_mount(self) -> None:
        self.set_interval(CLOCK, self._tick)
        self.call_after_refresh(self._paint)

    def show(self, record: PlanRecord) -> None:
        """Take the newest plan, or newer states of it."""
        self._record = record
        if not self._waiting and self.is_mounted:
            self._waiting = True
            self.set_timer(REST, self._paint)

    def switch(self) -> None:
        """The graph in place of the tree, or the other way round."""
        self.view.switch()
        self._say_keys()

    def _tick(self) -> None:
        """The times of steps that are carried out; once more when the session has stopped."""
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
