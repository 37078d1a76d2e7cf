"""Every theme file: complete, readable at AA on every ground it uses, and the built-in two equal to their files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from rich.color import Color as Colour
from rich.terminal_theme import TerminalTheme
from textual.app import App, ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.widgets import OptionList

from ba_tui.core.errors import UsageError
from ba_tui.core.text.ansi import Ink
from ba_tui.faces.tui import screens
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.themes import DARK, LIGHT, PRINTED_DARK, PRINTED_LIGHT, looks_light, read_themes, theme_of
from ba_tui.faces.tui.transcript.lines import ink_style
from ba_tui.faces.tui.transcript.palette import COMPONENTS
from ba_tui.faces.tui.transcript.view import TranscriptView
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
SHEET = RowView.COMPONENT_CLASSES
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


class Shown(App[None]):
    """What paints on grounds of its own: the conversation, the rows of a difference, a list in a sheet."""

    CSS_PATH = Path(screens.__file__).parents[1] / "styles" / "screens.tcss"

    def compose(self) -> ComposeResult:
        yield TranscriptView()
        yield RowView()
        with Vertical(classes="sheet"):
            yield OptionList("one")


async def test_contrast_as_it_is_painted() -> None:
    """Each role over the ground it stands on; lines and bars are no text. Of sixteen colours a share is all of one,
    with the same words on it: there such grounds are left out, or reversed."""
    app = Shown()
    weak: dict[str, float] = {}
    async with app.run_test() as pilot:
        view, options = app.query_one(TranscriptView), app.query_one(OptionList)
        chosen = options, "option-list--option-highlighted"
        roles = [
            chosen,
            *((view, name) for name in COMPONENTS),
            *((app.query_one(RowView), name) for name in SHEET),
        ]
        for theme in read_themes((bundled("themes"),))[0]:
            app.register_theme(theme)
            app.theme = theme.name
            await pilot.pause()
            if theme.ansi:
                grounds = {name: widget.get_component_styles(name).background.ansi for widget, name in roles}
                assert not {name for name, ground in grounds.items() if ground not in {None, -1}}
                continue
            for name in COMPONENTS - {"transcript--rule"}:
                styles = view.get_component_styles(name)
                ground = view.background_colors[1] + styles.background
                got = contrast(ground + styles.color, ground) if styles.has_rule("color") else 21.0
                if got < 4.5:
                    weak[f"{theme.name} {name}"] = round(got, 2)
            ground = options.background_colors[1] + options.get_component_styles(chosen[1]).background
            for word in ("text-muted", "foreground"):
                if (got := contrast(Color.parse(app.theme_variables[word]), ground)) < 4.5:
                    weak[f"{theme.name} {word} where the pointer stands"] = round(got, 2)
    assert not weak


@pytest.mark.parametrize(("printed", "built"), [(PRINTED_DARK, DARK), (PRINTED_LIGHT, LIGHT)], ids=["dark", "light"])
def test_contrast_of_what_programs_print(printed: TerminalTheme, built: Mapping[str, str]) -> None:
    """Black and white without a ground of their own take other colours."""
    seen = [ink_style(Ink(fg=number)).color for number in range(16)]
    words = [Color(*(colour.get_truecolor(printed) if colour else printed.foreground_color)) for colour in seen]
    grounds = [Color.parse(built[key]) for key in GROUNDS]
    assert min(contrast(one, ground) for one in words for ground in grounds) >= 4.5
    assert ink_style(Ink(fg=0, bg=3)).color == Colour.from_ansi(0), "a ground of its own: as it was meant"


@pytest.mark.parametrize("built", [DARK, LIGHT], ids=["dark", "light"])
def test_the_first_paint_looks_like_the_file(built: dict[str, object]) -> None:
    assert yaml.safe_load((bundled("themes") / f"{built['name']}.yaml").read_text("utf-8")) == built


def test_a_broken_theme_is_named_and_the_others_load(tmp_path: Path) -> None:
    (tmp_path / "torn.yaml").write_text("name: torn\nprimary: [")
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "few.yaml").write_text("primary: '#123456'\n")
    os.mkfifo(tmp_path / "pipe.yaml")
    themes, faults = read_themes((bundled("themes"), tmp_path))
    assert {path.stem for path in FILES} == {theme.name for theme in themes}
    assert [fault.split()[1] for fault in faults] == ["few.yaml", "list.yaml", "pipe.yaml", "torn.yaml"]
    assert faults[2].endswith("left out: it is not a regular file")


def test_a_colour_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="muted"):
        theme_of({**DARK, "muted": "greyish"})


@pytest.mark.parametrize(("value", "light"), [("0;15", True), ("15;default;7", True), ("15;0", False), ("", False)])
def test_colorfgbg(value: str, light: bool) -> None:
    assert looks_light({"COLORFGBG": value}) is light
