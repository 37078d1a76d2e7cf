"""Colours: the two looks that the first paint knows, and those of ``themes/*.yaml`` which are read after it.

Which theme is wanted is decided by the app; how colours are used stands in the style sheets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from rich.terminal_theme import TerminalTheme
from textual.color import Color, ColorParseError
from textual.theme import Theme

from ba_tui.core.errors import UsageError
from ba_tui.resources import read_regular

LARGEST = 1_000_000
"""Bytes of a theme's file that are read."""
COLORS = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "success",
    "warning",
    "error",
)
DARK: Mapping[str, Any] = {
    "name": "dark",
    "dark": True,
    "primary": "#6fb3d2",
    "secondary": "#8fa8c8",
    "accent": "#6fb3d2",
    "foreground": "#d8dbe0",
    "background": "#131518",
    "surface": "#1a1d21",
    "panel": "#24282e",
    "success": "#82bd84",
    "warning": "#d9ab5f",
    "error": "#e5787f",
    "muted": "#9aa2ad",
}
LIGHT: Mapping[str, Any] = {
    "name": "light",
    "dark": False,
    "primary": "#0b5f8a",
    "secondary": "#3d5a80",
    "accent": "#0b5f8a",
    "foreground": "#24292f",
    "background": "#fbfbfa",
    "surface": "#f2f2ef",
    "panel": "#e6e6e2",
    "success": "#1d6a35",
    "warning": "#7a4f00",
    "error": "#b3261e",
    "muted": "#57606a",
}


def _printed(*colours: str) -> TerminalTheme:
    """Sixteen colours, normal and bright, on a ground with its own words."""
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
"""What programs print, readable on the grounds of our themes; black and white alone are left to ansi_segments."""


def theme_of(values: Mapping[str, Any]) -> Theme:
    """A Textual theme from one flat mapping; text colours are taken as they stand instead of being blended.

    Raises:
        UsageError: a colour is missing or is none.
    """
    missing = [key for key in ("name", *COLORS, "muted") if not isinstance(values.get(key), str)]
    if missing:
        raise UsageError(f"A theme lacks {', '.join(missing)}.", "See themes/dark.yaml for all of its keys.")
    for key in (*COLORS, "muted"):
        try:
            Color.parse(values[key])
        except ColorParseError as error:
            raise UsageError(f"{key}: {values[key]!r} is no colour.", "Write it as #rrggbb.") from error
    colors: dict[str, Any] = {key: str(values[key]) for key in COLORS}
    muted, ansi = str(values["muted"]), bool(values.get("ansi"))
    variables = {
        "muted": muted,
        "text-muted": muted,
        "text-disabled": muted,
        "foreground-muted": muted,
        "text-primary": colors["primary"],
        "text-secondary": colors["secondary"],
        "text-accent": colors["accent"],
        "text-success": colors["success"],
        "text-warning": colors["warning"],
        "text-error": colors["error"],
        "border": colors["accent"],
        "border-blurred": muted if ansi else colors["panel"],
        "scrollbar": muted if ansi else colors["panel"],
        "scrollbar-hover": muted,
        "scrollbar-active": colors["accent"],
        "scrollbar-background": colors["background"],
        "scrollbar-background-hover": colors["background"],
        "scrollbar-background-active": colors["background"],
        "scrollbar-corner-color": colors["background"],
        "block-cursor-background": colors["accent"],
        "block-cursor-foreground": colors["background"] if not ansi else "ansi_black",
        "block-cursor-text-style": "none",
        "input-cursor-background": colors["foreground"],
        "input-cursor-foreground": colors["background"],
        "input-cursor-text-style": "none" if not ansi else "reverse",
        "input-selection-background": f"{colors['accent']} 35%" if not ansi else "ansi_cyan",
        "screen-selection-background": f"{colors['accent']} 35%" if not ansi else "ansi_cyan",
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
    """All themes of ``folders`` (later ones replace earlier ones of the same name), and what could not be read."""
    import yaml  # noqa: PLC0415 - after the first paint

    themes: dict[str, Theme] = {}
    faults: list[str] = []
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        try:
            values: Any = yaml.safe_load(read_regular(path, LARGEST).decode("utf-8"))
            if not isinstance(values, dict):
                raise UsageError("It holds no mapping.")
            theme = theme_of({"name": path.stem, **cast("dict[str, Any]", values)})
            themes[theme.name] = theme
        except (OSError, UnicodeDecodeError, yaml.YAMLError, UsageError) as error:
            why = str(getattr(error, "strerror", None) or error)
            faults.append(f"Theme {path.name} was left out: {' '.join(why.split())}")
    return list(themes.values()), faults


def looks_light(env: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal says (COLORFGBG) that its background is light."""
    ground = (os.environ if env is None else env).get("COLORFGBG", "").rpartition(";")[2]
    return ground in {"7", "15"}
