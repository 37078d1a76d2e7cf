"""A page of Markdown printed to a terminal by rich, in colours that can be read on light and on dark ground."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text
from rich.theme import Theme

WIDEST = 100
"""Columns; longer lines are hard to read."""
THEME = Theme({"markdown.code": "cyan", "markdown.code_block": "none", "markdown.h1": "bold underline"})


class LeftHeading(Heading):
    """A heading where the eye looks for it; rich puts it in the middle."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        if self.tag != "h1":
            yield Text("")
        yield self.text


class TerminalMarkdown(Markdown):
    """Markdown with headings on the left."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": LeftHeading}


def print_page(text: str) -> None:
    """Print ``text`` at the terminal's width. Code keeps the terminal's own colour: no palette suits every ground."""
    console = Console(highlight=False, theme=THEME)
    code = re.sub(r"^```\w+$", "```", text, flags=re.MULTILINE)
    console.print(TerminalMarkdown(code, code_theme="ansi_dark"), width=min(console.width, WIDEST))
