"""The base class of grids and charts: an input line, messages, work that Esc stops, saving to a file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import NeedsConfirmation
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

Purpose: TypeAlias = Literal["filter", "search", "row", "export", "confirm"]


class AskLine(Horizontal):
    """A line for a filter, a search, a row number or the name of a file. Hidden until it asks."""

    DEFAULT_CSS = """
    AskLine {
        height: 1;
        display: none;
        & Static { width: auto; max-width: 40%; padding: 0 1 0 0; text-style: bold; }
        & Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel", show=False)]

    @dataclass
    class Answered(Message):
        """Enter: ``text`` for ``purpose``."""

        purpose: Purpose
        text: str

    class Left(Message):
        """Esc."""

    def __init__(self) -> None:
        super().__init__()
        self.purpose: Purpose = "search"

    def compose(self) -> ComposeResult:
        yield Static(markup=False)
        yield ClusterInput(compact=True, select_on_focus=False)

    def ask(self, purpose: Purpose, label: str, value: str = "", hint: str = "") -> None:
        """Take words from the keyboard."""
        self.purpose, self.display = purpose, True
        field = self.query_one(Input)
        self.query_one(Static).update(label)
        field.cursor_blink, field.placeholder = False, hint
        field.value = value
        field.cursor_position = len(value)
        field.focus()

    def close(self) -> None:
        self.display = False

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered(self.purpose, event.value))

    def action_leave(self) -> None:
        self.post_message(self.Left())


class DataPane(Vertical):
    """A view with the id ``grid``, and below it a message, an input line and ``keys``."""

    DEFAULT_CSS = """
    DataPane {
        height: 1fr;
        & .said { height: auto; max-height: 2; color: $text-warning; display: none; }
        & .keys { height: auto; max-height: 3; color: $text-muted; }
    }
    """

    def __init__(self, keys: str) -> None:
        super().__init__()
        self._keys = keys
        self._target = ""

    def compose_controls(self) -> ComposeResult:
        """Yield the widgets below the view."""
        yield Static(classes="said", markup=False)
        yield AskLine()
        yield Static(self._keys, classes="keys", markup=False)

    async def save(self, path: str, *, confirmed: bool) -> None:
        """Save the data to a file. May raise NeedsConfirmation and other BaErrors."""
        raise NotImplementedError

    def say(self, words: str) -> None:
        """Show a line above the keys; hide it if the text is empty."""
        said = self.query_one(".said", Static)
        said.display = bool(words)
        said.update(paintable(words, newlines=False))

    def perform(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start work in place of other work, and show its BaError."""
        self.say("")
        self.run_worker(partial(self._perform, work), group="work", exclusive=True, exit_on_error=False)

    async def _perform(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except BaError as error:
            self.say(error.with_hint)

    def cancel(self) -> bool:
        """Stop the running work; return False if there is none."""
        working = [each for each in self.workers if each.node is self and each.group == "work" and each.is_running]
        for each in working:
            each.cancel()
        return bool(working)

    # The input line

    @property
    def ask_line(self) -> AskLine:
        return self.query_one(AskLine)

    def answer(self, purpose: Purpose, text: str) -> None:
        """Process the typed text. May raise UsageError."""
        if purpose == "export":
            self.perform(partial(self._save, text, confirmed=False))
        elif text.casefold() in {"y", "yes"}:
            self.perform(partial(self._save, self._target, confirmed=True))
        else:
            self.say("Nothing was written.")

    async def _save(self, path: str, *, confirmed: bool) -> None:
        try:
            await self.save(path, confirmed=confirmed)
        except NeedsConfirmation as error:
            self.say(str(error))
            self._target = path
            self.ask_line.ask("confirm", "Write it anyway? y/n:", hint="n")

    def _close_line(self) -> None:
        self.ask_line.close()
        self.query_one("#grid").focus()

    @on(AskLine.Left)
    def _left(self, event: AskLine.Left) -> None:
        event.stop()
        self._close_line()

    @on(AskLine.Answered)
    def _answered(self, event: AskLine.Answered) -> None:
        event.stop()
        self._close_line()
        try:
            self.answer(event.purpose, event.text.strip())
        except BaError as error:
            self.say(error.with_hint)
