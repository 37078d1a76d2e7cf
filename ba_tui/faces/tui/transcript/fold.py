"""The fold from events to records: the same list, live or replayed.

Pure: no screen and no clock; what a record is, is said in records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ba_tui.core import events
from ba_tui.core.events import MAIN, PERSON, Event, Notice
from ba_tui.core.messages import Message
from ba_tui.faces.tui.roster import AgentRows
from ba_tui.faces.tui.transcript.records import (
    OPEN,
    End,
    NoticeRecord,
    Prompt,
    ProseRecord,
    Record,
    Retry,
    Thought,
    ToolRow,
    TurnRecords,
    agent_row,
    answered,
    compaction,
    denial,
    finished,
    grounded,
    memory_note,
    own_row,
    prompt_of,
    queued,
    records_of,
    rewound,
    row_of,
    with_agents,
)

TAIL = 4_000
MEMORY_TOOLS = ("remember", "forget")


class RecordFold:
    """The fold. ``items`` only ever change from ``changed`` on, or in the places of ``touched``."""

    def __init__(self, agent: str = MAIN) -> None:
        """``agent``: the agent of the transcript."""
        self.items: list[Record] = []
        self.touched: set[int] = set()
        self.changed = 0
        self._agent = agent
        self.agents = AgentRows(agent)
        self._calls: dict[str, int] = {}
        self._asked: dict[str, str] = {}
        self._persons: set[str] = set()
        """Running commands of the user's own; the end of a turn does not end them."""
        self._drafts: list[int] = []
        self._pieces: list[str] = []
        self._began: float | None = None
        self._counted = 0
        self._course = TurnRecords()
        self._answer = ("", 0, 0)
        """The id of the newest message, where its records begin, and how many they are."""

    @property
    def busy(self) -> bool:
        """Whether elapsed times or countdowns are shown."""
        live = self.items[-1:] + [self.items[index] for index in self._calls.values()]
        return any(isinstance(item, Retry) or (isinstance(item, ToolRow) and item.open) for item in live)

    def apply(self, event: Event) -> None:
        """Process one event. Cheap: deltas are collected until ``settle`` joins them."""
        if event.agent != self._agent:
            self._other(event)
            return
        match event:
            case events.TextDelta(text=text):
                self._draft(ProseRecord, text)
            case events.ThinkingDelta(text=text):
                self._draft(Thought, text)
            case events.ToolProgress(call_id=call_id, text=text):
                self._report(call_id, text)
            case events.ToolInputDelta():
                self._announce(event)
            case events.MessageDone(message=message):
                self._message(message)
            case events.MessageRestarted():
                self._void()
            case events.ToolStarted() | events.ToolFinished() | events.Asked() | events.Answered():
                self._tool(event)
            case events.Judged(verdict="deny", call_id=call_id, tool=tool):
                if (row := self._row(call_id)) is not None and row.name == tool:
                    self._change(call_id, replace(row, note=denial(event)))
            case events.Retrying(reason=reason, delay=delay, attempt=attempt, attempts=attempts, at=at):
                self._unretry()
                self._add(Retry(reason, at + delay, attempt, attempts))
            case Notice(text=text, level=level, hint=hint):
                self._add(NoticeRecord(text, level, hint))
            case events.FiguresChecked():
                self._ground(event)
            case events.Compressed():
                self._add(compaction(event))
            case events.MemoriesUsed() | events.MemoryChanged():
                self._memory(event)
            case events.TurnStarted() | events.Steered() | events.TurnResumed() | events.TurnEnded():
                self._turn(event)
            case events.Rewound():
                self._rewound(event)
            case _:
                pass

    def _other(self, event: Event) -> None:
        """Process an event of another agent; background agents start after their call has ended."""
        if event.agent == PERSON and self._agent == MAIN:
            self._own(event)
            return
        if isinstance(event, events.AgentStarted) and (at := row_of(event.call_id, self.items)) is not None:
            self._calls[event.call_id] = at
        if line := self.agents.apply(event, self._calls):
            self._calls[line.agent_id] = self._add(agent_row(line))

    def _own(self, event: Event) -> None:
        """Process an event of a command that the user runs alongside the turns."""
        match event:
            case events.ToolStarted(call=call, target=target, at=at):
                self._persons.add(call.id)
                self._calls[call.id] = self._add(own_row(call, target, at))
            case events.ToolProgress(call_id=call_id, text=text):
                self._report(call_id, text)
            case events.ToolFinished(call_id=call_id):
                self._persons.discard(call_id)
                self._tool(event)
            case Notice(text=text, level=level, hint=hint):
                self._add(NoticeRecord(text, level, hint))
            case _:
                pass

    def _report(self, call_id: str, text: str) -> None:
        if (row := self._row(call_id)) is not None:
            self._change(call_id, replace(row, tail=(row.tail + text)[-TAIL:]))

    def settle(self) -> None:
        """Join the collected deltas, so that ``items`` is complete."""
        if self._pieces and self._drafts:
            index = self._drafts[-1]
            item = self.items[index]
            if isinstance(item, ProseRecord | Thought):
                self.items[index] = replace(item, text=item.text + "".join(self._pieces))
                self.touched.add(index)
        self._pieces.clear()
        for id, lines in self.agents.take():
            if (row := self._row(id)) is not None:
                row = with_agents(row, lines)
                self._change(id, row)
                if not row.open:
                    del self._calls[id]

    def interrupt(self) -> None:
        """End all work: calls without a result are marked as interrupted. Unfinished calls and thoughts are removed,
        because no message has them.
        """
        self.settle()
        self._unretry()
        for index in reversed(self._drafts):
            item = self.items[index]
            if not isinstance(item, ProseRecord) or not item.text.strip():
                self._remove(index)
        kept = {id: at for id, at in self._calls.items() if id in self._persons or self.agents.alive(id)}
        for call_id in set(self._calls) - set(kept):
            if (row := self._row(call_id)) is not None and row.state in OPEN:
                self._change(call_id, replace(row, state="cancelled", summary="interrupted", tail=""))
        self._calls = kept
        self._asked.clear()
        for index in self._drafts:
            self._close(index)
        self._drafts.clear()

    def end(self) -> None:
        """End all work, the user's own commands included, because the journal ends."""
        self._persons.clear()
        self.agents.end()
        self.interrupt()

    def take_changes(self) -> tuple[int, set[int]]:
        """Return from which place on everything is new and which places before it changed; then reset both."""
        changes = min(self.changed, len(self.items)), {index for index in self.touched if index < self.changed}
        self.changed, self.touched = len(self.items), set()
        return changes

    def _add(self, record: Record) -> int:
        self.items.append(record)
        return len(self.items) - 1

    def _remove(self, index: int) -> None:
        """Remove a record near the end; later ones move up."""
        del self.items[index]
        self.changed = min(self.changed, index)
        self._calls = {call: at - (at > index) for call, at in self._calls.items() if at != index}
        self._drafts = [at - (at > index) for at in self._drafts if at != index]

    def _row(self, call_id: str) -> ToolRow | None:
        index = self._calls.get(call_id)
        item = self.items[index] if index is not None else None
        return item if isinstance(item, ToolRow) else None

    def _change(self, call_id: str, row: ToolRow) -> None:
        index = self._calls[call_id]
        self.items[index] = row
        self.touched.add(index)

    def _unretry(self) -> None:
        for index in range(len(self.items) - 1, max(-1, len(self.items) - 4), -1):
            if isinstance(self.items[index], Retry):
                self._remove(index)

    def _draft(self, kind: type[ProseRecord] | type[Thought], text: str) -> None:
        if self._drafts and isinstance(self.items[self._drafts[-1]], kind):
            self._pieces.append(text)
            return
        self._begin_draft(kind("", open=True))
        self._pieces.append(text)

    def _begin_draft(self, record: Record) -> int:
        """Add a record that the model is still writing; return its place."""
        self.settle()
        self._unretry()
        if self._drafts:
            self._close(self._drafts[-1])
        index = self._add(record)
        self._drafts.append(index)
        return index

    def _close(self, index: int) -> None:
        item = self.items[index]
        if isinstance(item, ProseRecord | Thought):
            self.items[index] = replace(item, open=False)
            self.touched.add(index)

    def _announce(self, event: events.ToolInputDelta) -> None:
        """Show a call that the model is still writing; its target is not known yet."""
        summary = f"writing {event.size:,} characters"
        if (row := self._row(event.call_id)) is not None:
            self._change(event.call_id, replace(row, summary=summary))
            return
        self._calls[event.call_id] = self._begin_draft(ToolRow(event.call_id, event.name, "…", summary=summary))

    def _void(self) -> None:
        self._pieces.clear()
        for index in reversed(self._drafts):
            self._remove(index)
        self._drafts.clear()

    def _message(self, message: Message) -> None:
        """Replace the streamed text by the complete answer."""
        if message.hidden:
            self._void()
            return
        self.settle()
        self._unretry()
        finals = list(records_of(message))
        if self._drafts == list(range(len(self.items) - len(self._drafts), len(self.items))):
            start = self._drafts[0] if self._drafts else len(self.items)
            for index, record in zip(range(start, len(self.items)), finals, strict=False):
                self.items[index] = record
                self.touched.add(index)
            placed = len(self.items) - start
            self._drafts.clear()
            while placed > len(finals):
                self._remove(len(self.items) - 1)
                placed -= 1
        else:
            self._void()
            placed, start = 0, len(self.items)
        self.items += finals[placed:]
        self._answer = (message.id, start, len(finals))
        self._calls |= {item.call_id: start + at for at, item in enumerate(finals) if isinstance(item, ToolRow)}

    def _ground(self, event: events.FiguresChecked) -> None:
        """Add the sources of figures to the text of the newest message."""
        id, start, size = self._answer
        if event.message != id or not event.report.verdicts:
            return
        for at, item in grounded(self.items[start : start + size], event):
            self.items[start + at] = item
            self.touched.add(start + at)

    def _memory(self, event: events.MemoriesUsed | events.MemoryChanged) -> None:
        """Add a note, or show the change in the row of the call that wrote to memory."""
        row = self._row(next(reversed(self._calls), "")) if isinstance(event, events.MemoryChanged) else None
        if row is not None and row.name in MEMORY_TOOLS:
            self._change(row.call_id, replace(row, changed=memory_note(event)))
        else:
            self._add(memory_note(event))

    def _tool(self, event: events.ToolStarted | events.ToolFinished | events.Asked | events.Answered) -> None:
        match event:
            case events.ToolStarted(call=call, target=target, at=at):
                if call.id not in self._calls:
                    self._calls[call.id] = self._add(queued(call))
                row, self._counted = self._row(call.id) or queued(call), self._counted + 1
                row = replace(row, state="running", target=target or row.target, started=at, summary="")
                self._change(call.id, row)
            case events.ToolFinished(call_id=call_id, result=result, duration=duration):
                self.settle()
                if (row := self._row(call_id)) is not None:
                    self._change(call_id, finished(row, result, duration))
                    if not self.agents.alive(call_id):
                        del self._calls[call_id]
            case events.Asked(ask_id=ask_id, question=question):
                if (row := self._row(question.call_id)) is not None:
                    self._asked[ask_id] = question.call_id
                    self._change(question.call_id, replace(row, state="waiting"))
            case events.Answered(ask_id=ask_id, reply=reply):
                call_id = self._asked.pop(ask_id, "")
                if (row := self._row(call_id)) is not None:
                    self._change(call_id, answered(row, reply, event.at))

    def _turn(self, event: events.TurnStarted | events.Steered | events.TurnResumed | events.TurnEnded) -> None:
        self.agents.own(event)
        match event:
            case events.TurnStarted(prompt=message, at=at):
                self.interrupt()
                self._began, self._counted = at, 0
                self._course.begin(len(self.items))
                if not message.hidden:
                    self._add(prompt_of(message))
            case events.Steered(message=message):
                if not message.hidden and message.origin in ("user", "steer"):
                    self._add(replace(prompt_of(message), steered=True))
            case events.TurnResumed(calls=calls, at=at):
                self._began = at
                self._revive(calls)
            case events.TurnEnded(reason=reason, error=error, at=at):
                self.interrupt()
                seconds = max(0.0, at - self._began) if self._began is not None else 0.0
                if reason != "done" or self._counted or seconds >= 10:
                    self._add(End(reason, seconds, self._counted, error))
                # Work that is not a turn ends too, and has no start event.
                self._began, self._counted = None, 0

    def _revive(self, calls: Sequence[str]) -> None:
        """Show interrupted calls as queued, because they are made again."""
        wanted = set(calls)
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            if not wanted or isinstance(item, Prompt):
                break
            if isinstance(item, ToolRow) and item.call_id in wanted:
                wanted.remove(item.call_id)
                self._counted = max(0, self._counted - 1)
                self._calls[item.call_id] = index
                self._change(item.call_id, replace(item, state="queued", summary=""))

    def _rewound(self, event: events.Rewound) -> None:
        """Remove turns that were rewound, or restore them."""
        self.interrupt()
        if event.turns is not None:
            cut = self._course.back(self.items, event.turns)
            self.changed = min(self.changed, cut)
            self._calls = {id: at for id, at in self._calls.items() if at < cut}
        self._add(rewound(event))


def fold(events: Iterable[Event], agent: str = MAIN) -> list[Record]:
    """Return the records of a stored conversation. Calls that never got a result read as interrupted."""
    records = RecordFold(agent)
    for event in events:
        records.apply(event)
    records.end()
    return records.items
