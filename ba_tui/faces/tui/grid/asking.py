"""The line in which a grid asks for words: a filter, what to search, a row, a file to export to."""

from __future__ import annotations

from typing import Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ba_tui.faces.tui.widgets.text_fields import ClusterInput

Purpose: TypeAlias = Literal["filter", "search", "row", "export", "confirm"]


class AskLine(Horizontal):
    """Hidden until it asks."""

    DEFAULT_CSS = """
    AskLine {
        height: 1;
        display: none;
        & Static { width: auto; max-width: 40%; padding: 0 1 0 0; text-style: bold; }
        & Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    }
    """
    BINDINGS = [Binding("escape", "leave", "Cancel", show=False)]  # noqa: RUF012 - as Textual has it

    class Answered(Message):
        """Enter: ``text`` for ``purpose``."""

        def __init__(self, purpose: Purpose, text: str) -> None:
            super().__init__()
            self.purpose: Purpose = purpose
            self.text = text

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
