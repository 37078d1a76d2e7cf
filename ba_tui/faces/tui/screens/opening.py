"""The first paint: an input and nothing that costs time. What is typed here goes on in the chat that replaces it.

The imports of this file are the wait of everyone who starts ba; keep them few.
"""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widgets import Static

from ba_tui.faces.tui.widgets.composer import Composer


class OpeningScreen(Screen[None]):
    """Looks like an empty chat. ``sent`` are prompts that were sent before there was anybody to send them to."""

    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__(id="opening")
        self.composer = Composer()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static(id="main-area")
        yield Static(id="activity")
        yield self.composer
        yield Static(id="status")

    def on_mount(self) -> None:
        self._focus()

    def _focus(self) -> None:
        """Once every key that came earlier is taken: none may overtake them."""
        if self.message_queue_size:
            self.call_later(self._focus)
        else:
            self.set_focus(self.composer.prompt)

    @on(Key)
    @on(Paste)
    async def _early(self, event: Key | Paste) -> None:
        """What came before the input had the focus."""
        if self.focused is not None:
            return
        if isinstance(event, Key) and event.key == "ctrl+j":
            # From before there was an app: until then the terminal makes a line feed of Enter.
            event.key, event.character = "enter", "\r"
        await self.composer.prompt.take(event)

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        event.stop()
        if event.text.strip():
            self.sent.append(event.text)
