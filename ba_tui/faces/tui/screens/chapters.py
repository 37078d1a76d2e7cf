"""The list of the demo's chapters: an app of its own, shown before each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from ba_tui.faces.tui.screens.picker import Picker, PickerChoice
from ba_tui.faces.tui.themed import ThemedApp

HEADING = "ba demo: a scripted tour with real tools and sample data. Pick a chapter."
KEYS = "Enter starts · Esc leaves"


class ChapterPicker(Picker):
    FILTERED = False


class ChapterList(ThemedApp[str]):
    """Returns the name of the chosen chapter, or None. ``chapters``: name, title, what is shown. ``at``: the cursor."""

    TITLE = "ba demo"
    CSS_PATH = "../styles/app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+d", "quit", "Quit", show=False, priority=True)]

    def __init__(self, chapters: Sequence[tuple[str, str, str]], at: str, theme: str, *, color: bool) -> None:
        super().__init__(theme, color=color)
        self._choices = [
            PickerChoice(name, (f"{number}  {title}", shown), current=name == at)
            for number, (name, title, shown) in enumerate(chapters, 1)
        ]

    def get_default_screen(self) -> Screen[None]:
        return Screen()

    def on_mount(self) -> None:
        self.push_screen(ChapterPicker(HEADING, self._choices, keys=KEYS), self.exit)
