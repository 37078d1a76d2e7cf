"""The side panel: todos, how full the window is, what the session has used.

Hidden by the screen when there is no room; it folds events all the same.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.events import Event
from ba_tui.core.ledger import Ledger
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.widgets.status import REST
from ba_tui.faces.tui.widgets.todos import TodoList


class SidePanel(VerticalScroll, can_focus=False):
    def __init__(self) -> None:
        super().__init__(id="side")
        self.todos = TodoList(id="side-todos")
        self.usage = Static(id="side-usage", markup=False)
        self.ledger = Ledger()
        self._title = ""
        self._window = 0
        self._drawing = False
        self._height = 0

    def compose(self) -> ComposeResult:
        yield self.usage
        yield self.todos

    def show(self, title: str, window: int) -> None:
        self._title, self._window = title, window
        self._draw()

    def reset(self) -> None:
        self.ledger = Ledger()
        self.todos.reset()
        self._draw()

    def apply(self, event: Event) -> None:
        self.todos.apply(event)
        if self.ledger.apply(event) and not self._drawing:
            self._drawing = True
            self.set_timer(REST, self._draw)

    def _draw(self) -> None:
        self._drawing = False
        ledger, muted = self.ledger, "$text-muted"
        used, percent = ledger.session.usage, share(ledger.filled, self._window)
        warning, colour = fullness(percent)
        rows = [
            ("Context", f"{filled(ledger)} of {short_count(self._window)}" if ledger.filled else "—"),
            ("In", f"{short_count(used.prompt)}, {cache_share(used)} cached" if used.prompt else "—"),
            ("Out", short_count(used.output) if used.prompt else "—"),
            ("Cost", money(ledger.session.cost if ledger.session.requests else None)),
            ("This turn", money(ledger.turn.cost if ledger.turn.requests else None)),
            ("Turns", str(len(ledger.turns))),
        ]
        lines = [Content.styled(self._title or "New session", "bold"), Content("")]
        lines += [Content.assemble((f"{name:<10}", muted), value) for name, value in rows]
        if ledger.filled:
            gauge = f"{bar(percent, 10 if warning else 16)} {percent:>3}% {warning}".rstrip()
            lines.insert(3, Content.styled(gauge, colour if warning else "$accent"))
        # Figures change with every step; only another height is worth laying the screen out again.
        height = len(lines) if all(line.cell_length <= self.usage.size.width for line in lines) else 0
        self.usage.update(Content("\n").join(lines), layout=not height or height != self._height)
        self._height = height
        self.todos.fit(self.size.height - len(lines) - 1)

    def on_resize(self) -> None:
        self._draw()
