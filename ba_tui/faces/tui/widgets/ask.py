"""The approval panel: shows one question at a time and reports the answer. What may run is decided elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from textual import on
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from ba_tui.core.questions import Question, Reply
from ba_tui.core.values import frozen
from ba_tui.faces.tui.widgets.ask_body import asker, heading, time_left
from ba_tui.faces.tui.widgets.ask_form import AskForm
from ba_tui.faces.tui.widgets.text_fields import is_text

LETTER = 0.15
"""Seconds for which a letter waits for the next one of a word before it answers."""


@frozen
class WaitingQuestion:
    """``since``: when it came, by the panel's clock."""

    ask_id: str
    question: Question
    agent: str
    since: float


class AskPanel(Widget):
    """Questions queue; the first is shown. It takes the focus while it asks and gives it back afterwards."""

    DEFAULT_CSS = """
    AskPanel {
        height: auto;
        max-height: 70%;
        display: none;
        background: $surface;
        border-top: solid $foreground 30%;
        border-title-color: $text-accent;
        border-title-style: bold;
        border-title-background: $surface;
        padding: 0 1;
    }
    AskPanel:focus-within { border-top: solid $accent; }
    """

    class Answered(Message):
        """The person's answer; ``interrupt`` when the turn should stop as well."""

        def __init__(self, ask_id: str, reply: Reply, interrupt: bool = False) -> None:
            super().__init__()
            self.ask_id = ask_id
            self.reply = reply
            self.interrupt = interrupt

    def __init__(
        self, *, writing: Callable[[], bool] = lambda: False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``writing``: whether the input holds text; answer keys wait meanwhile."""
        super().__init__()
        self._writing = writing
        self._clock = clock
        self._queue: deque[WaitingQuestion] = deque()
        self._done = 0
        self._form: AskForm | None = None
        self._came_from: Widget | None = None
        self._tick: Timer | None = None
        self._letter: Key | None = None
        """A letter that answers unless another one follows it at once."""
        self._letter_timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """Questions without an answer, the shown one included."""
        return len(self._queue)

    def ask(self, ask_id: str, question: Question, agent: str) -> None:
        """Show the question, or queue it behind those that wait."""
        self._queue.append(WaitingQuestion(ask_id, question, agent, self._clock()))
        if len(self._queue) == 1:
            self._came_from = self.screen.focused
            self._open()
        self._count()

    def input_changed(self) -> None:
        """The input holds text from now on, or none any more: then the question gets the keys."""
        if self._form is None:
            return
        mine = self._form.has_focus
        self._form.input_changed()
        if self._writing() and mine and self._came_from is not None:
            self._came_from.focus()
        elif not self._writing() and self.screen.focused in (None, self._came_from):
            self._form.focus()

    def word(self, event: Key | Paste) -> list[Key] | None:
        """Return the letters that go to the input before ``event``; None when that is for the question."""
        first = self._take_letter()
        if first and isinstance(event, Key) and is_text(event) and event.character != first.character:
            return [first]
        self._deliver(first)
        return self._form.word(event) if self._form else []

    def hold_back(self, key: Key) -> bool:
        """Keep a letter that answers for a moment: it may begin a word. False when ``key`` is none."""
        if self._form is None or not self._form.answers(key):
            return False
        self._letter = key
        self._letter_timer = self.set_timer(LETTER, self.release)
        return True

    def release(self) -> None:
        """Let the letter answer that was held back."""
        self._deliver(self._take_letter())

    def _take_letter(self) -> Key | None:
        letter, self._letter = self._letter, None
        if self._letter_timer:
            self._letter_timer.stop()
            self._letter_timer = None
        return letter

    def _deliver(self, letter: Key | None) -> None:
        if letter and self._form:
            self._form.post_message(Key(letter.key, letter.character))

    def withdraw(self, ask_id: str) -> None:
        """Take a question away that needs no answer any more."""
        shown = bool(self._queue) and self._queue[0].ask_id == ask_id
        self._queue = deque(item for item in self._queue if item.ask_id != ask_id)
        if shown:
            self._open()
        self._count()

    def withdraw_all(self, agent: str = "") -> None:
        """Take all of them away, or all of ``agent``: its turn is over."""
        shown = self._queue[0] if self._queue else None
        self._queue = deque(item for item in self._queue if agent and item.agent != agent)
        if not self._queue or self._queue[0] is not shown:
            self._open()
            self._count()

    @on(AskForm.Done)
    def _answered(self, event: AskForm.Done) -> None:
        event.stop()
        if event.form is not self._form or not self._queue:
            return
        waiting = self._queue.popleft()
        self._done += 1
        self._open()
        self._count()
        self.post_message(self.Answered(waiting.ask_id, event.reply, event.interrupt))

    def _open(self) -> None:
        """Show the first of the queue, or go away when it is empty."""
        self._watch_time()
        had_focus = self.has_focus_within
        if self._form is not None:
            self._form.close()
            self._form = None
        if self._queue:
            first = self._queue[0]
            self._form = AskForm(first.question, first.agent, self._clock, self._writing)
            self.display = True
            self.mount(self._form)
            return
        self.display, self._done = False, 0
        if had_focus and self._came_from is not None and self._came_from.is_attached:
            self._came_from.focus()
        self._came_from = None

    def _count(self) -> None:
        """The title: what is asked, the place in the queue, and the time that is left."""
        if not self._queue:
            return
        first = self._queue[0]
        total = self._done + len(self._queue)
        who = asker(first.agent)
        parts = [f"{who} asks: {heading(first.question)}" if who else heading(first.question)]
        if total > 1:
            parts.append(f"{self._done + 1} of {total}")
        if first.question.timeout is not None:
            left = max(0.0, first.since + first.question.timeout - self._clock())
            long = time_left(left, first.question.on_timeout)
            room = self.size.width - len(" · ".join(parts)) - 9
            parts.append(long if len(long) <= room or not self.size else long.partition(" in ")[2])
        title = Content(f" {' · '.join(parts)} ")
        if title != self.border_title:
            self.border_title = title

    def _watch_time(self) -> None:
        """Count down once a second, only while something is shown that runs out."""
        runs_out = bool(self._queue) and self._queue[0].question.timeout is not None
        if self._tick is not None and not runs_out:
            self._tick.stop()
            self._tick = None
        elif self._tick is None and runs_out:
            self._tick = self.set_interval(1.0, self._count)

    def focus(self, scroll_visible: bool = True, *, from_app_focus: bool = False) -> AskPanel:
        """Focus the question that is shown."""
        if self._form is not None:
            self._form.focus(scroll_visible)
        return self
