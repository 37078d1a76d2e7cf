"""``ba guide``: print the pages of the guide, in a terminal with colours that suit light and dark backgrounds.

``ba_tui.guide`` finds the pages.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, ClassVar

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text
from rich.theme import Theme

from ba_tui.cli.streams import print_line
from ba_tui.core.errors import UsageError
from ba_tui.guide import Guide, GuidePage, printed

WIDEST = 100
"""Columns; longer lines are hard to read."""
THEME = Theme({"markdown.code": "cyan", "markdown.code_block": "none", "markdown.h1": "bold underline"})


def complete_topics(incomplete: str) -> list[tuple[str, str]]:
    """Return the topics that begin with ``incomplete`` and their titles, for the shell."""
    return [(page.topic, page.title) for page in Guide().pages if page.topic.startswith(incomplete)]


def guide(
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC", help="The page to print; without one, all topics.", autocompletion=complete_topics
        ),
    ] = None,
) -> int:
    """Print a page of the guide, or the list of its topics."""
    pages, words = Guide(), " ".join(topic or ())
    if not words:
        _contents(pages)
        return 0
    try:
        page = pages.find(words)
    except UsageError as error:
        if len(topic or ()) > 1:
            raise UsageError(str(error), f"{error.hint} To send it as a prompt: ba -- guide {words}") from error
        raise
    if sys.stdout.isatty():
        print_page(printed(page))
    else:
        print_line(printed(page).rstrip())
    return 0


def _contents(guide: Guide) -> None:
    widest = max(len(page.topic) for page in guide.pages)
    chapters: dict[str, list[GuidePage]] = {}
    for page in guide.pages:
        chapters.setdefault(page.chapter, []).append(page)
    for chapter, pages in chapters.items():
        print_line(chapter)
        for page in pages:
            print_line(f"  {page.topic:<{widest}}  {page.title}")
        print_line("")
    print_line("ba guide TOPIC prints a page; /guide opens it in ba.")


class LeftHeading(Heading):
    """A heading on the left; rich centres headings."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        if self.tag != "h1":
            yield Text("")
        yield self.text


class TerminalMarkdown(Markdown):
    """Markdown with headings on the left."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": LeftHeading}


def print_page(text: str) -> None:
    """Print ``text`` at the terminal's width. Code has the terminal's own colour: no palette suits every background."""
    console = Console(highlight=False, theme=THEME)
    code = re.sub(r"^```\w+$", "```", text, flags=re.MULTILINE)
    console.print(TerminalMarkdown(code, code_theme="ansi_dark"), width=min(console.width, WIDEST))
