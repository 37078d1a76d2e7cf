"""Styles, signs, CSS and key bindings of the transcript. Theme variables only, one component class for each role."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.style import Style
from textual.binding import Binding, BindingType

NULL = Style.null()


class Glyphs(NamedTuple):
    """Signs of one cell each, so that colour is never the only sign of a state."""

    prompt: str = "❯"
    steered: str = "↳"
    thought: str = "∴"
    queued: str = "○"
    waiting: str = "?"
    running: str = "●"
    ok: str = "✓"
    failed: str = "✗"
    denied: str = "⊘"
    cancelled: str = "■"
    info: str = "·"
    warning: str = "!"
    error: str = "✗"
    retry: str = "↻"
    compressed: str = "≡"
    bullets: tuple[str, ...] = ("•", "◦", "▪")
    todo: str = "☐"
    done: str = "☑"
    bar: str = "▎"
    rule: str = "─"
    column: str = "│"
    cross: str = "┼"
    more: str = "…"
    down: str = "↓"
    unsourced: str = "⁇"
    spinner: str = "◐◓◑◒"


UNICODE = Glyphs()
ASCII = Glyphs(
    prompt=">",
    steered=">",
    thought="*",
    queued="o",
    waiting="?",
    running="*",
    ok="+",
    failed="x",
    denied="-",
    cancelled="#",
    info=".",
    warning="!",
    error="x",
    retry="~",
    compressed="=",
    bullets=("-", "*", "+"),
    todo="[ ]",
    done="[x]",
    bar="|",
    rule="-",
    column="|",
    cross="+",
    more="...",
    down="v",
    unsourced="[?]",
    spinner="|/-\\",
)


class Palette(NamedTuple):
    """Whole styles, background included; those in OVER are laid over another style."""

    text: Style = NULL
    dim: Style = NULL
    title: Style = NULL
    heading: Style = NULL
    code: Style = NULL
    block: Style = NULL
    label: Style = NULL
    quote: Style = NULL
    rule: Style = NULL
    prompt: Style = NULL
    prompt_mark: Style = NULL
    thought: Style = NULL
    name: Style = NULL
    target: Style = NULL
    ok: Style = NULL
    failed: Style = NULL
    denied: Style = NULL
    running: Style = NULL
    waiting: Style = NULL
    warning: Style = NULL
    focus: Style = NULL
    pill: Style = NULL
    bar: Style = NULL
    keyword: Style = NULL
    string: Style = NULL
    comment: Style = NULL
    number: Style = NULL
    function: Style = NULL
    added: Style = NULL
    removed: Style = NULL
    strong: Style = Style(bold=True)
    emphasis: Style = Style(italic=True)
    strike: Style = Style(strike=True)
    link: Style = Style(underline=True)
    unsourced: Style = Style(underline=True)
    match: Style = Style(reverse=True)
    selection: Style = Style(reverse=True)
    glyphs: Glyphs = UNICODE


OVER = frozenset(("strong", "emphasis", "strike", "link", "unsourced", "match", "selection"))
ROLES = tuple(name for name in Palette._fields if name != "glyphs")


def palette_of(look: Callable[[str, bool], Style], glyphs: Glyphs) -> Palette:
    """Return the palette that ``look(role, over)`` describes; ``over`` asks for a style to lay over another."""
    styles = {name: look(name, name in OVER) for name in ROLES}
    return Palette(**styles, glyphs=glyphs)


COMPONENTS = frozenset(f"transcript--{role.replace('_', '-')}" for role in ROLES if role != "selection")

CSS = """
TranscriptView {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
    scrollbar-background: $background;
    scrollbar-background-hover: $background;
    scrollbar-background-active: $background;
    scrollbar-color: $foreground 20%;
    scrollbar-color-hover: $foreground 35%;
    scrollbar-color-active: $primary;

    & > .transcript--text { color: $foreground; }
    & > .transcript--dim { color: $text-muted; }
    & > .transcript--title { color: $text-primary; text-style: bold; }
    & > .transcript--heading { color: $foreground; text-style: bold; }
    & > .transcript--code { color: $text-accent; background: $foreground 6%; }
    & > .transcript--block { color: $foreground; background: $foreground 5%; }
    & > .transcript--label { color: $text-muted; background: $foreground 5%; }
    & > .transcript--quote { color: $foreground 85%; }
    & > .transcript--rule { color: $foreground 30%; }
    & > .transcript--prompt { color: $foreground; background: $primary 14%; }
    & > .transcript--prompt-mark { color: $text-primary; background: $primary 14%; text-style: bold; }
    & > .transcript--thought { color: $text-muted; text-style: italic; }
    & > .transcript--name { color: $foreground; text-style: bold; }
    & > .transcript--target { color: $foreground 85%; }
    & > .transcript--ok { color: $text-success; }
    & > .transcript--failed { color: $text-error; }
    & > .transcript--denied { color: $text-warning; }
    & > .transcript--running { color: $text-primary; }
    & > .transcript--waiting { color: $text-warning; text-style: bold; }
    & > .transcript--warning { color: $text-warning; }
    & > .transcript--focus { color: $primary; }
    & > .transcript--pill { color: $background; background: $primary; text-style: bold; }
    & > .transcript--bar { color: $foreground; background: $foreground 12%; }
    & > .transcript--keyword { color: $text-primary; background: $foreground 5%; }
    & > .transcript--string { color: $text-success; background: $foreground 5%; }
    & > .transcript--comment { color: $text-muted; background: $foreground 5%; text-style: italic; }
    & > .transcript--number { color: $text-warning; background: $foreground 5%; }
    & > .transcript--function { color: $text-accent; background: $foreground 5%; }
    & > .transcript--added { color: $text-success; }
    & > .transcript--removed { color: $text-error; }
    & > .transcript--strong { text-style: bold; }
    & > .transcript--emphasis { text-style: italic; }
    & > .transcript--strike { text-style: strike; }
    & > .transcript--link { color: $text-primary; text-style: underline; }
    & > .transcript--unsourced { color: $text-warning; text-style: underline; }
    & > .transcript--match { text-style: reverse; }

    &:ansi {
        & > .transcript--prompt { background: $background; text-style: bold; }
        & > .transcript--prompt-mark { background: $background; }
        & > .transcript--pill { color: $foreground; background: $background; text-style: bold reverse; }
        & > .transcript--bar { background: $background; text-style: reverse; }
    }
}
"""

BINDINGS: list[BindingType] = [
    Binding("down", "record(1)", "Next record", show=False),
    Binding("up", "record(-1)", "Previous record", show=False),
    Binding("shift+down", "scroll_down", "Scroll down one line", show=False),
    Binding("shift+up", "scroll_up", "Scroll up one line", show=False),
    Binding("enter,ctrl+o", "open", "Open in full", show=False),
    Binding("space", "expand", "Show more, or less", show=False),
    Binding("ctrl+y", "copy", "Copy source text", show=False),
    Binding("home", "scroll_home", "First line", show=False),
    Binding("end", "scroll_end", "Newest line", show=False),
    Binding("ctrl+f", "search", "Search", show=False),
]
