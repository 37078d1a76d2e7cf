"""The base class of sheets: a heading, a body and a line of keys in the middle of the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from ba_tui.core.text.untrusted import paintable

SHEETS = Path(__file__).parents[1] / "styles" / "screens.tcss"
"""Absolute, because screens of features are in other folders."""
LOW: list[tuple[int, str]] | None = [(0, "-low"), (18, "-tall")]
"""Rows of a screen from which a sheet has margins."""
KEY_NAMES = {"underscore": "_", "slash": "/", "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc"}
R = TypeVar("R")


def app_of(screen: Screen[Any]) -> App[Any]:
    """Return the app that shows ``screen``."""
    return cast("App[Any]", screen.app)  # pyright: ignore[reportUnknownMemberType] - App is generic


def spelled(keys: str) -> str:
    """Return ``ctrl+underscore,alt+b`` as ``Ctrl+_  Alt+B``."""
    return "  ".join(_spelled_key(key.strip().split("+")) for key in keys.split(","))


def _spelled_key(parts: list[str]) -> str:
    """Spell one key. A single letter keeps its case: ``g`` and ``G`` are two keys."""
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0]
    return "+".join(KEY_NAMES.get(part, part.title() if len(part) > 1 else part.upper()) for part in parts)


class Sheet(ModalScreen[R]):
    """Subclasses compose the ``body``. Esc dismisses the sheet with None."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    def __init__(self, title: str = "", *, keys: str = "Esc close", classes: str = "picker") -> None:
        super().__init__(classes=classes)
        self.keys = keys
        self._heading = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(paintable(self._heading, newlines=False), classes="title", markup=False)
            yield from self.body()
            yield Static(self.keys, classes="keys", markup=False)

    def body(self) -> ComposeResult:
        """Yield the widgets between the heading and the keys."""
        raise NotImplementedError

    def entitle(self, text: str) -> None:
        """Change the heading."""
        self.query_one(".title", Static).update(paintable(text, newlines=False))

    def say(self, text: str, style: str = "") -> None:
        """Show a message in place of the keys; an empty text shows the keys again."""
        shown = Content.styled(paintable(text, newlines=False), style) if text else self.keys
        self.query_one(".keys", Static).update(shown)

    def action_close(self) -> None:
        self.dismiss(None)
