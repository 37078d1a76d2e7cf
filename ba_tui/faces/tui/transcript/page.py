"""A page of Markdown, rendered like answers and read from the top; links are chosen by keys. The receiver of
``LinkFollowed`` decides what to do with a link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ba_tui.core.events import MessageDone
from ba_tui.core.messages import Message as ModelMessage
from ba_tui.core.messages import Text
from ba_tui.core.values import frozen
from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import HREF
from ba_tui.faces.tui.transcript.pane import Overlay, Sight, Span, key, over, strip
from ba_tui.faces.tui.transcript.view import TranscriptView


@frozen
class MarkdownLink:
    """Where a link leads, and the characters of the rows that show it."""

    address: str
    spans: dict[LayoutPosition, Span]


class MarkdownPage(TranscriptView):
    """One text, shown with ``read``.

    | Key | Does |
    | :- | :- |
    | down, j / up, k | scroll one line |
    | space, pagedown / pageup | scroll one page |
    | g / G | first, last line |
    | tab / shift+tab | next, previous link |
    | enter | follow the link |
    | / , ctrl+f | search; enter goes to the next hit |
    """

    DEFAULT_CSS = """
    MarkdownPage {
        background: $surface;
        height: 1fr;
        scrollbar-background: $surface;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
    }
    """
    FINDING: ClassVar[Mapping[str, int]] = {"enter": 1, "down": 1, "up": -1, "shift+enter": -1}
    FINDING_KEYS: ClassVar[str] = "Enter next  Up previous  Esc close "
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("home,g", "scroll_home", "First line", show=False),
        Binding("end,G", "scroll_end", "Last line", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("space", "page_down", "Page down", show=False),
        Binding("slash", "search", "Search", show=False),
        Binding("tab", "link(1)", "Next link", show=False),
        Binding("shift+tab", "link(-1)", "Previous link", show=False),
        Binding("enter", "follow", "Follow the link", show=False),
    ]

    @dataclass
    class LinkFollowed(Message):
        """The user wants to go where a link leads."""

        address: str

    def __init__(self) -> None:
        super().__init__()
        self.link: MarkdownLink | None = None
        """The link that Enter follows."""

    @property
    def place(self) -> LayoutPosition:
        """The first visible row."""
        return self._place

    def read(self, text: str, place: LayoutPosition = FIRST) -> None:
        """Show ``text`` from its beginning, or from ``place``."""
        self.clear()
        self.link = None
        # Only the rows in sight are laid out, not those at the end.
        self._following, self._place = False, place
        self.replay([MessageDone(ModelMessage("assistant", (Text(text),), origin="assistant"))])
        self._count_below(0)
        self.follow_if_at_end()

    def links(self) -> list[MarkdownLink]:
        """Return the links of the text in reading order. Lays all of it out: a few milliseconds for a page."""
        found: list[MarkdownLink] = []
        for place, line in self._lines():
            start, before = 0, ""
            for segment in line.segments:
                address, end = _address(segment.style), start + len(segment.text)
                # The rest of a link that was wrapped, or that is set in several styles.
                goes_on = bool(address and found) and found[-1].address == address and (address == before or not start)
                if goes_on:
                    spans = found[-1].spans
                    spans[place] = (spans.get(place, (start, end))[0], end)
                elif address:
                    found.append(MarkdownLink(address, {place: (start, end)}))
                before, start = address, end
        return found

    def _lines(self) -> Iterator[tuple[LayoutPosition, PaintedLine]]:
        """Yield every row of the text."""
        for at, layout in enumerate(self._transcript.layouts):
            for block in range(len(layout.opened()[0])):
                for number, line in enumerate(self._transcript.lay(at, block)):
                    yield LayoutPosition(at, block, number), line

    def action_link(self, by: int) -> None:
        """Choose the next link from the first visible row on, and scroll to it."""
        links = self.links()
        if not links:
            return
        tops = [min(link.spans) for link in links]
        here = next((at for at, link in enumerate(links) if self.link and link.spans == self.link.spans), None)
        seen = {shown.place for shown in self._window}
        if here is None or tops[here] not in seen:
            first = min(seen)
            below = [at for at, top in enumerate(tops) if top >= first]
            here = (below[0] if below else 0) - (by > 0)
        self.link = links[(here + by) % len(links)]
        top = min(self.link.spans)
        if top not in seen:
            self._place = self._transcript.moved(top, -(self.size.height // 3))
        self.follow_if_at_end()

    def action_follow(self) -> None:
        if self.link is not None:
            self.post_message(self.LinkFollowed(self.link.address))

    def find(self, query: str, by: int = 0) -> None:
        fresh = self.search is None or self.search.query != query
        super().find(query, by)
        if fresh and self.search is not None and self.search.hits:
            # A page is read from its top: the first hit comes first.
            self.search.at = 0
            super().find(query)

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is None and (address := _address(event.style)):
            event.prevent_default()
            self.post_message(self.LinkFollowed(address))

    def _row(self, y: int, sight: Sight) -> Strip:
        (place, line), transcript = self._window[y], self._transcript
        span = self.link.spans.get(place) if self.link else None
        if span is None:
            return super()._row(y, sight)
        colours = transcript.look.palette
        marked = line._replace(segments=over(line.segments, span, colours.match))
        return strip(marked, sight.size.width, colours, Overlay(key(transcript, place)))


def _address(style: Style | None) -> str:
    """Return where the words in ``style`` lead; empty when they are no link."""
    return (style.link or str(style.meta.get(HREF, ""))) if style else ""
