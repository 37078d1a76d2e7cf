"""The status line: mode, model, folder, window, tokens, cost, queue, shells. In a narrow window the least important
parts are left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from ba_tui.core.events import Event, Mode
from ba_tui.core.ledger import Ledger
from ba_tui.core.messages import Usage
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.meters import bar, filled, fullness, money, share, short_count

MODE_STYLE: dict[Mode, str] = {
    "default": "$foreground",
    "accept-edits": "$warning",
    "plan": "$accent",
    "auto": "$warning",
    "bypass": "$error",
}
GAP = "  "
FOLDER = 28
REST = 0.1


@frozen
class Situation:
    """Facts that the line shows besides the totals."""

    mode: Mode = "default"
    model: str = ""
    window: int = 0
    folder: str = ""
    branch: str = ""
    queue: int = 0
    shells: int = 0
    agents: int = 0
    paused: bool = False
    sandbox: str = ""


def scripted(model: str) -> bool:
    """Return whether no real model answers; people must see that."""
    return model == "demo" or model.startswith(("demo/", "scripted"))


def short_folder(cwd: Path, home: Path | None) -> str:
    """Return ``~/src/app`` as the shell shows it; of a long path the end."""
    shown = str(cwd)
    if home is not None and cwd.is_relative_to(home):
        shown = "~" if cwd == home else f"~/{cwd.relative_to(home)}"
    rest = shown
    while len(shown) > FOLDER and "/" in rest[1:]:
        rest = rest[1:].partition("/")[2]
        shown = f"…/{rest}"
    return shown


class StatusLine(Static):
    situation: reactive[Situation] = reactive(Situation())

    def __init__(self) -> None:
        super().__init__(id="status", markup=False)
        self.ledger = Ledger()
        self._drawing = False

    def show(self, **changes: object) -> None:
        """Change parts of the situation."""
        self.situation = replace(self.situation, **changes)  # pyright: ignore[reportArgumentType]

    def reset(self) -> None:
        """Start over for another session."""
        self.ledger = Ledger()
        self._draw()

    def apply(self, event: Event) -> None:
        if self.ledger.apply(event) and not self._drawing:
            # Steps can follow each other within milliseconds; people read slower.
            self._drawing = True
            self.set_timer(REST, self._draw)

    def watch_situation(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self._drawing = False
        if self.size.width:
            self.update(line(self.situation, self.ledger, self.size.width - 2), layout=False)


def line(now: Situation, ledger: Ledger, width: int) -> Content:
    """Return the whole line in ``width`` cells: what matters least goes first when it does not fit."""
    muted = "$text-muted"
    percent = share(ledger.filled, now.window)
    warning, fill = fullness(percent)
    used = bool(ledger.session.requests)
    known = bool(ledger.filled and now.window)
    folder = now.folder + (f" ({now.branch})" if now.branch else "")
    model = paintable(now.model.rpartition("/")[2], newlines=False)
    # Each part: (importance, side, text, style). A larger number goes first; one name may have a shorter spare.
    parts: list[tuple[int, str, str, str]] = [
        (0, "left", now.mode, f"{MODE_STYLE[now.mode]} bold"),
        (4, "left", now.sandbox, muted),
        (1, "left", "scripted model" if scripted(now.model) else "", "$warning"),
        (3, "left", model if not scripted(now.model) else "", "$foreground"),
        (5, "left", folder, muted),
        (1, "right", queue_words(now), "$accent"),
        (2, "right", f"{now.shells} shell{'s' if now.shells > 1 else ''}" if now.shells else "", "$accent"),
        (2, "right", count(now.agents, "agent") if now.agents else "", "$accent"),
        (8, "right", f"{filled(ledger)}/{short_count(now.window)}" if known else "", fill),
        (9, "right", bar(percent, 10) if known else "", fill),
        (2, "right", f"{percent}%" if known else "", fill),
        (2, "right", warning if known else "", fill),
        (6, "right", tokens(ledger.session.usage) if used else "", muted),
        (7, "right", _turn(ledger), muted),
        (4, "right", money(ledger.session.cost) if used else "", muted),
    ]
    parts = [part for part in parts if part[2]]
    while len(parts) > 1 and _width(parts) > width:
        parts.remove(max(parts))
    left = [(text, style) for _, side, text, style in parts if side == "left"]
    right = [(text, style) for _, side, text, style in parts if side == "right"]
    space = max(len(GAP), width - _cells(left) - _cells(right))
    return Content.assemble(*_spaced(left), " " * space if right else "", *_spaced(right))


def tokens(used: Usage) -> str:
    """Return tokens in, out and read from the cache; "~" precedes numbers that are partly estimates."""
    cached = f" {short_count(used.cache_read)} cached" if used.cache_read else ""
    return f"↑{used.about}{short_count(used.prompt)} ↓{used.about}{short_count(used.output)}{cached}"


def _turn(ledger: Ledger) -> str:
    """Return the cost of the newest turn if known and different from the total."""
    cost = ledger.turn.cost
    return f"turn {money(cost)}" if cost and len(ledger.turns) > 1 else ""


def queue_words(now: Situation) -> str:
    if not now.queue:
        return ""
    return f"{now.queue} waiting (paused)" if now.paused else f"{now.queue} waiting"


def _spaced(parts: list[tuple[str, str]]) -> list[tuple[str, str] | str]:
    spaced: list[tuple[str, str] | str] = []
    for index, part in enumerate(parts):
        spaced += [GAP, part] if index else [part]
    return spaced


def _cells(parts: list[tuple[str, str]]) -> int:
    return sum(cell_len(text) for text, _ in parts) + len(GAP) * max(0, len(parts) - 1)


def _width(parts: list[tuple[int, str, str, str]]) -> int:
    return sum(cell_len(text) for _, _, text, _ in parts) + len(GAP) * (len(parts) - 1)
