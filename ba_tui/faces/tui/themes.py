"""Themes: the two built-in ones of the first paint, those of ``themes/*.yaml``, and the base class of ba's apps.

The style sheets define how colours are used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from textual.app import App
from textual.color import Color, ColorParseError
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.theme import Theme

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.terminal import GroundKnown, SuddenEnd, TerminalGone, TerminalInput
from ba_tui.resources import read_regular

LARGEST = 1_000_000
"""Bytes of a theme's file that are read."""
COLORS = (
    *("primary", "secondary", "accent", "foreground", "background"),
    *("surface", "panel", "success", "warning", "error"),
)


def _built_in(name: str, *colours: str) -> Mapping[str, Any]:
    return {"name": name, "dark": name == "dark", **dict(zip((*COLORS, "muted"), colours, strict=True))}


DARK = _built_in(
    *("dark", "#6fb3d2", "#8fa8c8", "#6fb3d2", "#d8dbe0", "#131518", "#1a1d21"),
    *("#24282e", "#82bd84", "#d9ab5f", "#e5787f", "#9aa2ad"),
)
LIGHT = _built_in(
    *("light", "#0b5f8a", "#3d5a80", "#0b5f8a", "#24292f", "#fbfbfa", "#f2f2ef"),
    *("#e6e6e2", "#1d6a35", "#7a4f00", "#b3261e", "#57606a"),
)


def _printed(*colours: str) -> TerminalTheme:
    """Return a palette of sixteen colours, normal and bright, with background and foreground."""
    triplets = [Color.parse(colour).rgb for colour in colours]
    return TerminalTheme(triplets[0], triplets[1], triplets[2:10], triplets[10:])


PRINTED_DARK = _printed(
    *("#131518", "#d8dbe0"),
    *("#000000", "#e5787f", "#82bd84", "#d9ab5f", "#7ea6e8", "#c68fd6", "#63bcc2", "#d8dbe0"),
    *("#9aa2ad", "#f29aa0", "#a3d4a5", "#ecc987", "#a3c1f2", "#dcb2e6", "#8fd4d8", "#ffffff"),
)
PRINTED_LIGHT = _printed(
    *("#fbfbfa", "#24292f"),
    *("#24292f", "#b3261e", "#1d6a35", "#7a4f00", "#0b4fa8", "#7d3c98", "#0e6468", "#e6e6e2"),
    *("#57606a", "#a8201a", "#1a6130", "#6f4700", "#0b4391", "#6f3388", "#0c585c", "#ffffff"),
)
"""Colours for the output of programs, readable on ba's backgrounds; ``ansi_segments`` handles black and white."""


_GROUNDS = ("background", "background-hover", "background-active", "corner-color")


def theme_of(values: Mapping[str, Any]) -> Theme:
    """Return a Textual theme made from one flat mapping; text colours are used without blending.

    Raises:
        UsageError: a colour is missing or invalid.
    """
    missing = [key for key in ("name", *COLORS, "muted") if not isinstance(values.get(key), str)]
    if missing:
        raise UsageError(f"A theme lacks {', '.join(missing)}.", "See themes/dark.yaml for all of its keys.")
    for key in (*COLORS, "muted"):
        try:
            Color.parse(values[key])
        except ColorParseError as error:
            raise UsageError(f"{key}: {values[key]!r} is not a colour.", "Write it as #rrggbb.") from error
    colors: dict[str, Any] = {key: str(values[key]) for key in COLORS}
    muted, ansi = str(values["muted"]), bool(values.get("ansi"))
    panel, selection = (muted, "ansi_cyan") if ansi else (colors["panel"], f"{colors['accent']} 35%")
    variables: dict[str, str] = {
        **dict.fromkeys(("muted", "text-muted", "text-disabled", "foreground-muted", "scrollbar-hover"), muted),
        **{f"text-{each}": colors[each] for each in ("primary", "secondary", "accent", "success", "warning", "error")},
        **dict.fromkeys(("border", "scrollbar-active", "block-cursor-background"), colors["accent"]),
        **dict.fromkeys(("border-blurred", "scrollbar"), panel),
        **{f"scrollbar-{each}": colors["background"] for each in _GROUNDS},
        "block-cursor-foreground": "ansi_black" if ansi else colors["background"],
        "block-cursor-text-style": "none",
        "input-cursor-background": colors["foreground"],
        "input-cursor-foreground": colors["background"],
        "input-cursor-text-style": "reverse" if ansi else "none",
        **dict.fromkeys(("input-selection-background", "screen-selection-background"), selection),
    }
    if ansi:
        variables |= {
            "ansi-background": "ansi_black" if values.get("dark", True) else "ansi_white",
            "ansi-foreground": "ansi_white" if values.get("dark", True) else "ansi_black",
            "screen-selection-foreground": "ansi_black",
            "input-selection-foreground": "ansi_black",
        }
    variables |= {str(key): str(value) for key, value in cast("dict[Any, Any]", values.get("variables") or {}).items()}
    return Theme(
        name=str(values["name"]), dark=bool(values.get("dark", True)), ansi=ansi, variables=variables, **colors
    )


