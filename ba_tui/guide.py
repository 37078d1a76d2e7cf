"""The guide that ships with ba: its pages in order, and the search for a page.

A page is a Markdown file in ``config/guide``; README.md there lists them by chapter. Links between pages name the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import slip
from ba_tui.core.values import frozen
from ba_tui.resources import bundled

CONTENTS = "README.md"
OFFERED = 3
"""Number of pages to suggest for an unknown topic."""
NAMED = 20
"""Weight of a word in the title or a heading, relative to a mention in the text."""
_CHAPTER = regex(r"## (.+)")
_ENTRY = regex(r"- \[([^\]]+)\]\(([a-z-]+)\.md\): (.+)")
_COMMENT = regex(r"<!--.*?-->\n?", re.DOTALL)
_LINK = regex(r"\[([^\]]+)\]\(([a-z-]+)\.md\)")
_BLOCK = regex(r"\s*(?:[-*+] |\d+[.)] |#{1,6} |>|\||$)")
"""Matches the start of a line that does not continue the previous paragraph."""
_SINGLE = regex(r"\s*(?:#{1,6} |\||```)")
_WORD = regex(r"[^\W_]+")


@frozen
class GuidePage:
    """A page. ``topic`` is its name in commands, ``summary`` the line in the contents; ``text`` is Markdown without
    comments."""

    topic: str
    title: str
    summary: str
    chapter: str
    text: str


class Guide:
    """All pages, read from ``folder`` on creation: about 100 KB, so not on a UI loop."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or bundled("config") / "guide"
        self.pages: Sequence[GuidePage] = tuple(_pages(folder))

    def find(self, words: str, command: str = "ba guide") -> GuidePage:
        """Return the page with this topic, title or file name.

        Raises:
            UsageError: it does not exist; the hint shows with ``command`` how to open similar pages.
        """
        wanted = _topic(words)
        for page in self.pages:
            if wanted in {page.topic, _topic(page.title)}:
                return page
        raise UsageError(f"The guide has no page {words.strip()!r}.", self._offer(words, command))

    def linked(self, address: str) -> GuidePage | None:
        """Return the page behind a link; None for a web address."""
        return next((page for page in self.pages if address == f"{page.topic}.md"), None)

    def search(self, words: str) -> list[GuidePage]:
        """Return the pages that contain all ``words``, best first."""
        wanted = _WORD.findall(words.casefold())
        scored = [(_score(page, wanted), page) for page in self.pages]
        return [page for score, page in sorted(scored, key=lambda each: -each[0]) if score]

    def _offer(self, words: str, command: str) -> str:
        if near := slip(_topic(words), (page.topic for page in self.pages)):
            return f"Did you mean {command} {near}?"
        if found := self.search(words)[:OFFERED]:
            return f"These pages mention it: {', '.join(f'{command} {page.topic}' for page in found)}."
        return f"{command} lists the pages."


def flowed(text: str) -> str:
    """Return Markdown with the lines of each paragraph and list item joined, because the reader's window wraps them."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        alone = code or fence or _BLOCK.match(line)
        if lines and not alone and lines[-1] and not _SINGLE.match(lines[-1]):
            lines[-1] += f" {line.lstrip()}"
        else:
            lines.append(line)
        code ^= fence
    return "\n".join(lines)


def printed(page: GuidePage) -> str:
    """Return the page's Markdown for a terminal: links name the command that prints the other page."""
    return _LINK.sub(r"\1 (`ba guide \2`)", page.text)


def _pages(folder: Path) -> list[GuidePage]:
    pages: list[GuidePage] = []
    chapter = ""
    for line in (folder / CONTENTS).read_text("utf-8").splitlines():
        if heading := _CHAPTER.fullmatch(line):
            chapter = heading[1]
        elif entry := _ENTRY.fullmatch(line):
            text = _COMMENT.sub("", (folder / f"{entry[2]}.md").read_text("utf-8"))
            pages.append(GuidePage(entry[2], entry[1], entry[3].replace("`", ""), chapter, text))
    return pages


def _topic(words: str) -> str:
    """Normalize ``Undo a change``, ``undo-a-change`` and ``undo.md`` for comparison."""
    return "-".join(_WORD.findall(words.casefold().strip().removeprefix("/").removesuffix(".md")))


def _score(page: GuidePage, wanted: Sequence[str]) -> int:
    heads = [line for line in page.text.splitlines() if line.startswith("#")]
    about = " ".join((page.topic, page.title, page.summary, *heads)).casefold()
    text = page.text.casefold()
    counts = [text.count(word) + NAMED * about.count(word) for word in wanted]
    return sum(counts) if counts and all(counts) else 0
