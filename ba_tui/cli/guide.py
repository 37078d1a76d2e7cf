"""``ba guide``: prints the pages of the guide. ``ba_tui.guide`` finds them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import print_line
from ba_tui.core.errors import UsageError

if TYPE_CHECKING:
    from ba_tui.guide import Guide, GuidePage


def complete_topics(incomplete: str) -> list[tuple[str, str]]:
    """Return the topics that begin with ``incomplete`` and their titles, for the shell."""
    from ba_tui.guide import Guide  # noqa: PLC0415 - --help must not read the pages

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
    from ba_tui.guide import Guide, printed  # noqa: PLC0415 - see complete_topics

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
        _render(printed(page))
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


def _render(text: str) -> None:
    from ba_tui.cli.terminal_page import print_page  # noqa: PLC0415 - a page in a terminal alone needs rich's Markdown

    print_page(text)
