"""The one row above the prompt: what the turn is doing while it runs, else a short hint that goes away by itself.

Its clock runs at TICKS Hz and only during a turn. The row is always one line high, so drawing it moves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Answered,
    Asked,
    Event,
    MessageDone,
    PromptProgress,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import duration, short_count

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
INDENT = "  "
"""Words stand below words, in the column behind the signs."""
HINT_SECONDS = 3.0
THINKING, ANSWERING = ANSWERS = ("Thinking", "Answering")
TICKS = 4
SLOW = 3.0
"""Seconds after which a model that has not begun to answer counts as a slow reader."""


class Activity(Static):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="activity", markup=False)
        self._clock = clock
        self._word = ""
        self._busy = False
        self._started = 0.0
        self._frame = 0
        self._retry_at: float | None = None
        self._reading: PromptProgress | None = None
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
        """Whether just this is shown."""
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
            case TurnStarted(agent="main"):
                self.begin()
            case ThinkingDelta():
                self._say(THINKING)
            case TextDelta():
                self._say(ANSWERING)
            case ToolInputDelta(name=name, size=size):
                self._say(f"Preparing {name} ({short_count(size)} characters)")
            case ToolStarted(call=call):
                self._say(f"Running {call.name}")
            case Asked():
                self._say("Waiting for you")
            case ToolFinished() | MessageDone() | Answered():
                self._say(self._working)
            case PromptProgress(agent="main") if self._word not in ANSWERS:
                if self._reading is None:
                    self._say("Working")
                    self._reading_since = self._clock()
                self._reading = event
            case Retrying(delay=delay, attempt=attempt, attempts=attempts):
                # Why, the conversation says: here the way out has to fit behind it.
                self._say(f"Trying again ({attempt} of {attempts})" if attempts else "Next request")
                self._retry_at = self._clock() + delay
            case TurnEnded(agent="main"):
                self._stop()
            case _:
                pass

    def _below(self, event: Event) -> None:
        """What sub-agents do, the conversation says: here only how many work, and that one asks."""
        match event:
            case AgentStarted():
                self._agents.add(event.agent)
                self._say(self._working)
            case TurnEnded():
                self._agents.discard(event.agent)
                self._say(self._working)
            case Asked():
                self._say("Waiting for you")
            case Answered():
                self._say(self._working)
            case _:
                pass

    @property
    def _working(self) -> str:
        return f"Working, {count(len(self._agents), 'agent')} running" if self._agents else "Working"

    def begin(self) -> None:
        """A turn is on its way; what looks at its prompt may take a while before anything else happens."""
        self._busy, self._started, self._word = True, self._clock(), "Working"
        self._retry_at = self._reading = None
        if self._tick is None:
            self._tick = self.set_interval(1 / TICKS, self._advance)
        self._draw()

    def doing(self, word: str) -> None:
        """What goes on is something else than a turn."""
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


def _reading(progress: PromptProgress, waited: int, elapsed: int) -> str:
    """How far the model is with the prompt. What it took so far stands here when the turn began earlier."""
    words = f"Reading {'≈' if progress.done is None else ''}{short_count(progress.total)} tokens"
    if progress.done and progress.total:
        words += f", {100 * progress.done // progress.total} %"
    if progress.left:
        words += f", {duration(round(progress.left))} left"
    return words if elapsed - waited < SLOW else f"{words} ({duration(waited)})"
