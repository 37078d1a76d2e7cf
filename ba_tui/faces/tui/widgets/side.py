"""The side panel: todos, a plan, how full the window is, what the session has used. Nothing stands there that is empty.

Hidden by the screen when there is no room; it folds events all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.events import Event
from ba_tui.core.events.plan_course import PlanRecord
from ba_tui.core.ledger import Account, Ledger
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.widgets.status import REST
from ba_tui.faces.tui.widgets.todos import TodoList

if TYPE_CHECKING:
    from ba_tui.faces.tui.plan.pane import PlanPane


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
