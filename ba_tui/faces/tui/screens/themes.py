"""The theme picker: what the cursor is on is shown at once; leaving without a choice brings the old one back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on
from textual.widgets import OptionList

from ba_tui.faces.tui.screens.picker import Picker, PickerChoice

if TYPE_CHECKING:
    from ba_tui.faces.tui.app import BaApp


class ThemePicker(Picker):
    """Dismissed with the name of a theme."""

    def __init__(self) -> None:
        super().__init__("Theme", ())
        self._before = ""

    def on_mount(self) -> None:
        app = cast("BaApp", self.app)
        self._before = app.theme
        self.choices = [
            PickerChoice(
                name,
                (name, "dark" if app.available_themes[name].dark else "light"),
                current=name == self._before,
            )
            for name in app.theme_names
        ]
        super().on_mount()

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        name = event.option_id
        if name in cast("BaApp", self.app).theme_names:
            cast("BaApp", self.app).theme = name

    def action_cancel(self) -> None:
        cast("BaApp", self.app).theme = self._before
        super().action_cancel()