def read_themes(folders: Iterable[Path]) -> tuple[list[Theme], list[str]]:
    """Return the themes of ``folders``, where later ones replace earlier ones by name, and the errors."""
    import yaml  # noqa: PLC0415 - after the first paint

    themes: dict[str, Theme] = {}
    faults: list[str] = []
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        try:
            values: Any = yaml.safe_load(read_regular(path, LARGEST).decode("utf-8"))
            if not isinstance(values, dict):
                raise UsageError("The file must contain a mapping.")
            theme = theme_of({"name": path.stem, **cast("dict[str, Any]", values)})
            themes[theme.name] = theme
        except (OSError, UnicodeDecodeError, yaml.YAMLError, UsageError) as error:
            why = str(getattr(error, "strerror", None) or error)
            faults.append(f"Theme {path.name} was left out: {' '.join(why.split())}")
    return list(themes.values()), faults


def looks_light(env: Mapping[str, str] | None = None) -> bool:
    """Return whether the terminal says (COLORFGBG) that its background is light."""
    ground = (os.environ if env is None else env).get("COLORFGBG", "").rpartition(";")[2]
    return ground in {"7", "15"}


# NO_COLOR: marks, bold and reverse replace colours. Textual's own filter makes greys, which are colours too.

STANDS_OUT = 60.0
"""Least distance, in RGB, between the background of a selection and that of the app."""
REVERSED = Style(reverse=True)
UPRIGHT = Style(reverse=False)


class Colourless(LineFilter):
    """Remove colours; reverse text on a background that differs. ``ground`` returns the app's background."""

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
            # Textual reads the variable when the app is created; child processes need it too.
            os.environ["NO_COLOR"] = "1"
        super().__init__()
        if self.no_color:
            # Replaces the filter that makes greys; Textual has no public way to choose another.
            self._filters[:] = [Colourless(lambda: self.current_theme.background)]
        self._wanted = "" if wanted == "auto" else wanted
        self.theme_names: list[str] = []
        self.left_because = ""
        """Why the app quit when the user did not ask for it."""
        for values in (DARK, LIGHT):
            self.register_theme(theme_of(values))
            self.theme_names.append(str(values["name"]))
        self.ansi_theme_dark, self.ansi_theme_light = PRINTED_DARK, PRINTED_LIGHT
        self.theme = self._first_theme()
        self.stylesheet.set_variables(self.get_css_variables())
        self._read_with = self._colours()
        """The colours with which the style sheets were last read."""

    def _first_theme(self) -> str:
        if self._wanted in self.theme_names:
            return self._wanted
        return "light" if "light" in self._wanted or (not self._wanted and looks_light()) else "dark"

    def _colours(self) -> tuple[str, dict[str, str]]:
        return self.theme, self.get_css_variables()

    def refresh_css(self, animate: bool = True) -> None:
        """Read the style sheets only when colours changed; Textual reads them twice before the first paint."""
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
        """Return how to continue after the app failed."""
        return ""

    def _fatal_error(self) -> None:
        """Print one line about an internal error and log the traceback, without local values: they may be secret."""
        error = self._exception
        log.critical("the app failed", exc_info=error)
        words = f"ba stopped because of an error of its own: {type(error).__name__}: {error}"
        self._exit_renderables.append(Text(f"{words}\nNothing that was said is lost. {self.way_back()}".rstrip()))
        self._close_messages_no_wait()
