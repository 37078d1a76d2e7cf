"""What a person does with the conversation: moving, opening, expanding, copying, searching, by keys and mouse.

How it is painted is pane.py's business, where records come from is view.py's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.scrollbar import ScrollDown, ScrollUp

from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.graphemes import without_last
from ba_tui.faces.tui.transcript import style
from ba_tui.faces.tui.transcript.figure_marks import FIGURE
from ba_tui.faces.tui.transcript.layout import FIRST, GAP, LayoutPosition, Shown
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.messages import RecordOpened, TranscriptCopy
from ba_tui.faces.tui.transcript.pane import TranscriptPane
from ba_tui.faces.tui.transcript.records import Compaction, End, Prompt, ProseRecord, Record, Thought, ToolRow, source
from ba_tui.faces.tui.transcript.rows import FIGURES
from ba_tui.faces.tui.transcript.search import TranscriptSearch


class Browsing(TranscriptPane):
    """A pane with a cursor on one record and a search over all of them."""

    FINDING: ClassVar[Mapping[str, int]] = {"enter": -1, "up": -1, "down": 1, "shift+enter": 1}
    """Keys that go to the next hit (1) or the previous one (-1)."""
    BINDINGS: ClassVar[list[BindingType]] = style.BINDINGS

    def current(self) -> Record | None:
        """The record that keys work on."""
        return self._transcript.layouts[self.chosen()].record if self._transcript.layouts else None

    def action_record(self, by: int) -> None:
        """Move the cursor; what it reaches comes into view."""
        if not self._transcript.layouts:
            return
        last = len(self._transcript.layouts) - 1
        at = self.chosen() + by if self.cursor is not None else self.chosen() + min(by + 1, 0)
        at = min(max(0, at), last)
        if isinstance(self._transcript.layouts[at].record, End) and at:
            at += 1 if by > 0 and at < last else -1
        self.cursor = at
        self._reveal(self.cursor)

    def _reveal(self, at: int) -> None:
        """Scroll as little as it takes to see record ``at``, its top first."""
        transcript, rows = self._transcript, self._rows
        top = transcript.settled(LayoutPosition(at, 0, 0))
        seen = [place for place, _ in self._window]
        end = transcript.settled(LayoutPosition(at, len(transcript.layouts[at].opened()[0]) - 1, 1 << 20))
        if top not in seen or end not in seen:
            fits = transcript.moved(end, 1 - rows)
            self._place = top if top < self._place or fits > top else fits
        self.follow_if_at_end()

    def action_open(self) -> None:
        if (record := self.current()) is not None:
            self.post_message(RecordOpened(record))

    def action_copy(self) -> None:
        if (record := self.current()) is not None:
            self.post_message(TranscriptCopy(paintable(source(record))))

    def action_expand(self) -> None:
        """Unfold the record, or fold it again; of an answer, open the first table in sight that has lost columns."""
        record, at = self.current(), self.chosen()
        if not isinstance(record, ProseRecord):
            self._expand(at)
        elif table := next((line.table for place, line in self._window if place.record == at and line.table), None):
            self.post_message(RecordOpened(replace(record, table=table)))

    def _expand(self, at: int) -> None:
        if at < 0 or not isinstance(self._transcript.layouts[at].record, ToolRow | Thought | Compaction):
            return
        layout = self._transcript.layouts[at]
        layout.expanded = not layout.expanded
        layout.forget()
        self._transcript.lay(at, 0)
        # What is below moves, not what the person looks at.
        self._following = False
        self._show()
        self._reveal(at)

    @property
    def searching(self) -> bool:
        """Whether what is typed goes to the search."""
        return self.search is not None

    def action_search(self) -> None:
        """Open the search, unless it is open."""
        if self.search is None:
            self.search = TranscriptSearch()
            self._show()

    def find(self, query: str, by: int = 0) -> None:
        """Search for ``query``; ``by`` goes on to the next (1) or previous (-1) hit."""
        if self.search is None or self.search.query != query:
            self.search = TranscriptSearch(query)
            self.search.over(
                [layout.record for layout in self._transcript.layouts],
                self._place.record + len({place.record for place, _ in self._window}),
            )
        self.search.step(by)
        if (hit := self.search.current) is not None:
            self.cursor = hit[0]
            self._place = self._transcript.moved(self._line_of(*hit), -(self.size.height // 3))
            self.follow_if_at_end()
        self._show()

    def _line_of(self, at: int, number: int) -> LayoutPosition:
        """Where hit ``number`` of record ``at`` is shown; the record's top when it is folded away or cut in two."""
        pattern = self.search.pattern if self.search is not None else None
        transcript = self._transcript
        for block in range(len(transcript.layouts[at].opened()[0])):
            for line, words in enumerate(transcript.lay(at, block)):
                number -= len(pattern.findall(words.text)) if pattern is not None else 0
                if number < 0:
                    return LayoutPosition(at, block, line)
        return transcript.settled(LayoutPosition(at, 0, 0))

    async def _on_key(self, event: events.Key) -> None:
        if self.search is None:
            if event.key == "ctrl+f":
                # At once: a binding would run after the letters that were typed right behind it.
                event.stop()
                event.prevent_default()
                self.action_search()
            return
        query, key = self.search.query, event.key
        if key == "escape":
            self.search = None
            self._show()
        elif key in self.FINDING:
            self.find(query, self.FINDING[key])
        elif key in ("backspace", "ctrl+h"):
            self.find(without_last(query))
        elif key == "ctrl+u":
            self.find("")
        elif event.character and event.is_printable:
            self.find(query + event.character)
        elif key != "ctrl+f":
            return
        event.stop()
        event.prevent_default()

    def _on_paste(self, event: events.Paste) -> None:
        if self.search is not None:
            event.stop()
            self.find(self.search.query + " ".join(event.text.split()))

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None or not 0 <= event.y < self.size.height:
            return
        if event.y == self.size.height - 1 and self._below:
            self.action_scroll_end()
            return
        if event.y >= len(self._window):
            return
        place = self._window[event.y].place
        if place.block == GAP:
            return
        again = self.cursor == place.record and event.chain == 2
        self.cursor = place.record
        self._click(self._window[event.y], event.x, again=again)
        self._show()

    def _figure_at(self, record: ProseRecord, line: PaintedLine, x: int, *, marker: bool) -> ProseRecord | None:
        """The answer, to be opened at the figure that stands in column ``x``, or as a list of all below it."""
        if record.grounded is None:
            return None
        if marker and any(FIGURES in segment.text for segment in line.segments):
            return replace(record, figure=-1)
        cell = 1 + sum(segment.cell_length for segment in line.gutter)
        for segment in line.segments:
            cell += segment.cell_length
            if x < cell:
                number = segment.style.meta.get(FIGURE) if segment.style else None
                return replace(record, figure=number) if isinstance(number, int) else None
        return None

    def _click(self, shown: Shown, x: int, *, again: bool) -> None:
        """A folded record unfolds; a line that says what is missing opens all of it, as a second click does."""
        place, line = shown
        layout = self._transcript.layouts[place.record]
        record, marker = layout.record, line.unit is not None and not line.unit.text
        if isinstance(record, ProseRecord):
            if opened := self._figure_at(record, line, x, marker=marker):
                self.post_message(RecordOpened(opened))
            elif line.table and (again or marker):
                self.post_message(RecordOpened(replace(record, table=line.table)))
        elif again or (marker and (layout.expanded or isinstance(record, Prompt))) or _with_agents(record):
            self.post_message(RecordOpened(record))
        elif place.line == 0 or not layout.expanded:
            self._expand(place.record)

    def _scroll_rows(self, rows: int) -> None:
        """Down, or up when negative, at once: an animation would repaint a dozen times for one key."""
        self._place = self._transcript.moved(self._place, rows)
        self.follow_if_at_end()

    def action_scroll_up(self) -> None:
        self._scroll_rows(-1)

    def action_scroll_down(self) -> None:
        self._scroll_rows(1)

    def action_page_up(self) -> None:
        self._scroll_rows(2 - self.size.height)

    def action_page_down(self) -> None:
        self._scroll_rows(self.size.height - 2)

    def action_scroll_home(self) -> None:
        self._place = FIRST
        self.follow_if_at_end()

    def action_scroll_end(self) -> None:
        self._following = True
        self._count_below(0)
        self._show()

    def _on_scroll_up(self, event: ScrollUp) -> None:
        """A click above the scroll bar's grip."""
        event.stop()
        event.prevent_default()
        self.action_page_up()

    def _on_scroll_down(self, event: ScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.action_page_down()


def _with_agents(record: Record) -> bool:
    """Whether a click leads to the transcript of an agent: its row has no more to unfold."""
    return isinstance(record, ToolRow) and bool(record.agents)
