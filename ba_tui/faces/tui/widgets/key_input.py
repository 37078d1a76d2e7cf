"""An input for an API key: masked, and a paste of several lines is refused instead of cut at the first."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Input


class KeyInput(Input):
    class Refused(Message):
        """What was pasted can't be a key."""

    def __init__(self) -> None:
        super().__init__(id="key", password=True, placeholder="Paste the key, then Enter", compact=True)
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        # Textual would take the first line, and that half of a key would be refused later for no visible reason.
        event.stop()
        event.prevent_default()
        text = event.text.strip()
        if any(map(str.isspace, text)):
            self.post_message(self.Refused())
        elif text:
            self.replace(text, *self.selection)
