"""The side panel: todos, how full the window is, what the session has used. Nothing stands there that is empty.

Hidden by the screen when there is no room; it folds events all the same.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.events import Event
from ba_tui.core.ledger import Account, Ledger
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
        self._drawn = Content("")

    @property
    def filled(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.todos.filled or self.ledger.session.requests)

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
        width = max(1, self.usage.size.width)
        lines = (
            [Content(self._title).truncate(width, ellipsis=True).stylize("bold"), Content("")] if self._title else []
        )
        if ledger.filled:
            gauge = f"{bar(percent, 8 if warning else 16)} {percent:>3}% {warning}".rstrip()
            lines += [_row("Context", f"{filled(ledger)} of {short_count(self._window)}", muted)]
            lines += [Content.styled(gauge, colour if warning else "$accent")]
        rows = [
            ("In", short_count(used.prompt) if used.prompt else ""),
            ("Cached", cache_share(used) if used.cache_read else ""),
            ("Out", short_count(used.output) if used.output else ""),
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
        self.todos.fit(self.size.height - len(lines) - 1)

    def on_resize(self) -> None:
        self._draw()


def _row(name: str, value: str, style: str) -> Content:
    return Content.assemble((f"{name:<10}", style), value)


def _price(account: Account) -> str:
    """Empty where nothing was asked, or nothing has a price."""
    return money(account.cost) if account.requests and account.cost is not None else ""
