"""The conversation on the screen: events become records, and keys and mouse act on them.

``pane`` paints.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.scrollbar import ScrollDown, ScrollUp
from textual.timer import Timer

from ba_tui.core.conversation import Conversation
from ba_tui.core.events import (
    MAIN,
    PERSON,
    AgentStarted,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript import palette, pane
from ba_tui.faces.tui.transcript.figure_marks import FIGURE
from ba_tui.faces.tui.transcript.fold import RecordFold, fold
from ba_tui.faces.tui.transcript.layout import (
    FIRST,
    GAP,
    LayoutPosition,
    RecordLayout,
    ShownLine,
    TranscriptLayout,
    layouts_of,
)
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import warm
from ba_tui.faces.tui.transcript.pane import RecordOpened, TranscriptCopy, TranscriptPane, TranscriptSearch
from ba_tui.faces.tui.transcript.records import (
    Compaction,
    End,
    Prompt,
    ProseRecord,
    Record,
    Thought,
    ToolRow,
    reaches_back,
    source,
)
from ba_tui.faces.tui.transcript.rows import FIGURES, lively
from ba_tui.faces.tui.widgets.text_fields import without_last


class RecordBrowser(TranscriptPane):
    """A pane with a cursor on one record and a search over all of them."""

    FINDING: ClassVar[Mapping[str, int]] = {"enter": -1, "up": -1, "down": 1, "shift+enter": 1}
    """Keys that go to the next hit (1) or the previous one (-1)."""
    BINDINGS: ClassVar[list[BindingType]] = palette.BINDINGS

    def current(self) -> Record | None:
        """Return the record that keys work on."""
        return self._transcript.layouts[self.chosen()].record if self._transcript.layouts else None

    def action_record(self, by: int) -> None:
        """Move the cursor and scroll to its record."""
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
        # Move the rows below, not those that the user reads.
        self._following = False
        self._show()
        self._reveal(at)

    @property
    def searching(self) -> bool:
        """Whether keys are typed into the search."""
        return self.search is not None

    def action_search(self) -> None:
        """Open the search, unless it is open."""
        if self.search is None:
            self.search = TranscriptSearch()
            self._show()

    def find(self, query: str, by: int = 0) -> None:
        """Search for ``query``; ``by`` moves to the next (1) or previous (-1) hit."""
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
        """Return where hit ``number`` of record ``at`` is shown; the record's top if the hit is folded or split."""
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
                # Immediately: a binding would run after letters that were typed right after it.
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
        """Return the answer, to be opened at the figure in column ``x``, or as the list of all figures."""
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

    def _click(self, shown: ShownLine, x: int, *, again: bool) -> None:
        """Unfold a folded record; open it after a second click, or a click on the marker of hidden lines."""
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
        """Scroll down, or up if negative, without animation, which would repaint a dozen times for one key."""
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
        """Page up after a click above the scroll bar's grip."""
        event.stop()
        event.prevent_default()
        self.action_page_up()

    def _on_scroll_down(self, event: ScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.action_page_down()


def _with_agents(record: Record) -> bool:
    """Return whether a click leads to the transcript of an agent: its row has no more to unfold."""
    return isinstance(record, ToolRow) and bool(record.agents)


PACE = 0.14
"""Seconds between two paintings of a stream, at least; longer when one painting takes long."""
SENT = 0.25
"""Seconds until the first request has been sent. Modules for its answer are loaded then, not before."""
RECENT = 400
"""Events that are folded immediately when a stored conversation is shown."""


class TranscriptView(RecordBrowser, can_focus=True):
    """The conversation. Feed it with ``apply``.

    | Key | Does |
    | :- | :- |
    | down / up | next, previous record |
    | shift+down / shift+up | scroll one line |
    | enter, ctrl+o | open in the inspector |
    | space | expand in place |
    | ctrl+y | copy the source text |
    | home / end | first, last line |
    | ctrl+f | search |
    """

    DEFAULT_CSS = palette.CSS
    Opened = pane.RecordOpened
    CopyRequested = pane.TranscriptCopy
    NewBelow = pane.NewBelow

    def __init__(self, agent: str = MAIN) -> None:
        """``agent``: the agent whose events are shown. Events of its sub-agents only change rows, once a second."""
        super().__init__()
        self.agent = agent
        self._records = RecordFold(agent)
        self._older: list[Record] = []
        self._sent: list[Record] = []
        """Sent prompts that no event has confirmed yet; they are shown at the end."""
        self._resent = False
        self._flushing = False
        self._warm = False
        self._rest_until = 0.0
        self._ticking: Timer | None = None

    @property
    def records(self) -> Sequence[Record]:
        """All records, oldest first."""
        self._records.settle()
        return [*self._older, *self._records.items]

    def apply(self, event: Event) -> None:
        """Process one event; it is painted a moment later."""
        self._records.apply(event)
        if event.agent not in (self.agent, PERSON) and not isinstance(event, AgentStarted):
            return
        ended = isinstance(event, TurnEnded)
        if ended or not self._flushing:
            self._flushing = True
            # Show immediately that an interrupted flood of output has ended.
            wait = 0.0 if ended else self._rest_until - time.monotonic()
            if wait <= 0 and not isinstance(event, TextDelta | ToolProgress):
                self.call_later(self.flush)
            else:
                self.set_timer(max(wait, PACE / 5), self.flush)
        if self._warm or not self.is_mounted:
            return
        if isinstance(event, TurnStarted):
            self.set_timer(SENT, self.warm_up)
        elif isinstance(event, TextDelta | ThinkingDelta):
            self.warm_up()

    def show_sent(self, prompts: Sequence[str], steered: Sequence[str]) -> None:
        """Show sent text immediately: ``prompts`` that start a turn, and messages to the running one."""
        sent = [*map(Prompt, prompts), *(Prompt(text, steered=True, unread=True) for text in steered)]
        if sent != self._sent:
            self._sent = list(sent)
            self._resent = True
            self.call_later(self.flush)

    def warm_up(self) -> None:
        """Load the Markdown parser once, in a thread."""
        if not self._warm:
            self._warm = True
            self.run_worker(warm, thread=True, exit_on_error=False)

    def replay(self, events: Sequence[Event]) -> None:
        """Show a stored conversation: its end immediately, the rest once a thread has folded it."""
        if any(map(reaches_back, events)):
            self.prepend(events)
            return
        cut = max(0, len(events) - RECENT)
        while cut and not (isinstance(events[cut], TurnStarted) and events[cut].agent == self.agent):
            cut -= 1
        for event in events[cut:]:
            self._records.apply(event)
        self._records.end()
        self.flush()
        if cut:
            self.prepend(events[:cut])

    def prepend(self, events: Sequence[Event]) -> None:
        """Add older history above, folded in a thread, without moving the visible rows."""

        transcript = self._transcript

        def work() -> None:
            records = fold(events, self.agent)
            layouts = layouts_of(records, transcript.look.width)
            cast("App[Any]", self.app).call_from_thread(self._join_above, transcript, records, layouts)

        self.run_worker(work, thread=True)

    def _join_above(self, transcript: TranscriptLayout, records: list[Record], layouts: list[RecordLayout]) -> None:
        if transcript is not self._transcript:
            return
        self._older[:0] = records
        moved = self._transcript.prepend(layouts)
        self._place = self._place._replace(record=self._place.record + moved)
        if self.cursor is not None:
            self.cursor += moved
        if self.search is not None:
            self.search.over([layout.record for layout in self._transcript.layouts], self._place.record)
        self._show()

    def clear(self) -> None:
        """Forget everything that is shown."""
        self._records, self._transcript = RecordFold(self.agent), TranscriptLayout()
        self._older, self._sent = [], []
        self._place, self._following, self.cursor, self.search = FIRST, True, None, None
        self._styled = False
        self._strips.clear()
        self._count_below(0)
        self._tick_while_busy()
        self._show()

    def flush(self) -> None:
        """Lay out and show what changed; the next time comes after eight times as long as this one took, at least."""
        self._flushing = False
        begin = time.monotonic()
        self._style()
        self._transcript.tick(self.clock())
        self._records.settle()
        start, touched = self._records.take_changes()
        older, known = len(self._older), len(self._transcript.layouts)
        for at in touched:
            self._transcript.update(older + at, self._records.items[at])
        items = self._records.items
        if self._resent or start < len(items) or known != older + len(items) + len(self._sent):
            self._resent = False
            self._transcript.replace_from(older + start, [*items[start:], *self._sent])
        if not touched:
            self._transcript.catch_up()
        fresh = len(self._transcript.layouts) - known
        if not self._following and fresh > 0:
            self._count_below(self._below + fresh)
        self._show(everything=False)
        self._tick_while_busy()
        spent = time.monotonic() - begin
        self._rest_until = begin + max(PACE, 8 * spent)
        if self._transcript.behind and not self._flushing:
            self._flushing = True
            self.set_timer(self._rest_until - time.monotonic(), self.flush)

    def _tick_while_busy(self) -> None:
        """Repaint once a second while something runs."""
        if self._records.busy and self._ticking is None:
            self._ticking = self.set_interval(1.0, self._tick)
        elif not self._records.busy and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def _tick(self) -> None:
        if self._records.agents.stirred:
            self.flush()
        self._transcript.tick(self.clock())
        for layout in self._transcript.layouts[-64:]:
            if lively(layout.record):
                layout.forget()
        self._show(everything=False)


# Replay of a session: the end is painted first, earlier records when they have been read.

BREATH = 500
"""Events that are folded before keys are processed again."""


async def replay(transcript: TranscriptView, conversation: Conversation, fold: Callable[[Event], None]) -> None:
    """Fill ``transcript`` with the events of the session; ``fold`` gets every event."""
    tail = await asyncio.to_thread(conversation.tail, RECENT)
    tail = [] if any(map(reaches_back, tail)) else tail
    transcript.replay(tail)
    # Paint the visible part first; folding the rest would delay it.
    painted = asyncio.Event()
    transcript.call_after_refresh(painted.set)
    await painted.wait()
    events = await conversation.history()
    earlier = len(events) - len(tail)
    # Sub-agents can fill the tail: a part that does not begin with a turn can't be shown alone.
    if events[earlier:] == tail and (not tail or opens_turn(tail[0])):
        transcript.prepend(events[:earlier])
    else:
        transcript.clear()
        transcript.replay(events)
    for index, event in enumerate(events):
        fold(event)
        if index % BREATH == BREATH - 1:
            await asyncio.sleep(0)


async def paced(events: AsyncIterator[Event]) -> AsyncIterator[tuple[int, Event]]:
    """Yield ``events`` with their numbers from 1, with pauses for keys, because a journal arrives all at once."""
    number = 0
    async for event in events:
        number += 1
        yield number, event
        if number % BREATH == 0:
            await asyncio.sleep(0)


def opens_turn(event: Event) -> bool:
    """Return whether the user said something, not an agent to another."""
    return isinstance(event, TurnStarted) and event.agent == MAIN
