"""The fields in which an answer to a question is written. What they paint is neutral, pasted text included."""

from __future__ import annotations

from textual import events
from textual.widget import Widget

from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.widgets.text_fields import ClusterArea, ClusterInput


class WordsInput(ClusterInput):
    """One line of words; Enter and Esc are the panel's."""

    DEFAULT_CSS = """
    WordsInput { height: 1; border: none; padding: 0; background: $panel; }
    WordsInput:focus { border: none; }
    """

    def __init__(self, value: str = "", placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)

    def _on_paste(self, event: events.Paste) -> None:
        words = paintable(" ".join(event.text.split()), newlines=False)
        self.replace(words, *sorted(self.selection))
        event.stop()
        event.prevent_default()


class ArgumentsInput(ClusterArea):
    """The arguments of a call as text; Esc and Ctrl+S are the panel's."""

    DEFAULT_CSS = """
    ArgumentsInput { height: auto; max-height: 8; border: none; padding: 0; background: $panel; }
    ArgumentsInput:focus { border: none; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="indent", compact=True, highlight_cursor_line=False)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.prevent_default()  # else TextArea moves the focus on; it bubbles to the panel

    async def _on_paste(self, event: events.Paste) -> None:
        self.replace(paintable(event.text), *self.selection)
        event.stop()
        event.prevent_default()


class Writing(Widget):
    """The place of one field at a time. What was written is kept for when its field opens again."""

    DEFAULT_CSS = """
    Writing { layout: vertical; height: auto; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, str] = {}
        self._argument = ""
        self.field: WordsInput | ArgumentsInput | None = None

    def kept(self, name: str, otherwise: str = "") -> str:
        return self._kept.get(name, otherwise)

    def open(self, name: str, field: WordsInput | ArgumentsInput) -> None:
        """Put ``field`` here, the cursor at its end."""
        self.close()
        self._argument, self.field = name, field
        self.display = True
        self.mount(field)
        if isinstance(field, ArgumentsInput):
            field.move_cursor(field.document.end)
        field.focus()

    def close(self) -> None:
        if self.field is not None:
            self._kept[self._argument] = self.field.text if isinstance(self.field, ArgumentsInput) else self.field.value
            self.field.remove()
        self.field, self.display = None, False
