"""The looks of the transcript as values: one style a role, one sign a state. Where colours come from is the view's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.style import Style

NULL = Style.null()


class Glyphs(NamedTuple):
    """Signs of one cell each, so that nothing is said by colour alone."""

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


def palette(look: Callable[[str, bool], Style], glyphs: Glyphs) -> Palette:
    """The palette that ``look(role, over)`` describes; ``over`` asks for a style to lay over another."""
    styles = {name: look(name, name in OVER) for name in ROLES}
    return Palette(**styles, glyphs=glyphs)
