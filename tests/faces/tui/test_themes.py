"""Every theme file: complete, readable at AA on every ground it uses, and the built-in two equal to their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from textual.color import Color

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.themes import DARK, LIGHT, looks_light, read_themes, theme_of
from ba_tui.resources import bundled

FILES = sorted(bundled("themes").glob("*.yaml"))
XTERM = {
    "ansi_white": "#e5e5e5",
    "ansi_bright_white": "#ffffff",
    "ansi_cyan": "#00cdcd",
    "ansi_bright_cyan": "#00ffff",
    "ansi_bright_green": "#00ff00",
    "ansi_bright_yellow": "#ffff00",
    "ansi_bright_red": "#ff6060",
}
TEXTS = ("foreground", "primary", "secondary", "accent", "success", "warning", "error", "muted")
GROUNDS = ("background", "surface", "panel")


def luminance(color: Color) -> float:
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Color, two: Color) -> float:
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def color(values: dict[str, str], key: str) -> Color:
    """Of the sixteen the terminal decides; they are judged as xterm has them, on black."""
    default = "#000000" if key in GROUNDS else "#e5e5e5"
    return Color.parse(XTERM.get(values[key], default) if values[key].startswith("ansi") else values[key])


def test_the_themes_that_are_promised_are_there() -> None:
    assert {"dark", "light", "high-contrast", "ansi-16"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_contrast(path: Path) -> None:
    values = yaml.safe_load(path.read_text("utf-8"))
    least = 7.0 if path.stem == "high-contrast" else 4.5
    weak = {
        f"{text} on {ground}": round(contrast(color(values, text), color(values, ground)), 2)
        for text in TEXTS
        for ground in GROUNDS
        if contrast(color(values, text), color(values, ground)) < least
    }
    assert not weak


@pytest.mark.parametrize("built", [DARK, LIGHT], ids=["dark", "light"])
def test_the_first_paint_looks_like_the_file(built: dict[str, object]) -> None:
    assert yaml.safe_load((bundled("themes") / f"{built['name']}.yaml").read_text("utf-8")) == built


def test_a_broken_theme_is_named_and_the_others_load(tmp_path: Path) -> None:
    (tmp_path / "torn.yaml").write_text("name: torn\nprimary: [")
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "few.yaml").write_text("primary: '#123456'\n")
    themes, faults = read_themes((bundled("themes"), tmp_path))
    assert {path.stem for path in FILES} == {theme.name for theme in themes}
    assert [fault.split()[1] for fault in faults] == ["few.yaml", "list.yaml", "torn.yaml"]


def test_a_colour_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="muted"):
        theme_of({**DARK, "muted": "greyish"})


@pytest.mark.parametrize(("value", "light"), [("0;15", True), ("15;default;7", True), ("15;0", False), ("", False)])
def test_colorfgbg(value: str, light: bool) -> None:
    assert looks_light({"COLORFGBG": value}) is light
