"""The conversation on the screen: events in, light records, a painted pane. One widget, whatever its length.

How it is painted is pane.py's business, what keys and mouse do is browse.py's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from textual.app import App
from textual.timer import Timer

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
from ba_tui.faces.tui.transcript import messages, style
from ba_tui.faces.tui.transcript.browse import Browsing
from ba_tui.faces.tui.transcript.fold import Records, fold
from ba_tui.faces.tui.transcript.layout import FIRST, TranscriptLayout, layouts_of
from ba_tui.faces.tui.transcript.markdown import warm
from ba_tui.faces.tui.transcript.record_layout import RecordLayout
from ba_tui.faces.tui.transcript.records import Prompt, Record
from ba_tui.faces.tui.transcript.rows import lively
from ba_tui.faces.tui.transcript.turn_records import reaches_back

PACE = 0.14
"""Seconds between two paintings of a stream, at least; longer when one painting takes long."""
SENT = 0.25
"""Seconds after which the first request has been sent; what its answer needs is loaded then, not while it is made."""
RECENT = 400
"""Events that are folded at once when a stored conversation is shown."""


class TranscriptView(Browsing, can_focus=True):
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

    DEFAULT_CSS = style.CSS
    Opened = messages.RecordOpened
    CopyRequested = messages.TranscriptCopy
    NewBelow = messages.NewBelow

    def __init__(self, agent: str = MAIN) -> None:
        """``agent``: whose events it shows. Those of agents below it only change rows, once a second."""
        super().__init__()
        self.agent = agent
        self._records = Records(agent)
        self._older: list[Record] = []
        self._sent: list[Record] = []
        """What the person sent and no event has told of yet; it stands at the end."""
        self._resent = False
        self._flushing = False
        self._warm = False
        self._rest_until = 0.0
        self._ticking: Timer | None = None

    @property
    def records(self) -> Sequence[Record]:
        """Everything shown, oldest first."""
        self._records.settle()
        return [*self._older, *self._records.items]

    @property
    def ascii(self) -> bool:
        """Signs of plain ASCII only."""
        return self._ascii

    @ascii.setter
    def ascii(self, wanted: bool) -> None:
        self._ascii = wanted
        self._styled = False
        self._colours = None
        if self.is_mounted:
            self.call_later(self._show)

    def apply(self, event: Event) -> None:
        """Take one event in; it is painted a moment later."""
        self._records.apply(event)
        if event.agent not in (self.agent, PERSON) and not isinstance(event, AgentStarted):
            return
        ended = isinstance(event, TurnEnded)
        if ended or not self._flushing:
            self._flushing = True
            # Who interrupts a flood should see at once that it ended.
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
        """Show at once what was sent: ``prompts`` that open a turn, and messages to the running one."""
        sent = [*map(Prompt, prompts), *(Prompt(text, steered=True, unread=True) for text in steered)]
        if sent != self._sent:
            self._sent = list(sent)
            self._resent = True
            self.call_later(self.flush)

    def warm_up(self) -> None:
        """Load what words need, once, in a thread."""
        if not self._warm:
            self._warm = True
            self.run_worker(warm, thread=True, exit_on_error=False)

    def replay(self, events: Sequence[Event]) -> None:
        """Show a stored conversation: its tail at once, the rest as soon as a thread has folded it."""
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
        """Older history; it is folded in a thread and comes in above without moving what is shown."""

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
        self._records, self._transcript = Records(self.agent), TranscriptLayout()
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
        """One timer, once a second, and only while something runs."""
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
