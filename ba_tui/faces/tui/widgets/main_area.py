"""The area around the conversation: side panel, inspector and todo strip, each if there is room. Before the first
prompt the start page replaces the conversation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ba_tui.core.events import Event, Rewound, ToolFinished
from ba_tui.core.ledger import Account, Ledger
from ba_tui.core.plan_folds import PlanCourse, PlanTimeline
from ba_tui.core.results import Todo
from ba_tui.core.teamwork import Plan, SubTaskStatus
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.widgets.notices import REST
from ba_tui.faces.tui.widgets.start_page import StartPage
from ba_tui.plotting.plan_signs import UNICODE, done, step_name, under_way

if TYPE_CHECKING:
    from ba_tui.faces.tui.inspector.model import InspectorValue
    from ba_tui.faces.tui.inspector.pane import Inspector


# The todo list. Colour is never the only sign of a state.

MARKS = {"completed": ("✓", "$success"), "in_progress": ("▸", "$accent"), "pending": ("○", "$text-muted")}
BROKEN = ("✗", "$error")

_LOOKS: dict[SubTaskStatus, tuple[str, str]] = {
    "pending": ("$text-muted", "$text-muted"),
    "executing": ("$accent", "$foreground"),
    "completed": ("$success", "$text-muted"),
    "failed": ("$error", "$text-error"),
    "blocked": ("$warning", "$text-warning"),
    "skipped": ("$text-muted", "$text-muted"),
}
"""Colours of a step's mark and of its words."""
CURRENT = ("executing", "in_progress", "pending")
"""The first of these states that an entry has makes it the current one."""
LEAST_ROWS = 3
"""Rows that the todos need below a plan."""


