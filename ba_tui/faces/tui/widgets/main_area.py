"""What stands beside and below the conversation: side panel, inspector, todo strip, and when there is room for each.
Before the first prompt the start page stands in its place.

A fold for those that fold. The conversation itself comes from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Static

from ba_tui.core.events import Event
from ba_tui.core.events.plan_course import PlanCourse, PlanRecord
from ba_tui.core.ledger import Account, Ledger
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.widgets.status import REST
from ba_tui.faces.tui.widgets.todos import TodoList

if TYPE_CHECKING:
    from ba_tui.faces.tui.inspector.model import Inspected
    from ba_tui.faces.tui.inspector.pane import Inspector
    from ba_tui.faces.tui.plan.pane import PlanPane
    from ba_tui.faces.tui.widgets.start_page import StartPage


# The side panel shows todos, a plan, the window and usage. It folds events also while the screen hides it.


class SidePanel(VerticalScroll, can_focus=False):
    """``live``: whether the session works now."""

    def __init__(self, live: Callable[[], bool] = lambda: False) -> None:
        super().__init__(id="side")
        self.plan: PlanPane | None = None
        """Made with the first plan that has room for its tree."""
        self._live = live
        self._record: PlanRecord | None = None
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
        """Whether the plan stands there as a tree or a graph."""
        return self.plan is not None and self.plan.display

    def show_plan(self, record: PlanRecord) -> None:
        """The newest plan, as it stands."""
        self._record = record
        self._arrange()

    def widen(self, wide: bool) -> None:
        """Say whether there is room for a tree or a graph."""
        if wide != self._wide:
            self._wide = wide
            self._arrange()

    def _arrange(self) -> None:
        """The plan as a tree or a graph where there is room, else as a list. One that is over gives way to todos."""
        record = self._record
        drawn = bool(record and self._wide and record.plan.subtasks) and self._wanted(record)
        self.todos.show_plan(record.plan if record and not drawn else None)
        if record and drawn:
            if self.plan is None:
                from ba_tui.faces.tui.plan.pane import PlanPane  # noqa: PLC0415 - few sessions have a plan

                self.plan = PlanPane(self._live)
                self.mount(self.plan, before=self.todos)
            self.plan.show(record)
        if self.plan is not None and self.plan.display != drawn:
            self.plan.display = drawn
        if self.todos.display == (drawn and not self.todos.filled):
            self.todos.display = not self.todos.display

    def _wanted(self, record: PlanRecord | None) -> bool:
        from ba_tui.plotting.plans.signs import under_way  # noqa: PLC0415 - few sessions have a plan

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
    """Empty where nothing was asked, or nothing has a price."""
    return money(account.cost) if account.requests and account.cost is not None else ""


ROOM = 110
WIDEST_SIDE = 34
"""Columns of the side panel, which never takes more than a quarter of the screen."""
WIDE = 140
"""Columns of a window in which a plan stands beside the conversation as a tree or a graph."""
WIDEST_PLAN = 72
"""Columns of the side panel with a plan, which never takes more than a third of the screen."""
STRIP = 8
"""Rows of the todo strip at most."""


class MainArea(Vertical):
    """``live``: whether the session works now."""

    def __init__(self, conversation: Widget, live: Callable[[], bool] = lambda: False) -> None:
        super().__init__(id="main-area")
        self.side = SidePanel(live)
        self.side.display = False
        self.todos = TodoList(id="todos")
        self.plans = PlanCourse()
        self.inspector: Inspector | None = None
        """The side inspector while it is open."""
        self.start_page: StartPage | None = None
        """In place of the conversation until something is said."""
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
        """For something beside the conversation."""
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
        """The side panel when there is room and something in it; else the todos as a strip, when wanted."""
        self.side.widen(self.size.width >= WIDE)
        wanted = self.side.filled and self._side_wanted
        self.side.display = wanted and self.has_room and self.inspector is None
        width = self.size.width
        self.side.styles.width = min(WIDEST_PLAN, width // 3) if self.side.drawn else min(WIDEST_SIDE, width // 4)
        self.todos.display = self._todos_wanted and not self.side.display
        self.todos.fit(min(STRIP, self.size.height // 2))

    def toggle_side(self) -> bool:
        """False when there is no room for it, or nothing in it."""
        if not self.has_room or not self.side.filled:
            return False
        self._side_wanted = not self.side.display
        self.settle()
        return True

    def switch_plan(self) -> bool:
        """The plan beside the conversation as a graph in place of a tree; False when none stands there."""
        if not self.side.display or not self.side.drawn or self.side.plan is None:
            return False
        self.side.plan.switch()
        return True

    def toggle_todos(self) -> None:
        """Where they would be seen: in the side panel when it shows, else in the strip."""
        if self.side.display:
            self.toggle_side()
        else:
            self._todos_wanted = not self._todos_wanted
            self.settle()

    async def show_start(self, **choices: object) -> None:
        """Show the start page with ``choices``, fields of StartChoices."""
        from ba_tui.faces.tui.widgets.start_page import StartPage  # noqa: PLC0415 - not before the first paint

        if self.start_page is None:
            self.start_page = StartPage()
            await self.query_one("#centre").mount(self.start_page)
        self.start_page.show(**choices)

    def is_choice(self, text: str) -> bool:
        """Whether ``text`` is a number of the start page."""
        return self.start_page is not None and self.start_page.choices.holds(text)

    def leave_start(self) -> None:
        """Show the conversation: something is said in it."""
        if self.start_page is not None:
            self.start_page.remove()
            self.start_page = None

    async def inspect(self, value: Inspected) -> None:
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
        """False when it is not open."""
        if self.inspector is None:
            return False
        pane, self.inspector = self.inspector, None
        await pane.remove()
        self.settle()
        return True
