"""What every app of ours has in common: its first colours, how it reads the terminal, and how it leaves one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from ba_tui.faces.tui.terminal import GroundKnown, SuddenEnd, TerminalGone, TerminalInput
from ba_tui.faces.tui.themes import DARK, LIGHT, PRINTED_DARK, PRINTED_LIGHT, looks_light, theme_of

# NO_COLOR: marks, bold and reverse replace colours. Textual's own filter makes greys, which are colours too.

STANDS_OUT = 60.0
"""How far a background is from that of the app, as a distance of RGB values, when it marks what is chosen."""
REVERSED = Style(reverse=True)
UPRIGHT = Style(reverse=False)


class Colourless(LineFilter):
    """Takes colours away and reverses what stood on a background that stands out. ``ground`` tells the app's own."""

    def __init__(self, ground: Callable[[], str | None]) -> None:
        super().__init__()
        self._ground = ground

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        ground = _rgb(self._ground() or "black")
        return [Segment(text, style and _plain(style, ground), control) for text, style, control in segments]


@lru_cache(8)
def _rgb(color: str) -> tuple[int, int, int]:
    return Color.parse(color).rgb


@lru_cache(2_048)
def _plain(style: Style, ground: tuple[int, int, int]) -> Style:
    marked = _stands_out(style.bgcolor, ground)
    return style.without_color + (UPRIGHT if marked and style.reverse else REVERSED if marked else Style.null())


def _stands_out(color: RichColor | None, ground: tuple[int, int, int]) -> bool:
    if color is None or color.is_default:
        return False
    found = color.get_truecolor()
    return sum((one - other) ** 2 for one, other in zip(found, ground, strict=True)) > STANDS_OUT**2


log = logging.getLogger(__name__)
CLOSED = "The terminal was closed."
Result = TypeVar("Result")


class ThemedApp(App[Result]):
    """``wanted`` is the name of a theme; without one, or with ``auto``, the app follows the terminal."""

    def __init__(self, wanted: str, *, color: bool) -> None:
        if not color:
            # Textual reads the variable when it is made; an environment without colour needs all of its children.
            os.environ["NO_COLOR"] = "1"
        super().__init__()
        if self.no_color:
            # In place of greys; Textual has no public way to choose them.
            self._filters[:] = [Colourless(lambda: self.current_theme.background)]
        self._wanted = "" if wanted == "auto" else wanted
        self.theme_names: list[str] = []
        self.left_because = ""
        """What made the app leave, where nobody asked for it."""
        for values in (DARK, LIGHT):
            self.register_theme(theme_of(values))
            self.theme_names.append(str(values["name"]))
        self.ansi_theme_dark, self.ansi_theme_light = PRINTED_DARK, PRINTED_LIGHT
        self.theme = self._first_theme()
        self.stylesheet.set_variables(self.get_css_variables())
        self._read_with = self._colours()
        """What the style sheets were last read with."""

    def _first_theme(self) -> str:
        if self._wanted in self.theme_names:
            return self._wanted
        return "light" if "light" in self._wanted or (not self._wanted and looks_light()) else "dark"

    def _colours(self) -> tuple[str, dict[str, str]]:
        return self.theme, self.get_css_variables()

    def refresh_css(self, animate: bool = True) -> None:
        """Read the style sheets again for other colours. Textual also does so twice before the first paint, and then
        forgets what it read."""
        if (colours := self._colours()) != self._read_with:
            self._read_with = colours
            super().refresh_css(animate)

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        return TerminalInput if chosen is LinuxDriver else chosen

    def _on_ground_known(self, event: GroundKnown) -> None:
        """Follow the terminal unless a theme was chosen."""
        if not self._wanted and self.theme in {"dark", "light"}:
            self.theme = "light" if event.light else "dark"

    # Leaving

    def on_mount(self) -> None:
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, self._leave_now, "ba was stopped by SIGTERM.")
            loop.add_signal_handler(signal.SIGHUP, self._leave_now, CLOSED)
            if isinstance(driver := self._driver, TerminalInput):
                SuddenEnd(driver.give_back)

    def _leave_now(self, why: str) -> None:
        self.left_because = self.left_because or why
        self.run_worker(self.action_quit, exit_on_error=False)

    def _on_terminal_gone(self, _event: TerminalGone) -> None:
        self._leave_now(CLOSED)

    def way_back(self) -> str:
        """What to tell a person whose app failed, so that they can go on."""
        return ""

    def _fatal_error(self) -> None:
        """An error of ours: one line for the person, the traceback for the log. Local values could hold secrets."""
        error = self._exception
        log.critical("the app failed", exc_info=error)
        words = f"ba stopped because of an error of its own: {type(error).__name__}: {error}"
        self._exit_renderables.append(Text(f"{words}\nNothing that was said is lost. {self.way_back()}".rstrip()))
        self._close_messages_no_wait()
