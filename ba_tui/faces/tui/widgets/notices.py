"""Lines around the input: activity, notices, which disappear after a time but can be read again, and the status.

The rows are part of the layout, so that they never cover the input, a question or the popup.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Static

from ba_tui.core import events
from ba_tui.core.events import MAIN, Event, Mode, Notice
from ba_tui.core.ledger import Ledger
from ba_tui.core.messages import Usage
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, with_hint
from ba_tui.core.values import frozen
from ba_tui.faces.tui.meters import bar, duration, filled, fullness, money, share, short_count

# The activity line. Its clock ticks only during a turn; its height is constant, so that updates never move the layout.

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
INDENT = "  "
"""Indent of continued lines, the width of the signs."""
HINT_SECONDS = 3.0
THINKING, ANSWERING = ANSWERS = ("Thinking", "Answering")
TICKS = 4
SLOW = 3.0
"""Seconds after which the progress of reading the prompt is shown."""


class Activity(Static):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="activity", markup=False)
        self._clock = clock
        self._word = ""
        self._busy = False
        self._started = 0.0
        self._frame = 0
        self._retry_at: float | None = None
        self._reading: events.PromptProgress | None = None
        self._reading_since = 0.0
        self._tick: Timer | None = None
        self._agents: set[str] = set()
        self._hint = ""
        self._note = ""
        self._hint_timer: Timer | None = None

    def note(self, text: str) -> None:
        """Show ``text`` quietly for as long as there is nothing else to say; empty for none."""
        self._note = paintable(text, newlines=False)
        self._draw()

    def hint(self, text: str, seconds: float = HINT_SECONDS) -> None:
        """Show ``text`` for a moment."""
        self._hint = paintable(text, newlines=False)
        if self._hint_timer:
            self._hint_timer.stop()
        self._hint_timer = self.set_timer(seconds, self._drop_hint) if text else None
        self._draw()

    def hinting(self, text: str) -> bool:
        """Return whether just this is shown."""
        return self._hint == text

    def _drop_hint(self) -> None:
        self._hint = ""
        self._draw()

    def reset(self) -> None:
        self._agents.clear()
        self._stop()

    def apply(self, event: Event) -> None:
        if event.agent.startswith(f"{MAIN}/"):
            self._below(event)
            return
        match event:
            case events.TurnStarted(agent="main"):
                self.begin()
            case events.ThinkingDelta():
                self._say(THINKING)
            case events.TextDelta():
                self._say(ANSWERING)
            case events.ToolInputDelta(name=name, size=size):
                self._say(f"Preparing {name} ({short_count(size)} characters)")
            case events.ToolStarted(call=call):
                self._say(f"Running {call.name}")
            case events.Asked():
                self._say("Waiting for you")
            case events.ToolFinished() | events.MessageDone() | events.Answered():
                self._say(self._working)
            case events.PromptProgress(agent="main") if self._word not in ANSWERS:
                if self._reading is None:
                    self._say("Working")
                    self._reading_since = self._clock()
                self._reading = event
            case events.Retrying(delay=delay, attempt=attempt, attempts=attempts):
                # Why, the conversation says: here the way out has to fit behind it.
                self._say(f"Trying again ({attempt} of {attempts})" if attempts else "Next request")
                self._retry_at = self._clock() + delay
            case events.TurnEnded(agent="main"):
                self._stop()
            case _:
                pass

    def _below(self, event: Event) -> None:
        """Count sub-agents and show that one asks; the conversation shows what they do."""
        match event:
            case events.AgentStarted():
                self._agents.add(event.agent)
                self._say(self._working)
            case events.TurnEnded():
                self._agents.discard(event.agent)
                self._say(self._working)
            case events.Asked():
                self._say("Waiting for you")
            case events.Answered():
                self._say(self._working)
            case _:
                pass

    @property
    def _working(self) -> str:
        return f"Working, {count(len(self._agents), 'agent')} running" if self._agents else "Working"

    def begin(self) -> None:
        """Show that a turn is starting: checks of its prompt may take a while."""
        self._busy, self._started, self._word = True, self._clock(), "Working"
        self._retry_at = self._reading = None
        if self._tick is None:
            self._tick = self.set_interval(1 / TICKS, self._advance)
        self._draw()

    def doing(self, word: str) -> None:
        """Show work that is not a turn."""
        self._say(word)
        self._draw()

    def _stop(self) -> None:
        self._busy = False
        if self._tick:
            self._tick.stop()
            self._tick = None
        self._draw()

    def _say(self, word: str) -> None:
        # Drawn by the next tick: events may come by the thousand.
        self._word, self._retry_at, self._reading = paintable(word[:200], newlines=False), None, None

    def _advance(self) -> None:
        self._frame += 1
        self._draw()

    def _draw(self) -> None:
        if self._hint:
            self.update(Content.styled(INDENT + self._hint, "$warning"), layout=False)
        elif self._busy:
            seconds = int(self._clock() - self._started)
            word = self._word
            if self._retry_at is not None:
                word = f"{word} in {max(0, round(self._retry_at - self._clock()))} s"
            if self._reading and (waited := self._clock() - self._reading_since) >= SLOW:
                word = _reading(self._reading, int(waited), seconds)
            elapsed = duration(seconds)
            mark = "…" if word == "Waiting for you" else FRAMES[self._frame % len(FRAMES)]
            note = f" · {self._note}" if self._note else ""
            quiet = (f"  {elapsed} · Esc interrupts{note}", "$text-muted")
            self.update(Content.assemble((f"{mark} {word}", "$accent"), quiet), layout=False)
        else:
            self.update(Content.styled(INDENT + self._note, "$text-muted"), layout=False)


def _reading(progress: events.PromptProgress, waited: int, elapsed: int) -> str:
    """Return how much of the prompt the model has processed, and the time so far if the turn began earlier."""
    words = f"Reading {'≈' if progress.done is None else ''}{short_count(progress.total)} tokens"
    if progress.done and progress.total:
        words += f", {100 * progress.done // progress.total} %"
    if progress.left:
        words += f", {duration(round(progress.left))} left"
    return words if elapsed - waited < SLOW else f"{words} ({duration(waited)})"


KEPT = 200
"""Notices that can be read again."""
MOST_ROWS = 4
LOW = 18
"""Rows of a screen on which notices have one row."""
ROWS_EACH = 2
LEAST = {"info": 4.0, "warning": 8.0}
READING = 15.0
"""Characters that people read in a second, without hurry."""
SEEN = 1.0
"""Seconds for which an error stays although keys are pressed: a user who types has not seen it yet."""
LOOK_AGAIN = 2.0
MORE = "more: /notices"
MARKS = {"info": "·", "warning": "!", "error": "✗"}
COLOURS = {"info": "$text-muted", "warning": "$text-warning", "error": "$text-error"}


class NoticeStrip(Static):
    """``asked``: whether a question is shown above, which needs the room."""

    def __init__(self, asked: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="notices", markup=False)
        self.kept: deque[Notice] = deque(maxlen=KEPT)
        """Oldest first."""
        self._asked = asked
        self._clock = clock
        self._shown: list[tuple[Notice, float]] = []
        self.display = False

    def tell(self, notice: Notice) -> None:
        """Show ``notice`` and keep it for reading again."""
        self.kept.append(notice)
        if not self.is_attached:
            # The screen is closing: a timer would outlive it.
            return
        self._shown.append((notice, self._clock()))
        if notice.level != "error":
            self._drop_in(seconds_to_read(notice), notice)
        self._draw()

    def _drop_in(self, seconds: float, notice: Notice) -> None:
        self.set_timer(seconds, partial(self._drop, notice))

    def _drop(self, notice: Notice) -> None:
        if not self.screen.is_active:
            # Another screen covers it.
            self._drop_in(LOOK_AGAIN, notice)
            return
        self._shown = [each for each in self._shown if each[0] is not notice]
        self._draw()

    def key_pressed(self) -> None:
        """Take away the errors that have been there long enough to be noticed."""
        now = self._clock()
        left = [each for each in self._shown if each[0].level != "error" or now - each[1] < SEEN]
        if len(left) < len(self._shown):
            self._shown = left
            self._draw()

    def apply(self, event: Event) -> None:
        """Add a notice that the conversation shows, so that it can be listed."""
        if isinstance(event, Notice):
            self.kept.append(event)

    def reset(self) -> None:
        self._shown.clear()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._shown)
        if self._shown:
            width = (self.container_size.width or 80) - 2
            low = self._asked() or self.screen.size.height < LOW
            rows = strip([notice for notice, _ in self._shown], width, 1 if low else MOST_ROWS)
            # The rows are cut to the width already; a height that follows the text would lag behind a resize.
            self.styles.height = len(rows)
            self.update(Content("\n").join(rows))


def seconds_to_read(notice: Notice) -> float:
    """Return how long ``notice`` stays."""
    return LEAST.get(notice.level, 0.0) + len(notice.text + notice.hint) / READING


def strip(notices: Sequence[Notice], width: int, most: int) -> list[Content]:
    """Return the newest notices in at most ``most`` rows, the newest last and in full if possible, with the number of
    others.
    """
    rows: list[Content] = []
    left = len(notices)
    for notice in reversed(notices):
        folded = _folded(notice, width, min(ROWS_EACH, most) if rows else most)
        if rows and len(rows) + len(folded) > most:
            break
        rows = [*folded, *rows]
        left -= 1
    if left:
        more = f"  +{left} {MORE}"
        rows[-1] = Content.assemble(rows[-1].truncate(max(8, width - len(more)), ellipsis=True), (more, "$text-muted"))
    return rows


def _folded(notice: Notice, width: int, most: int) -> list[Content]:
    text = paintable(with_hint(notice.text, notice.hint), newlines=False)
    style, room = COLOURS[notice.level], max(10, width - len(INDENT))
    lines = [line.rstrip() for line in Content.styled(text, style).wrap(room)]
    if len(lines) > most:
        rest = text[sum(len(line.plain) + 1 for line in lines[: most - 1]) :]
        lines = [*lines[: most - 1], Content.styled(rest, style).truncate(room, ellipsis=True)]
    signs = [MARKS[notice.level] + " ", *[INDENT] * (len(lines) - 1)]
    return [Content.assemble((sign, style), line) for sign, line in zip(signs, lines, strict=True)]


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
