"""The side panel: todos, how full the window is, what the session has used.

Hidden by the screen when there is no room; it folds events all the same.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.events import Event
from ba_tui.faces.tui.meters import Totals, bar, money, share, short_count
from ba_tui.faces.tui.widgets.status import REST
from ba_tui.faces.tui.widgets.todos import TodoList


class SidePanel(VerticalScroll, can_focus=False):
    def __init__(self) -> None:
        super().__init__(id="side")
        self.todos = TodoList(id="side-todos")
        self.usage = Static(id="side-usage", markup=False)
        self.totals = Totals()
        self._title = ""
        self._window = 0
        self._drawing = False

    def compose(self) -> ComposeResult:
        yield self.usage
        yield self.todos

    def show(self, title: str, window: int) -> None:
        self._title, self._window = title, window
        self._draw()

    def reset(self) -> None:
        self.totals = Totals()
        self.todos.reset()
        self._draw()

    def apply(self, event: Event) -> None:
        self.todos.apply(event)
        totals = self.totals.after(event)
        if totals is not self.totals:
            self.totals = totals
            if not self._drawing:
                self._drawing = True
                self.set_timer(REST, self._draw)

    def _draw(self) -> None:
        self._drawing = False
        used, muted = self.totals.usage, "$text-muted"
        percent = share(self.totals.filled, self._window)
        rows = [
            ("Context", f"{short_count(self.totals.filled)} of {short_count(self._window)}"),
            ("In", short_count(used.prompt)),
            ("Out", short_count(used.output)),
            ("Cached", short_count(used.cache_read)),
            ("Cost", money(self.totals.cost)),
            ("Turns", str(self.totals.turns)),
        ]
        lines = [Content.styled(self._title or "New session", "bold"), Content("")]
        lines += [Content.assemble((f"{name:<9}", muted), value) for name, value in rows]
        lines.insert(3, Content.styled(f"{bar(percent, 20)} {percent}%", "$accent"))
        self.usage.update(Content("\n").join(lines))
