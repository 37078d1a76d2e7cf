"""One memory in full, and its text to edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.rows import painted
from ba_tui.faces.tui.screens.picker import LOW, SHEETS
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.faces.tui.widgets.text_fields import ClusterArea

Save = Callable[[str], Awaitable[object]]
"""Stores a text. Raises BaError."""


class EntryPage(ModalScreen[None]):
    """``markdown`` to read; copying gives ``text``."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close")]

    def __init__(self, markdown: str, text: str) -> None:
        super().__init__(classes="picker")
        self._markdown = markdown
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static("One memory", classes="title", markup=False)
            yield MarkdownPage()
            yield Static("↑ ↓ scroll · / search · Ctrl+Y copy · Esc close", classes="keys", markup=False)

    def on_mount(self) -> None:
        page = self.query_one(MarkdownPage)
        page.focus()
        page.read(self._markdown)

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self._text))

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        """It is open already."""
        event.stop()


class EntryText(ClusterArea):
    """Esc and Ctrl+S are the screen's."""

    DEFAULT_CSS = """
    EntryText { height: 1fr; border: none; padding: 0; background: $panel; }
    EntryText:focus { border: none; }
    """

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.prevent_default()  # else TextArea moves the focus on
        else:
            await super()._on_key(event)


class EntryEditor(ModalScreen[bool]):
    """Dismissed with True once the text is stored. A text that is refused stays here with the reason."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    KEYS = "Ctrl+S save · Esc cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("escape", "dismiss(False)", "Cancel", priority=True),
    ]

    def __init__(self, text: str, save: Save) -> None:
        super().__init__(classes="picker")
        self._before = text
        self._save = save

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static("Edit memory", classes="title", markup=False)
            yield EntryText(self._before, soft_wrap=True, compact=True, highlight_cursor_line=False)
            yield Static(self.KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        field = self.query_one(EntryText)
        field.focus()
        field.move_cursor(field.document.end)

    def action_save(self) -> None:
        text = self.query_one(EntryText).text.strip()
        if not text:
            self._say("A memory needs a text. To remove it: Esc, then Ctrl+D.")
        elif text == self._before.strip():
            self.dismiss(False)
        else:
            self.run_worker(partial(self._store, text), group="save", exclusive=True, exit_on_error=False)

    async def _store(self, text: str) -> None:
        try:
            await self._save(text)
        except BaError as error:
            self._say(error.with_hint)
            return
        self.dismiss(True)

    def _say(self, told: str) -> None:
        self.query_one(".keys", Static).update(painted(told))
