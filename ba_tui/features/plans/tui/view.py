"""A plan as a scrolling view with a cursor on one step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Static

from ba_tui.core.plan_folds import PlanTimeline
from ba_tui.core.teamwork import SubTask
from ba_tui.core.text.cells import clip
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.rows import LineView
from ba_tui.faces.tui.widgets.main_area import SidePlan
from ba_tui.plotting.plan_graph import HEIGHT, PlanDrawing, TreeLine, box_line, drawing, tree_lines
from ba_tui.plotting.plan_signs import (
    ASCII,
    STATES,
    PlanSigns,
    at_work,
    can_resume,
    done,
    lasted,
    shown_status,
    signs_for,
    step_name,
    words,
)

PlanMode: TypeAlias = Literal["tree", "graph"]
LEAST_TEXT = 24
"""Minimum columns for the description of a step."""
WAITS = "waiting for you"
SPINNERS = {True: "|/-\\", False: "◐◓◑◒"}


class PlanText(NamedTuple):
    """``role``: the state of a step, ``line``, ``dim`` or ``text``; ``chosen``: it belongs to the step
    at the cursor.
    """

    text: str
    role: str = "text"
    chosen: bool = False


@frozen
class PlanLook:
    """State that changes between paintings: the step at the cursor, the time, the frame of the spinner."""

    chosen: str
    now: float
    frame: int
    live: bool = True
    """False if no step is executed now, so no spinner turns."""


class PlanLines:
    """A plan laid out for a width. ``update`` takes newer states and returns whether the layout still fits."""

    def __init__(self, record: PlanTimeline, mode: PlanMode, width: int, signs: PlanSigns) -> None:
        self._record = record
        self._mode = mode
        self._width = width
        self._signs = signs
        self._shape = _shape(record)
        self._steps = {step.id: step for step in record.plan.subtasks}
        self._tree: Sequence[TreeLine] = tree_lines(record.plan, signs) if mode == "tree" else ()
        self._graph: PlanDrawing = drawing(record.plan, width, signs) if mode == "graph" else PlanDrawing({}, {}, 0, 0)

    @property
    def size(self) -> tuple[int, int]:
        """Return columns and lines."""
        if self._mode == "tree":
            return self._width, len(self._tree)
        return max(self._width, self._graph.width), self._graph.height

    @property
    def order(self) -> Sequence[str]:
        """Return the steps from top to bottom."""
        if self._mode == "tree":
            return [line.step.id for line in self._tree]
        return [box.id for box in sorted(self._graph.boxes.values(), key=lambda box: (box.y, box.x))]

    def update(self, record: PlanTimeline) -> bool:
        """Apply the states of ``record``; return False if steps or their dependencies have changed."""
        if _shape(record) != self._shape:
            return False
        self._record = record
        self._steps = {step.id: step for step in record.plan.subtasks}
        return True

    def place(self, id: str) -> tuple[int, int, int, int]:
        """Return column, line, columns and lines of a step."""
        if self._mode == "tree":
            return 0, self.order.index(id), 1, 1
        box = self._graph.boxes[id]
        return box.x, box.y, box.width, HEIGHT

    def at(self, x: int, y: int) -> str:
        """Return the step at a place; "" if there is none."""
        if self._mode == "tree":
            return self._tree[y].step.id if 0 <= y < len(self._tree) else ""
        return next((box.id for box in self._graph.row(y) if box.x <= x < box.x + box.width), "")

    def beside(self, id: str, across: int, down: int) -> str:
        """Return the step that a key leads to from ``id``."""
        if self._mode == "graph":
            return self._graph.next(id, across, down)
        order = self.order
        return order[max(0, min(len(order) - 1, order.index(id) + down))]

    def line(self, y: int, look: PlanLook) -> list[PlanText]:
        """Return line ``y``."""
        if self._mode == "tree":
            return self._tree_line(self._tree[y], look) if 0 <= y < len(self._tree) else []
        return self._graph_line(y, look)

    def _mark(self, step: SubTask, look: PlanLook) -> str:
        status = shown_status(step, live=look.live)
        if look.live and step.id in self._record.waiting:
            return self._signs.waiting
        if status != "executing":
            return self._signs.mark(status)
        frames = SPINNERS[self._signs is ASCII]
        return frames[look.frame % len(frames)]

    def _tree_line(self, line: TreeLine, look: PlanLook) -> list[PlanText]:
        step = self._steps[line.step.id]
        chosen, status = step.id == look.chosen, shown_status(step, live=look.live)
        most = max(0, self._width - LEAST_TEXT)
        rails = line.rails if len(line.rails) <= most else self._signs.more + line.rails[-max(0, most - 3) :]
        head = f"{self._mark(step, look)} "
        facts = self._facts(step, look)
        room = self._width - cell_len(rails) - len(head) - (cell_len(facts) + 2 if facts else 0)
        text = clip(step_name(step), room, self._signs.more)
        runs = [PlanText(rails, "line"), PlanText(head, status, chosen), PlanText(text, status, chosen)]
        left = room - cell_len(text)
        said = words(step.error if step.status in {"failed", "blocked", "skipped"} else step.result)
        if look.live and step.id in self._record.waiting:
            said = WAITS
        also = f"also after {', '.join(map(words, line.also))}" if line.also else ""
        extra = said or also
        if extra and left >= LEAST_TEXT // 2:
            extra = f"  {clip(extra, left - 2, self._signs.more)}"
            runs.append(PlanText(extra, "dim", chosen))
            left -= cell_len(extra)
        runs.append(PlanText(" " * max(0, left), "dim", chosen))
        return [*runs, PlanText(f"  {facts}", "dim", chosen)] if facts else runs

    def _facts(self, step: SubTask, look: PlanLook) -> str:
        """Return agent and duration, for the right edge."""
        seconds = self._record.time_of(step).lasted(look.now)
        who = words(step.role or step.tool_name)
        time = lasted(seconds) if seconds is not None else ""
        if self._width < 2 * LEAST_TEXT:
            return time
        return f"{set_cell_size(who, 12) if cell_len(who) > 12 else who.rjust(12)} {time:>6}".rstrip()

    def _graph_line(self, y: int, look: PlanLook) -> list[PlanText]:
        parts: list[tuple[int, PlanText]] = [
            (x, PlanText(sign, "line")) for x, sign in self._graph.lines.get(y, {}).items()
        ]
        for box in self._graph.row(y):
            step = self._steps[box.id]
            text = box_line(step, box, y - box.y, self._signs, self._mark(step, look))
            parts.append((box.x, PlanText(text, shown_status(step, live=look.live), step.id == look.chosen)))
        runs: list[PlanText] = []
        column = 0
        for x, run in sorted(parts, key=lambda part: part[0]):
            if x > column:
                runs.append(PlanText(" " * (x - column)))
            runs.append(run)
            column = max(column, x) + cell_len(run.text)
        return runs


def _shape(record: PlanTimeline) -> object:
    """Return the part of a plan that determines its layout."""
    return [(step.id, step.description, step.dependencies) for step in record.plan.subtasks]


ROLES = ("pending", "executing", "completed", "failed", "blocked", "skipped", "line", "dim", "chosen")
TICK = 0.25
"""Seconds between two frames while a step is executed."""


class PlanView(LineView, can_focus=True):
    """Shows a plan record; ``show`` may be called on every change, and the cursor stays on its step."""

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
    """Whether the step at the cursor is highlighted."""
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
        """The cursor moved to another step."""

    class Opened(Message):
        """The user opened a step."""

        def __init__(self, step: SubTask) -> None:
            super().__init__()
            self.step = step

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.record: PlanTimeline | None = None
        self.mode: PlanMode = "tree"
        self.chosen = ""
        self.live = True
        """Whether the session works; otherwise times of running steps end at the newest change."""
        self._clock = clock
        self._signs = signs_for(os.environ)
        self._lines: PlanLines | None = None
        self._frame = 0
        self._styles: dict[tuple[str, bool], Style] = {}

    @property
    def step(self) -> SubTask | None:
        """Return the step at the cursor."""
        return self.record.plan.find(self.chosen) if self.record else None

    @property
    def running(self) -> bool:
        """Return whether a step is being executed, as far as known."""
        return bool(self.record) and any(step.status == "executing" for step in self.record.plan.subtasks)

    def show(self, record: PlanTimeline) -> None:
        """Show ``record``, or the same one with newer states."""
        self.record = record
        if self._lines is None or not self._lines.update(record):
            self._lay_out()
        if record.plan.find(self.chosen) is None:
            running = [step.id for step in record.plan.subtasks if step.status == "executing"]
            self.choose(next(iter([*running, *(self._lines.order if self._lines else ())]), ""))
        self.refresh()

    def choose(self, id: str) -> None:
        """Move the cursor to a step and scroll it into view."""
        if id and id != self.chosen:
            self.chosen = id
            self._reveal()
            self.post_message(self.Moved())
            self.refresh()

    def switch(self) -> None:
        """Switch between tree and graph."""
        self.mode = "graph" if self.mode == "tree" else "tree"
        self._lay_out()
        self.scroll_to(0, 0, animate=False, force=True)
        self._reveal()
        self.refresh()

    def advance(self) -> None:
        """Show the next frame of the spinner."""
        self._frame += 1
        self.refresh()

    def _lay_out(self) -> None:
        # Reserve the scroll bar's column: whether it is shown depends on the layout.
        width = self.size.width - 1
        if self.record is None or width < 1:
            # Cached lines of an older plan must be dropped.
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
        """Scroll by a screen; the cursor moves with it."""
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

    def _look(self) -> PlanLook:
        now = self.record.changed if self.record and not self.live else self._clock()
        return PlanLook(self.chosen if self.POINTED else "", now, self._frame, self.live)

    def _style(self, role: str, *, chosen: bool) -> Style:
        if (role, chosen) not in self._styles:
            plain = role in {"text", "pending"}
            style = self.rich_style if plain else self.get_component_rich_style(f"plan--{role}")
            if chosen:
                ground = self.get_component_rich_style("plan--chosen")
                style += Style(bgcolor=ground.bgcolor, bold=True, reverse=ground.reverse)
            self._styles[role, chosen] = style
        return self._styles[role, chosen]


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
