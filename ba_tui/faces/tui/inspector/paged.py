"""The whole of a stored result, however large: only visible lines are read, in a thread, and cached."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import Key
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from ba_tui.core.errors import BaError
from ba_tui.core.results import Artifact
from ba_tui.core.text.cells import width_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.inspector.model import Whole
from ba_tui.faces.tui.inspector.rows import GridCell, GridLayout, GridRow, RowView, folds, line, painted
from ba_tui.faces.tui.inspector.source import output_rows
from ba_tui.faces.tui.widgets.text_fields import without_last

HITS = 500
"""Lines with a hit that are looked up at a time."""
NEXT = frozenset({"n", "enter", "down"})
PREVIOUS = frozenset({"N", "shift+enter", "up"})
LETTER_KEYS = "n next  N previous  / other words  Esc closes "
OTHER_KEYS = "Enter next  ↑ previous  Ctrl+F other words  Esc closes "


class SearchHit:
    """``due``: there is something to look up; ``look`` does it, in a thread."""

    def __init__(self, whole: Whole) -> None:
        self.words = ""
        self.pattern: re.Pattern[str] | None = None
        self.due = False
        self._whole = whole
        self.typing = True
        """Whether letters are words to look for; False once they are looked for."""
        self._lines: list[int] = []
        self._all = False
        self._at = -1
        self._by = 0
        self._fault = ""

    @property
    def found(self) -> int:
        """Lines found so far."""
        return len(self._lines)

    def typed(self, event: Key) -> bool:
        """Process one key; return False if the search does not use it."""
        if not self.typing:
            if event.key not in NEXT | PREVIOUS:
                return False
            self._by, self.due = (1 if event.key in NEXT else -1), True
        elif event.key == "enter":
            self._begin()
        elif event.key in {"backspace", "ctrl+h"}:
            self.words = without_last(self.words)
        elif event.key == "ctrl+u":
            self.words = ""
        elif event.character and event.is_printable:
            self.words += event.character
        else:
            return False
        return True

    def _begin(self) -> None:
        self.typing, self._lines, self._all, self._at, self._by, self._fault = False, [], False, -1, 0, ""
        parts = [re.escape(word) for word in self.words.split()]
        self.pattern = re.compile("|".join(parts), re.IGNORECASE) if parts else None
        self.due = bool(parts)

    def look(self, top: int) -> int | None:
        """Return the line of the first hit from ``top`` on, or of the next one; None if there is none. Slow."""
        self.due = False
        try:
            while not self._all and (
                not self._lines or self._lines[-1] < top or self._at + self._by >= len(self._lines)
            ):
                self._more()
        except BaError as error:
            self._fault = str(error)
        if not self._lines:
            return None
        if self._at < 0:
            self._at = bisect_left(self._lines, top)
        else:
            self._at += self._by
        self._at %= len(self._lines)
        return self._lines[self._at]

    def _more(self) -> None:
        start = self._lines[-1] + 1 if self._lines else 1
        hits = self._whole.reader.search(self._whole.ref, self.words, HITS, start)
        self._lines += [hit.line for hit in hits]
        self._all = len(hits) < HITS

    def bar(self, width: int, *, letters: bool) -> str:
        """Return the last row while searching. ``letters``: letters are keys."""
        words = paintable(self.words, newlines=False)
        if self.typing:
            text, keys = f" Find: {words}_", "Enter finds  Esc closes "
        else:
            text = f" Find: {words}  {self._tally()}"
            keys = LETTER_KEYS if letters else OTHER_KEYS
        return text.ljust(width - len(keys)) + keys if len(text) + len(keys) < width else text

    def _tally(self) -> str:
        if self._fault:
            return self._fault
        if not self._lines:
            return "nothing found" if self._all else "looking …"
        return f"hit {self._at + 1:,} of {len(self._lines):,}{'' if self._all else ' or more'}"


def marked(segment: Segment, pattern: re.Pattern[str]) -> Iterator[Segment]:
    """Yield the same text with hits in reverse video."""
    text, style, _ = segment
    place = 0
    for found in pattern.finditer(text):
        if found.start() > place:
            yield Segment(text[place : found.start()], style)
        yield Segment(found.group(), (style or Style()) + Style(reverse=True))
        place = found.end()
    if place < len(text):
        yield Segment(text[place:], style)


PAGE = 200
KEPT = 40
"""Pages in memory, enough for text that is selected with the mouse and then copied."""
LONGEST = 10_000
"""Characters of a line that are shown."""
SELECTED = 10_000
"""Lines that a selection gives at most."""


class PagedView(RowView):
    """Line by line. ``failed`` is shown, with the reason before it, when the result can't be read any more.
    ``letters``: single letters are keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "sideways(-20)", "Left", show=False),
        Binding("right", "sideways(20)", "Right", show=False),
    ]

    @dataclass
    class Known(Message):
        """The size of the result is known."""

        artifact: Artifact

    def __init__(self, whole: Whole, failed: str = "", *, letters: bool = True, id: str | None = None) -> None:
        super().__init__(id=id)
        self._letters = letters
        self.whole = whole
        self.finding: SearchHit | None = None
        self._failed = failed
        self._total = 0
        self._ready = False
        self._pages: LRUCache[int, Sequence[GridRow]] = LRUCache(KEPT)
        self._reading = False
        self._longest = 0
        self._seen: GridLayout | None = None
        self._seen_at: tuple[int, ...] = ()

    def on_mount(self) -> None:
        self._open()

    @work(exclusive=True, group="build", exit_on_error=False)
    async def _open(self) -> None:
        reader, ref = self.whole.reader, self.whole.ref
        try:
            artifact = await asyncio.to_thread(reader.about, ref)
            first = [] if artifact.expired else await asyncio.to_thread(read_page, self.whole, 0)
        except BaError as error:
            self._give_up(error.with_hint)
            return
        self.post_message(self.Known(artifact))
        if artifact.expired:
            self._give_up("The stored result was deleted by the clean-up. This is the model's copy:")
            return
        self._ready, self._total = True, artifact.lines
        self._wanted = _FileRows(self, artifact.lines)
        self._keep(0, first)
        self._fold()

    def _give_up(self, why: str) -> None:
        self.put([line((painted(why), "warning")), line(), *output_rows(self._failed)])

    @property
    def rows(self) -> Sequence[GridRow]:
        return self._wanted if self._ready else super().rows

    @property
    def line_count(self) -> int:
        return self._total if self._ready else super().line_count

    # Layout: the view has one row for each line of the file; only visible lines are folded.

    def _fold(self) -> None:
        if not self._ready:
            super()._fold()
            return
        self._width = self.scrollable_content_region.width
        over = 0 if self.wrap else max(0, self._longest + self._margin - self._width)
        at_end = self.max_scroll_y > 0 and self.scroll_offset.y >= self.max_scroll_y
        self.virtual_size = Size(self._width + over, self._total + (self._overhang() if self.wrap else 0))
        self._seen = None
        if at_end:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
        self.refresh()

    def _overhang(self) -> int:
        """Return lines to scroll further, because the last ones fold into more than there is room for."""
        height, used, number = self.scrollable_content_region.height, 0, self._total
        space = max(1, self._width - self._margin)
        while number > 0 and used < height:
            number -= 1
            if number // PAGE not in self._pages:
                return 0
            used += len(folds(self.row(number)[0].text, space))
        top = min(self._total - 1, number + (used > height))
        return max(0, top - max(0, self._total - height))

    @property
    def _margin(self) -> int:
        return len(f"{self._total}") + 2

    def row(self, number: int) -> GridRow:
        """Return a line of the file, counted from 0; an empty one while it is read."""
        index, place = divmod(number, PAGE)
        page = self._pages.get(index, ())
        cell = page[place][0] if place < len(page) else GridCell()
        return (GridCell(cell.pieces, f"{number + 1:>{self._margin - 2}}  "),)

    def _window(self) -> GridLayout:
        """Return which lines are seen, and how they fold."""
        top, height = int(self.scroll_offset.y), self.scrollable_content_region.height
        at = (top, height, self._width, int(self.wrap))
        if self._seen is not None and self._seen_at == at:
            return self._seen
        space = max(1, self._width - self._margin)
        lines: list[tuple[int, int]] = []
        starts: dict[tuple[int, int], tuple[int, ...]] = {}
        rows: dict[int, GridRow] = {}
        number = top
        while len(lines) < height and number < self._total:
            parts, rows[number] = 1, self.row(number)
            if self.wrap and len(cuts := folds(rows[number][0].text, space)) > 1:
                starts[number, 0], parts = cuts, len(cuts)
            lines += [(number, part) for part in range(parts)]
            number += 1
        if any(index not in self._pages for index in range(top // PAGE, max(top, number - 1) // PAGE + 1)):
            self._read_on()
        self._seen, self._seen_at = GridLayout(rows, lines, starts, (self._margin,), (space,), self._longest), at
        return self._seen

    def _read_on(self) -> None:
        if not self._reading:
            self._reading = True
            self._read_seen()

    @work(group="pages", exit_on_error=False)
    async def _read_seen(self) -> None:
        """Read the pages of the visible lines until none is missing."""
        try:
            while (missing := self._missing()) is not None:
                try:
                    rows = await asyncio.to_thread(read_page, self.whole, missing)
                except BaError as error:
                    rows = [line((painted(str(error)), "error"))]
                self._keep(missing, rows)
                self._fold()
        finally:
            self._reading = False

    def _missing(self) -> int | None:
        top = int(self.scroll_offset.y)
        last = min(self._total - 1, top + self.scrollable_content_region.height)
        return next((index for index in range(top // PAGE, last // PAGE + 1) if index not in self._pages), None)

    def _keep(self, index: int, rows: Sequence[GridRow]) -> None:
        self._pages[index] = rows
        self._longest = max([self._longest, *(width_of(row[0].text) for row in rows)])

    # Painting

    def render_line(self, y: int) -> Strip:
        if not self._ready:
            return super().render_line(y)
        if self.finding and y == self.scrollable_content_region.height - 1:
            style = self._style("selected")
            words = self.finding.bar(self._width, letters=self._letters)
            return Strip([Segment(words, style)]).adjust_cell_length(self._width, style)
        window = self._window()
        if y >= len(window.lines):
            return Strip.blank(self._width, self._style(""))
        return self._paint(window, y, int(self.scroll_offset.x))

    def _segments(
        self, pieces: Sequence[tuple[str, str | Style]], cell: GridCell, row: int, start: int, *, last: bool
    ) -> list[Segment]:
        segments = super()._segments(pieces, cell, row, start, last=last)
        pattern = self.finding.pattern if self.finding else None
        return segments if pattern is None else [part for one in segments for part in marked(one, pattern)]

    # Keys

    @property
    def searching(self) -> bool:
        """Whether keys are typed into the search."""
        return self.finding is not None and self.finding.typing

    def action_search(self) -> None:
        """Open the search, or take other words."""
        if self._ready and self.finding is None:
            self.finding = SearchHit(self.whole)
            self.refresh()
        elif self.finding:
            self.finding.typing = True
            self.refresh()

    async def _on_key(self, event: events.Key) -> None:
        if not self._ready:
            return
        if event.key == "ctrl+f" or (event.key == "slash" and not self.searching):
            self.action_search()
        elif self.finding is None:
            return
        elif event.key == "escape":
            self.finding = None
        elif not self.finding.typed(event):
            return
        event.stop()
        event.prevent_default()
        self.refresh()
        if self.finding and self.finding.due:
            self._find()

    @work(exclusive=True, group="find", exit_on_error=False)
    async def _find(self) -> None:
        """Go to the line that was asked for."""
        finding = self.finding
        if finding is None:
            return
        found = await asyncio.to_thread(finding.look, int(self.scroll_offset.y) + 1)
        if self.finding is finding:
            if found is not None:
                middle = self.scrollable_content_region.height // 3
                self.scroll_to(0, max(0, found - 1 - middle), animate=False, force=True)
            self._fold()

    def action_sideways(self, by: int) -> None:
        self.scroll_relative(x=by, animate=False, force=True)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        if not self._ready:
            return super().get_selection(selection)
        first, final = selection.start, selection.end
        top = first.y if first else 0
        end = min(final.y if final else self._total - 1, top + SELECTED, self._total - 1)
        texts = [self.row(number)[0].text for number in range(top, end + 1)]
        if texts and final and final.y == end:
            texts[-1] = texts[-1][: final.x]
        if texts and first:
            texts[0] = texts[0][first.x :]
        return "\n".join(texts), "\n"


class _FileRows(Sequence[GridRow]):
    """The file's lines as the view's rows."""

    def __init__(self, paged: PagedView, total: int) -> None:
        self._paged = paged
        self._total = total

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, index: int) -> GridRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[GridRow]: ...
    def __getitem__(self, index: int | slice) -> GridRow | Sequence[GridRow]:
        if isinstance(index, slice):
            return [self._paged.row(number) for number in range(*index.indices(self._total))]
        return self._paged.row(index)


def read_page(whole: Whole, index: int) -> list[GridRow]:
    """Read one page; call it in a thread. Raises StorageError."""
    texts: list[str] = []
    while len(texts) < PAGE:
        page = whole.reader.lines(whole.ref, index * PAGE + len(texts) + 1, PAGE - len(texts))
        if not page.text:
            break
        parts = page.text.removesuffix("\n").split("\n")
        cut = not page.text.endswith("\n") and not page.last
        texts += [
            text if len(text) <= LONGEST and not (cut and text is parts[-1]) else f"{text[:LONGEST]} …"
            for text in parts
        ]
        if page.last:
            break
    # A mark at the end keeps empty lines before it, and colours that were left on do not reach the next page.
    rows = output_rows("\n".join([*texts, "."]))[:-1]
    return rows if len(rows) == len(texts) else [line((painted(text), "")) for text in texts]
