"""The guide in the app: a list of its pages, found by any of their words, and a page with links that Enter follows.

Which pages there are stands in ``ba_tui.guide``.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.screens.picker import LOW, Picker, PickerChoice, app_of
from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition
from ba_tui.faces.tui.transcript.markdown import warm
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.guide import Guide, GuidePage, flowed


class GuideList(Picker):
    """Typing finds by topic, title and every word of a page."""

    def __init__(self, guide: Guide) -> None:
        super().__init__("Guide", [_choice(page) for page in guide.pages], keys="Enter opens · Esc closes")
        self._guide = guide

    def matching(self) -> list[PickerChoice]:
        """The pages that are about the words first."""
        if not self.words.strip():
            return list(self.choices)
        choices = {choice.id: choice for choice in self.choices}
        return [choices[page.topic] for page in self._guide.search(self.words)]

    def choose(self, id: str) -> None:
        app_of(self).push_screen(GuideScreen(self._guide, self._guide.find(id)))


class GuideScreen(ModalScreen[None]):
    """One page at a time. Backspace goes back to the page whose link was followed."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("backspace,left", "back", "Previous page"),
    ]

    def __init__(self, guide: Guide, page: GuidePage) -> None:
        super().__init__(classes="picker page")
        self._guide = guide
        self._page = page
        self._before: list[tuple[GuidePage, LayoutPosition]] = []
        """The pages whose links were followed, and how far each was read."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield MarkdownPage()
            yield Static(classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(MarkdownPage).focus()
        self.run_worker(self._begin, exit_on_error=False)

    async def _begin(self) -> None:
        # The first Markdown of a session loads its parser.
        await asyncio.to_thread(warm)
        self._show()

    def _show(self, place: LayoutPosition = FIRST) -> None:
        self.query_one(MarkdownPage).read(flowed(self._page.text), place)
        back = "Backspace goes back" if self._before else ""
        parts = ("Tab next link", "Enter opens it", back, "/ searches", "Esc closes")
        self.query_one(".keys", Static).update(" · ".join(filter(None, parts)))

    def action_close(self) -> None:
        self.dismiss()

    def action_back(self) -> None:
        if self._before:
            self._page, place = self._before.pop()
            self._show(place)

    @on(MarkdownPage.LinkFollowed)
    def _follow(self, event: MarkdownPage.LinkFollowed) -> None:
        event.stop()
        if page := self._guide.linked(event.address):
            self._before.append((self._page, self.query_one(MarkdownPage).place))
            self._page = page
            self._show()
        else:
            # A browser can't be counted on: the terminal may be on another machine.
            self.post_message(CopyToClipboard(event.address))
            self.query_one(".keys", Static).update(f"Copied: {event.address}")

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self._page.text))


def _choice(page: GuidePage) -> PickerChoice:
    return PickerChoice(page.topic, (page.title, page.topic), page.summary)