class TodoList(Static):
    class Changed(Message):
        """The list has become empty, or got its first entry."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.items: tuple[Todo, ...] = ()
        self.plan: Plan | None = None
        self._room = 0
        self._drawn: tuple[tuple[Todo, ...], Plan | None, int, int] | None = None

    def on_resize(self) -> None:
        self._draw()

    @property
    def filled(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.items or self.plan)

    def reset(self) -> None:
        self._take((), None)

    def show_plan(self, plan: Plan | None) -> None:
        """Show the newest plan; None if it is shown elsewhere."""
        self._take(self.items, plan)

    def apply(self, event: Event) -> None:
        match event:
            case ToolFinished(agent="main", result=result) if result.changes and result.changes.todos is not None:
                self._take(result.changes.todos, self.plan)
            case Rewound(agent="main", turns=int(), state=state):
                self._take(state.todos or (), self.plan)
            case _:
                pass

    def _take(self, items: tuple[Todo, ...], plan: Plan | None) -> None:
        before = self.filled
        self.items, self.plan = items, plan
        self._draw()
        if before != self.filled:
            self.post_message(self.Changed())

    def fit(self, room: int) -> None:
        """Take ``room`` rows at most."""
        self._room = max(3, room)
        self._draw()

    def _draw(self) -> None:
        wanted = (self.items, self.plan, self.size.width, self._room)
        if wanted != self._drawn:
            self._drawn = wanted
            self.update(list_lines(*wanted))


def list_lines(items: tuple[Todo, ...], plan: Plan | None, width: int = 0, room: int = 0) -> Content:
    """Return the running plan, then the todos if there is room for both; after its end, the todos alone."""
    if plan is None:
        return todo_lines(items, width, room)
    if items and not under_way(plan):
        return todo_lines(items, width, room)
    lines = plan_lines(plan, width, room)
    rows = len(lines.plain.split("\n"))
    if not items or (room and room - rows < LEAST_ROWS):
        return lines
    return Content("\n").join([lines, Content(""), todo_lines(items, width, room - rows - 1 if room else 0)])


def plan_lines(plan: Plan, width: int = 0, room: int = 0) -> Content:
    """Return a line for each step in order; if ``room`` is too small, those around the running one."""
    said = f"{done(plan)} of {len(plan.subtasks)} done" if plan.subtasks else "being made"
    head = Content.assemble(("Plan", "bold"), (f"  {said}", "$text-muted"))
    entries = [
        _marked(UNICODE.mark(step.status), *_LOOKS[step.status], step_name(step), width) for step in plan.subtasks
    ]
    return _listed(head, entries, [step.status for step in plan.subtasks], room)


def todo_lines(items: tuple[Todo, ...], width: int = 0, room: int = 0) -> Content:
    """Return lines for each item, folded to ``width`` if there is one; if ``room`` is too small, those around the
    current item.
    """
    if not items:
        return Content.styled("No todos.", "$text-muted")
    ended = sum(item.done for item in items)
    head = Content.assemble(("Todos", "bold"), (f"  {ended} of {len(items)} done", "$text-muted"))
    entries = [_entry(item, width) for item in items]
    return _listed(head, entries, [item.status for item in items], room)


def _listed(head: Content, entries: Sequence[list[Content]], statuses: Sequence[str], room: int) -> Content:
    """Return ``head`` with all ``entries``; if ``room`` is too small, with those around the current one."""
    rows = [row for entry in entries for row in entry]
    if room and len(rows) >= room:
        current = [at for status in CURRENT for at, each in enumerate(statuses) if each == status]
        rows = _around(entries, next(iter(current), 0), room - 2)
    return Content("\n").join([head, *rows])


def _entry(item: Todo, width: int) -> list[Content]:
    mark, style = BROKEN if item.broken else MARKS[item.status]
    text = "$foreground" if item.status == "in_progress" else "$text-muted"
    urgent = (" high", "$warning") if item.priority == "high" and not item.done else ""
    return _marked(mark, style, text, paintable(" ".join(item.content.split()), newlines=False), width, urgent)


def _marked(
    mark: str, style: str, text: str, words: str, width: int, urgent: tuple[str, str] | str = ""
) -> list[Content]:
    said = Content.assemble((words, text), urgent)
    first, *rest = said.wrap(width - 2) if width > 2 else [said]
    return [Content.assemble((f"{mark} ", style), first), *(Content.assemble("  ", each) for each in rest)]


def _around(entries: Sequence[list[Content]], at: int, room: int) -> list[Content]:
    """Return entry ``at`` with whole neighbours, first those below, in ``room`` rows, and how many are left out."""
    first, after = at, at + 1
    left = room - len(entries[at])
    while after < len(entries) and len(entries[after]) <= left:
        left -= len(entries[after])
        after += 1
    while first and len(entries[first - 1]) <= left:
        first -= 1
        left -= len(entries[first])
    rows = [row for entry in entries[first:after] for row in entry][:room]
    besides = [f"{count} {where}" for count, where in ((first, "above"), (len(entries) - after, "below")) if count]
    return [*rows, Content.styled(f"… {', '.join(besides)}" if besides else "…", "$text-muted")]


class SidePlan(Widget):
    """A plan drawn as a tree or a graph in the side panel."""

    @abstractmethod
    def show(self, record: PlanTimeline) -> None:
        """Draw the plan in its current state."""

    @abstractmethod
    def switch(self) -> None:
        """Draw the graph in place of the tree, or the tree again."""


PlanWidget: TypeAlias = Callable[[Callable[[], bool]], SidePlan]


class SidePanel(VerticalScroll, can_focus=False):
    """``live``: whether the session works now. ``plan`` returns the widget that draws a plan, if there is one."""

    def __init__(self, live: Callable[[], bool], plan: Callable[[], PlanWidget | None]) -> None:
        super().__init__(id="side")
        self._make_plan = plan
        self.plan: SidePlan | None = None
        """Made with the first plan that has room for its tree."""
        self._live = live
        self._record: PlanTimeline | None = None
        self._wide = False
        self.todos = TodoList(id="side-todos")
        self.usage = Static(id="side-usage", markup=False)
        self.ledger = Ledger()
        self._title = ""
        self._window = 0
        self._drawing = False
        self._height = 0
        self._drawn = Content("")

    @property
    def filled(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._record or self.todos.filled or self.ledger.session.requests)

    def compose(self) -> ComposeResult:
        yield self.usage
        yield self.todos

    def show(self, title: str, window: int) -> None:
        self._title, self._window = title, window
        self._draw()

    def reset(self) -> None:
        self.ledger = Ledger()
        self.todos.reset()
        self._record = None
        self._arrange()
        self._draw()

    @property
    def drawn(self) -> bool:
        """Whether the plan is shown as a tree or a graph."""
        return self.plan is not None and self.plan.display

    def show_plan(self, record: PlanTimeline) -> None:
        """Show the newest plan."""
        self._record = record
        self._arrange()

    def widen(self, wide: bool) -> None:
        """Say whether there is room for a tree or a graph."""
        if wide != self._wide:
            self._wide = wide
            self._arrange()

    def _arrange(self) -> None:
        """Show the plan as a tree or a graph if there is room, else as a list. A plan that has ended is replaced by
        todos.
        """
        record = self._record
        drawn = bool(record and self._wide and record.plan.subtasks) and self._wanted(record)
        self.todos.show_plan(record.plan if record and not drawn else None)
        if record and drawn:
            if self.plan is None and (widget := self._make_plan()):
                self.plan = widget(self._live)
                self.mount(self.plan, before=self.todos)
            if self.plan is not None:
                self.plan.show(record)
        if self.plan is not None and self.plan.display != drawn:
            self.plan.display = drawn
        if self.todos.display == (drawn and not self.todos.filled):
            self.todos.display = not self.todos.display

    def _wanted(self, record: PlanTimeline | None) -> bool:
        return record is not None and (under_way(record.plan) or not self.todos.items)

    def apply(self, event: Event) -> None:
        before = self.todos.items
        self.todos.apply(event)
        if self._record and before is not self.todos.items:
            self._arrange()
        if self.ledger.apply(event) and not self._drawing:
            self._drawing = True
            self.set_timer(REST, self._draw)

    def _draw(self) -> None:
        self._drawing = False
        ledger, muted = self.ledger, "$text-muted"
        used, percent = ledger.session.usage, share(ledger.filled, self._window)
        warning, colour = fullness(percent)
        width = max(1, self.usage.size.width)
        lines = (
            [Content(self._title).truncate(width, ellipsis=True).stylize("bold"), Content("")] if self._title else []
        )
        if ledger.filled:
            gauge = f"{bar(percent, 8 if warning else 16)} {percent:>3}% {warning}".rstrip()
            lines += [_row("Context", f"{filled(ledger)} of {short_count(self._window)}", muted)]
            lines += [Content.styled(gauge, colour if warning else "$accent")]
        rows = [
            ("In", f"{used.about}{short_count(used.prompt)}" if used.prompt else ""),
            ("Cached", cache_share(used) if used.cache_read else ""),
            ("Out", f"{used.about}{short_count(used.output)}" if used.output else ""),
            ("Cost", _price(ledger.session)),
            ("This turn", _price(ledger.turn) if len(ledger.turns) > 1 else ""),
            ("Turns", str(len(ledger.turns)) if len(ledger.turns) > 1 else ""),
        ]
        lines += [_row(name, value, muted) for name, value in rows if value]
        # Figures change with every step; only another height is worth laying the screen out again.
        height = len(lines) if all(line.cell_length <= self.usage.size.width for line in lines) else 0
        figures = Content("\n").join(lines)
        if not figures.is_same(self._drawn):
            self.usage.update(figures, layout=not height or height != self._height)
            self._drawn = figures
            self._height = height
        room = self.size.height - len(lines) - 1
        self.todos.fit(room // 3 if self.drawn else room)

    def on_resize(self) -> None:
        self._draw()


def _row(name: str, value: str, style: str) -> Content:
    return Content.assemble((f"{name:<10}", style), value)


def _price(account: Account) -> str:
    """Return the cost; empty without requests or prices."""
    return money(account.cost) if account.requests and account.cost is not None else ""


ROOM = 110
WIDEST_SIDE = 34
"""Columns of the side panel, which never takes more than a quarter of the screen."""
WIDE = 140
"""Columns of a window from which a plan is shown beside the conversation as a tree or a graph."""
WIDEST_PLAN = 72
"""Columns of the side panel with a plan, which never takes more than a third of the screen."""
STRIP = 8
"""Rows of the todo strip at most."""


class MainArea(Vertical):
    """``live``: whether the session works now. ``plan`` returns the widget that draws a plan in the side panel."""

    def __init__(
        self,
        conversation: Widget,
        live: Callable[[], bool] = lambda: False,
        plan: Callable[[], PlanWidget | None] = lambda: None,
    ) -> None:
        super().__init__(id="main-area")
        self.side = SidePanel(live, plan)
        self.side.display = False
        self.todos = TodoList(id="todos")
        self.plans = PlanCourse()
        self.inspector: Inspector | None = None
        """The side inspector while it is open."""
        self.start_page: StartPage | None = None
        """Shown in place of the conversation until the first prompt."""
        self._conversation = conversation
        self._side_wanted = True
        self._todos_wanted = False

    def compose(self) -> ComposeResult:
        with Horizontal(id="main"):
            with Vertical(id="centre"):
                yield self._conversation
            yield self.side
        yield self.todos

    @property
    def has_room(self) -> bool:
        """Whether there is room for something beside the conversation."""
        return self.size.width >= ROOM

    def apply(self, event: Event) -> None:
        before = self.side.filled, self.side.drawn
        self.side.apply(event)
        self.todos.apply(event)
        if self.plans.apply(event) and (newest := self.plans.newest):
            self.side.show_plan(newest)
            self.todos.show_plan(newest.plan)
        if before != (self.side.filled, self.side.drawn):
            self.settle()

    def reset(self) -> None:
        self.plans = PlanCourse()
        self.side.reset()
        self.todos.reset()
        self.settle()

    def on_resize(self, event: Resize) -> None:
        self.settle()

    @on(TodoList.Changed)
    def _todos_changed(self, event: TodoList.Changed) -> None:
        event.stop()
        self.settle()

    def settle(self) -> None:
        """Show the side panel if there is room and content; else the todos as a strip, if wanted."""
        self.side.widen(self.size.width >= WIDE)
        wanted = self.side.filled and self._side_wanted
        self.side.display = wanted and self.has_room and self.inspector is None
        width = self.size.width
        self.side.styles.width = min(WIDEST_PLAN, width // 3) if self.side.drawn else min(WIDEST_SIDE, width // 4)
        self.todos.display = self._todos_wanted and not self.side.display
        self.todos.fit(min(STRIP, self.size.height // 2))

    def toggle_side(self) -> bool:
        """Return False when there is no room for it, or nothing in it."""
        if not self.has_room or not self.side.filled:
            return False
        self._side_wanted = not self.side.display
        self.settle()
        return True

    def switch_plan(self) -> bool:
        """Switch the plan beside the conversation between tree and graph; return False if there is none."""
        if not self.side.display or not self.side.drawn or self.side.plan is None:
            return False
        self.side.plan.switch()
        return True

    def toggle_todos(self) -> None:
        """Toggle the todos: in the side panel if it is shown, else in the strip."""
        if self.side.display:
            self.toggle_side()
        else:
            self._todos_wanted = not self._todos_wanted
            self.settle()

    async def show_start(self, **choices: object) -> None:
        """Show the start page with ``choices``, fields of StartChoices."""
        if self.start_page is None:
            self.start_page = StartPage()
            await self.query_one("#centre").mount(self.start_page)
        self.start_page.show(**choices)

    def is_choice(self, text: str) -> bool:
        """Return whether ``text`` is a number of the start page."""
        return self.start_page is not None and self.start_page.choices.holds(text)

    def leave_start(self) -> None:
        """Replace the start page by the conversation."""
        if self.start_page is not None:
            self.start_page.remove()
            self.start_page = None

    async def inspect(self, value: InspectorValue) -> None:
        """Show ``value`` beside the conversation."""
        from ba_tui.faces.tui.inspector.pane import Inspector  # noqa: PLC0415 - not before the first paint

        if self.inspector is not None:
            await self.inspector.show(value)
            return
        self.inspector = Inspector(value, beside=True, id="inspector")
        self.settle()
        await self.query_one("#main").mount(self.inspector)
        self.call_after_refresh(self.inspector.focus)

    async def close_inspector(self) -> bool:
        """Return False when it is not open."""
        if self.inspector is None:
            return False
        pane, self.inspector = self.inspector, None
        await pane.remove()
        self.settle()
        return True
