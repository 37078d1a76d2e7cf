"""The newest plan over the whole screen, live: its progress, and details of one step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.plan_folds import PlanCourse, PlanTimeline
from ba_tui.core.results import Prose
from ba_tui.core.teamwork import SubTask
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.model import CallState, InspectorValue, Whole
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.features.plans.tui.view import TICK, WAITS, PlanView
from ba_tui.plotting.plan_exports import mermaid
from ba_tui.plotting.plan_signs import STATES, at_work, can_resume, counted, lasted, step_name, words

KEYS = "Esc close · g tree or graph · Enter open step · t transcript · y copy Mermaid"
SAID: dict[str, CallState] = {"completed": "ok", "failed": "failed", "executing": "running"}
OpenAgent: TypeAlias = Callable[[str], object]
"""Shows the transcript of the agent with that id."""


class PlanScreen(ModalScreen[None]):
    """A screen that follows ``course``, the current plans, which is read a few times a second."""

    DEFAULT_CSS = """
    PlanScreen {
        background: $surface; padding: 0 1;
        & .title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & .state { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; margin-bottom: 1; }
        & .about { height: 2; margin-top: 1; text-overflow: ellipsis; }
        & .keys { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-low .state { margin-bottom: 0; }
        &.-low .about { height: 1; margin-top: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f6", "close", "Close", show=False),
        Binding("g,tab", "switch", "Tree or graph", show=False),
        Binding("y,c,ctrl+y", "copy", "Copy as Mermaid", show=False),
        Binding("t", "agent", "The agent's transcript", show=False),
    ]

    def __init__(
        self,
        course: Callable[[], PlanCourse],
        whole: Callable[[str], Whole | None] = lambda _: None,
        open_agent: OpenAgent | None = None,
        *,
        live: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self.view = PlanView()
        self._course = course
        self._whole = whole
        self._open_agent = open_agent
        self._live = live
        """Whether the session works now: else a plan that runs was interrupted."""
        self._seen: object = None

    def compose(self) -> ComposeResult:
        yield Static(classes="title", markup=False)
        yield Static(classes="state", markup=False)
        yield self.view
        yield Static(classes="about", markup=False)
        yield Static(KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        self.view.focus()
        self.set_interval(TICK, self._follow)
        self.call_after_refresh(self._follow)

    def on_resize(self) -> None:
        self.set_class(self.size.height < 20, "-low")

    def _follow(self) -> None:
        """Show changes, or the next frame of the spinner while a step runs."""
        record = self._course().newest
        if record is None:
            return
        if self._seen != (now := (record.plan, self._live(), record.waiting)):
            self._seen = now
            self.view.live = self._live()
            self.view.show(record)
            self._say_about()
        elif self.view.live and self.view.running:
            self.view.advance()
            self._say_about()
        self._say_state(record)

    def _say_state(self, record: PlanTimeline) -> None:
        plan = record.plan
        goal = words(plan.task.goal or plan.task.original_query) or "Plan"
        self.query_one(".title", Static).update(Content.styled(goal, "bold"))
        stopped = at_work(plan) and not self._live()
        state = "interrupted" if stopped else STATES[plan.state]
        parts = [state, f"{counted(plan)} done"] if plan.subtasks else ["being made"]
        failed = sum(step.status in {"failed", "blocked"} for step in plan.subtasks)
        parts += [f"{failed} failed or blocked"] if failed else []
        parts += [f"{count(len(record.waiting), 'step')} {WAITS}"] if record.waiting and self._live() else []
        parts += [f"replanned {plan.replans} times" if plan.replans > 1 else "replanned once"] if plan.replans else []
        end = time.time() if plan.state == "running" and not stopped else record.changed
        parts += [lasted(max(0.0, end - record.began))] if record.changed else []
        if stopped or (can_resume(plan) and not self._live()):
            parts.append("/plan resume continues it")
        elif record.reason:
            parts.append(words(record.reason))
        self.query_one(".state", Static).update(Content(" · ".join(parts)))

    @on(PlanView.Moved)
    def _say_about(self) -> None:
        """Describe the step at the cursor in two lines: its state, and its result or expected result."""
        step, record = self.view.step, self.view.record
        if step is None or record is None:
            return
        seconds = record.time_of(step).lasted(time.time() if self.view.live else record.changed)
        halted = step.status == "executing" and not self.view.live
        waits = step.id in record.waiting and self._live()
        state = "interrupted" if halted else WAITS if waits else step.status
        facts = [state, f"by {words(step.role)}" if step.role else ""]
        facts += [words(step.tool_name)]
        facts += [lasted(seconds)] if seconds is not None else []
        facts += [f"attempt {step.attempts}"] if step.attempts > 1 else []
        facts += [words(step.agent_id)] if step.agent_id else []
        said = step.error or step.result
        label = "" if said else "Gives: "
        second = words(said or step.expected_output or step.description)
        width = max(10, self.size.width - 4)
        lines = [
            Content(" · ".join([words(step.id), *filter(None, facts)])).truncate(width, ellipsis=True),
            Content.assemble((label, "$text-muted"), (second, "$text-error" if step.error else "")).truncate(
                width, ellipsis=True
            ),
        ]
        self.query_one(".about", Static).update(Content("\n").join(lines[1:] if self.has_class("-low") else lines))

    def action_switch(self) -> None:
        self.view.switch()

    def action_copy(self) -> None:
        """Copy the plan as Mermaid."""
        if record := self.view.record:
            self.post_message(CopyToClipboard(mermaid(record.plan)))

    def action_close(self) -> None:
        self.dismiss()

    def action_agent(self) -> None:
        """Show the transcript of the step's agent."""
        step = self.view.step
        if step is None or self._open_agent is None:
            return
        if step.agent_id:
            self._open_agent(step.agent_id)
        else:
            why = "has no agent yet" if step.status in {"pending", "executing"} else "was done without an agent"
            self.query_one(".about", Static).update(f"“{step_name(step)}” {why}.")

    @on(PlanView.Opened)
    def _opened(self, event: PlanView.Opened) -> None:
        event.stop()
        record = self.view.record
        seconds = record.time_of(event.step).lasted(time.time()) if record else None
        self.app.push_screen(InspectorScreen(step_in_full(event.step, self._whole(event.step.artifact), seconds)))  # pyright: ignore[reportUnknownMemberType] - App is generic


def step_in_full(step: SubTask, whole: Whole | None, seconds: float | None = None) -> InspectorValue:
    """Return a step for the inspector: its arguments, its fields in words, its whole stored result."""
    parts = [
        ("Does", step.description),
        ("Gives", step.expected_output),
        ("After", ", ".join(step.dependencies)),
        ("Role", step.role),
        ("Tool", step.tool_name),
        ("Critical", "When it fails, the plan is made anew." if step.critical else ""),
        ("Agent", step.agent_id),
        ("Attempts", str(step.attempts) if step.attempts > 1 else ""),
        ("Error", step.error),
        ("Result", step.result),
    ]
    text = "\n\n".join(f"{name}\n{value.strip()}" for name, value in parts if value.strip())
    state = SAID.get(step.status, "")
    title = f"{visible(step.id)} · {step.status}"
    return InspectorValue(title, step.tool_args, Prose(text), step.result, state, seconds, whole=whole)
