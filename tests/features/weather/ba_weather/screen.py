"""The screen of /weather. Imported when the command runs for the first time."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_weather.session import look_up


class WeatherScreen(ModalScreen[None]):
    BINDINGS: ClassVar = [("escape", "dismiss", "Close")]

    def __init__(self, city: str) -> None:
        super().__init__()
        self.city = city

    def compose(self) -> ComposeResult:
        yield Static(look_up(self.city), id="weather")


def show_weather(chat: Any, words: str) -> None:
    """``chat`` is the chat of the app, ``words`` what follows the command's name."""
    chat.ba.push_screen(WeatherScreen(words.strip() or "Lisbon"))
