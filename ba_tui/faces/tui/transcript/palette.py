"""The looks of the transcript as values: one style a role, one sign a state. Where colours come from is the view's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
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
    bullets: tuple[str, ...] = ("•", "◦", "▪")
    todo: str = "☐"
    done: str = "☑"
    bar: str = "▎"
    rule: str = "─"
    column: str = "│"
    cross: str = "┼"
    more: str = "…"
    down: str = "↓"
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
    bullets=("-", "*", "+"),
    todo="[ ]",
    done="[x]",
    bar="|",
    rule="-",
    column="|",
    cross="+",
    more="...",
    down="v",
    spinner="|/-\\",
)


@dataclass(frozen=True, slots=True)
class Palette:
    """Whole styles, background included; the last group is laid over another style."""

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
    strong: Style = field(default=Style(bold=True), metadata={"over": True})
    emphasis: Style = field(default=Style(italic=True), metadata={"over": True})
    strike: Style = field(default=Style(strike=True), metadata={"over": True})
    link: Style = field(default=Style(underline=True), metadata={"over": True})
    match: Style = field(default=Style(reverse=True), metadata={"over": True})
    selection: Style = field(default=Style(reverse=True), metadata={"over": True})
    glyphs: Glyphs = field(default=UNICODE, metadata={"plain": True})


ROLES = tuple(item.name for item in fields(Palette) if not item.metadata.get("plain"))


def palette(look: Callable[[str, bool], Style], glyphs: Glyphs) -> Palette:
    """The palette that ``look(role, over)`` describes; ``over`` asks for a style to lay over another."""
    styles = {
        item.name: look(item.name, bool(item.metadata.get("over")))
        for item in fields(Palette)
        if not item.metadata.get("plain")
    }
    return Palette(**styles, glyphs=glyphs)
