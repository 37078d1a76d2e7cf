"""A plan as a scrolling view with a cursor on one step. What its lines say is made in painting."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from ba_tui.core.events.plan_course import PlanRecord
from ba_tui.core.teamwork.plans import SubTask
from ba_tui.faces.tui.plan.painting import Look, PlanLines, PlanMode
from ba_tui.faces.tui.widgets.line_view import LineView
from ba_tui.plotting.plans.signs import signs_for

ROLES = ("pending", "executing", "completed", "failed", "blocked", "skipped", "line", "dim", "chosen")
TICK = 0.25
"""Seconds between two frames while a step is carried out."""


class PlanView(LineView, can_focus=True):
    """``show`` a record, as often as it changes; the cursor stays on its step."""

    DEFAULT_CSS = """
    PlanView {
        height: 1fr;
        overflow-x: auto;
        & > .plan--executing { color: $text-accent; text-style: bold; }
        & > .plan--completed { color: $text-success; }
        & > .plan--failed { color: $text-error; text-style: bold; }
        & > .plan--blocked { color: $text-warning; }
        & > .plan--skipped, & > .plan--line, & > .plan--dim { color: $text-muted; }
        & > .plan--chosen { background: $primary 25%; text-style: bold; }
        &:ansi > .plan--chosen { background: transparent; text-style: bold reverse; }
    }
    """
    POINTED: ClassVar[bool] = True
    """Whether the step with the cursor stands out."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"plan--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "go(0, -1)", "Step above", show=False),
        Binding("down,j", "go(0, 1)", "Step below", show=False),
        Binding("left,h", "go(-1, 0)", "Step on the left", show=False),
        Binding("right,l", "go(1, 0)", "Step on the right", show=False),
        Binding("home", "end(False)", "First step", show=False),
        Binding("end", "end(True)", "Last step", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("enter", "open", "Open the step", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another step."""

    class Opened(Message):
        """The person wants to see all of a step."""

        def __init__(self, step: SubTask) -> None:
            super().__init__()
            self.step = step

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.record: PlanRecord | None = None
        self.mode: PlanMode = "tree"
        self.chosen = ""
        self.live = True
        """Whether the session works: else times of steps that run stand still at the newest change."""
        self._clock = clock
        self._signs = signs_for(os.environ)
        self._lines: PlanLines | None = None
        self._frame = 0
        self._styles: dict[tuple[str, bool], Style] = {}

    @property
    def step(self) -> SubTask | None:
        """The one with the cursor."""
        return self.record.plan.find(self.chosen) if self.record else None

    @property
    def running(self) -> bool:
        """Whether a step is carried out, as far as is known."""
        return bool(self.record) and any(step.status == "executing" for step in self.record.plan.subtasks)

    def show(self, record: PlanRecord) -> None:
        """Show ``record``, or the same one with newer states."""
        self.record = record
        if self._lines is None or not self._lines.update(record):
            self._lay_out()
        if record.plan.find(self.chosen) is None:
            running = [step.id for step in record.plan.subtasks if step.status == "executing"]
            self.choose(next(iter([*running, *(self._lines.order if self._lines else ())]), ""))
        self.refresh()

    def choose(self, id: str) -> None:
        """Put the cursor on a step, in sight."""
        if id and id != self.chosen:
            self.chosen = id
            self._reveal()
            self.post_message(self.Moved())
            self.refresh()

    def switch(self) -> None:
        """The tree in place of the graph, or the other way round."""
        self.mode = "graph" if self.mode == "tree" else "tree"
        self._lay_out()
        self.scroll_to(0, 0, animate=False, force=True)
        self._reveal()
        self.refresh()

    def advance(self) -> None:
        """The next frame of the spinner."""
        self._frame += 1
        self.refresh()

    def _lay_out(self) -> None:
        # As if the scroll bar stood there: whether it does follows from the layout.
        width = self.size.width - 1
        if self.record is None or width < 1:
            # Lines of an older plan must not outlive it.
            self._lines = None
            return
        self._lines = PlanLines(self.record, self.mode, width, self._signs)
        self.virtual_size = Size(*self._lines.size)

    def on_resize(self, _event: events.Resize) -> None:
        self._lay_out()
        if self.record is not None:
            self.show(self.record)
        self._reveal()

    def _reveal(self) -> None:
        if self._lines is None or self.record is None or self.record.plan.find(self.chosen) is None:
            return
        x, y, width, height = self._lines.place(self.chosen)
        self.scroll_to_region(Region(x, y, width, height), animate=False, force=True)

    def action_go(self, across: int, down: int) -> None:
        if self._lines and self.chosen:
            self.choose(self._lines.beside(self.chosen, across, down))

    def action_end(self, last: bool) -> None:
        if self._lines and self._lines.order:
            self.choose(self._lines.order[-1 if last else 0])

    def action_page(self, down: int) -> None:
        """A screen of lines; the cursor goes with it."""
        if self._lines is None or not self.chosen:
            return
        order = self._lines.order
        _, y, _, _ = self._lines.place(self.chosen)
        wanted = y + down * max(1, self.scrollable_content_region.height - 1)
        self.choose(min(order, key=lambda id: abs((self._lines.place(id)[1] if self._lines else 0) - wanted)))

    def action_open(self) -> None:
        if step := self.step:
            self.post_message(self.Opened(step))

    def on_click(self, event: events.Click) -> None:
        if self._lines is None:
            return
        offset = self.scroll_offset
        if id := self._lines.at(event.x + int(offset.x), event.y + int(offset.y)):
            again = id == self.chosen
            self.choose(id)
            if again:
                self.action_open()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        ground = self._style("text", chosen=False)
        width = self.size.width
        if self._lines is None:
            return Strip.blank(width, ground)
        x, top = self.scroll_offset
        runs = self._lines.line(int(top) + y, self._look())
        strip = Strip([Segment(run.text, self._style(run.role, chosen=run.chosen)) for run in runs])
        return strip.crop(int(x), int(x) + width).adjust_cell_length(width, ground)

    def _look(self) -> Look:
        now = self.record.changed if self.record and not self.live else self._clock()
        return Look(self.chosen if self.POINTED else "", now, self._frame, self.live)

    def _style(self, role: str, *, chosen: bool) -> Style:
        if (role, chosen) not in self._styles:
            plain = role in {"text", "pending"}
            style = self.rich_style if plain else self.get_component_rich_style(f"plan--{role}")
            if chosen:
                ground = self.get_component_rich_style("plan--chosen")
                style += Style(bgcolor=ground.bgcolor, bold=True, reverse=ground.reverse)
            self._styles[role, chosen] = style
        return self._styles[role, chosen]
