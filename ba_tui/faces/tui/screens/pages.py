"""Pages that a row of a list opens: rows of text, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ba_tui.core.text.patterns import regex
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, painted
from ba_tui.faces.tui.screens.sheet import Sheet
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView

LISTED = 40
"""Items that ``bullets`` lists at most."""
_SIGNS = regex(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


class RowPage(Sheet[str]):
    """A page of rows. Dismissed with a message for the list that opened it, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "close", "Close", show=False),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[GridRow], *, keys: str = "↑ ↓ scroll · Esc close") -> None:
        super().__init__(title, keys=keys)
        self._rows = rows

    def body(self) -> ComposeResult:
        yield RowView(self._rows, word_wrap=True, id="tool")

    def on_mount(self) -> None:
        self.query_one(RowView).focus()

    def action_wrap(self) -> None:
        view = self.query_one(RowView)
        view.wrap = not view.wrap


class MarkdownSheet(Sheet[None]):
    """A page of Markdown. Copying gives ``text``; a link is not opened, but its address is copied."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "close", "Close", show=False)]

    def __init__(
        self, title: str, markdown: str = "", text: str = "", *, keys: str = "↑ ↓ scroll · / search · Esc close"
    ) -> None:
        super().__init__(title, keys=keys)
        self.text = text
        self._markdown = markdown

    def body(self) -> ComposeResult:
        yield MarkdownPage()

    def on_mount(self) -> None:
        self.query_one(MarkdownPage).focus()
        if self._markdown:
            self.read(self._markdown)

    def read(self, markdown: str) -> None:
        """Show ``markdown``."""
        self.query_one(MarkdownPage).read(markdown)

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self.text))

    @on(MarkdownPage.LinkFollowed)
    def _copy_address(self, event: MarkdownPage.LinkFollowed) -> None:
        event.stop()
        self.post_message(CopyToClipboard(event.address))
        self.say(f"Copied: {event.address}")

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        """Do nothing: the page is open already."""
        event.stop()


# Parts of row pages


def fact_rows(facts: Sequence[tuple[str, str]], width: int = 10) -> list[GridRow]:
    """Return a row for each name with its text; empty texts are left out."""
    return [line((f"{name:<{width}}", "muted"), (painted(text), "")) for name, text in facts if text]


def section_rows(heading: str, texts: Sequence[str]) -> list[GridRow]:
    """Return a heading with the lines of ``texts``; nothing without any."""
    rows = [row for text in texts if text for row in text.split("\n")]
    return [line(), line((heading, "heading")), *(line((painted(row), "")) for row in rows)] if rows else []


# Parts of Markdown pages


def plain(text: str) -> str:
    """Return ``text`` so that Markdown shows it literally, on one line."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def fact_lines(facts: Sequence[tuple[str, str]], width: int = 9) -> str:
    """Return names with their texts in Markdown, a line each; empty texts are left out."""
    return "\\\n".join(f"**{name}**{' ' * (width - len(name))}{plain(text)}" for name, text in facts if text)


def bullets(heading: str, items: Sequence[str]) -> str:
    """Return ``items`` as a list in Markdown; empty for none."""
    if not items:
        return ""
    shown = [f"- {plain(item)}" for item in items[:LISTED]]
    more = [f"- and {len(items) - LISTED} more"] if len(items) > LISTED else []
    return "\n".join([f"**{heading}**", "", *shown, *more])
