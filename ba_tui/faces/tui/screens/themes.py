"""The theme picker: what the cursor is on is shown at once; leaving without a choice brings the old one back."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.widgets import OptionList

from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of


class ThemePicker(Picker):
    """Dismissed with the name of a theme."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("Theme", ())
        self._names = names
        self._before = ""

    def on_mount(self) -> None:
        themes = app_of(self).available_themes
        self._before = app_of(self).theme
        self.choices = [
            PickerChoice(
                name,
                (name, "dark" if themes[name].dark else "light"),
                current=name == self._before,
            )
            for name in self._names
        ]
        super().on_mount()

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        name = event.option_id
        if name in self._names and name is not None:
            app_of(self).theme = name

    def action_cancel(self) -> None:
        app_of(self).theme = self._before
        super().action_cancel()
