"""What stands beside and below the conversation: side panel, inspector, todo strip, and when there is room for each.
Before the first prompt the start page stands in its place.

A fold for those that fold. The conversation itself comes from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widget import Widget

from ba_tui.core.events import Event
from ba_tui.core.events.plan_course import PlanCourse
from ba_tui.faces.tui.widgets.side import SidePanel
from ba_tui.faces.tui.widgets.todos import TodoList

if TYPE_CHECKING:
    from ba_tui.faces.tui.inspector.model import Inspected
    from ba_tui.faces.tui.inspector.pane import Inspector
    from ba_tui.faces.tui.widgets.start_page import StartPage

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
