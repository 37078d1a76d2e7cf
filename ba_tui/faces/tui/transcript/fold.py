"""The fold from events to records: the same list, live or replayed.

Pure: no screen and no clock; what a record is, is said in records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ba_tui.core.events import (
    MAIN,
    PERSON,
    AgentStarted,
    Answered,
    Asked,
    Compressed,
    Event,
    FiguresChecked,
    Judged,
    MemoriesUsed,
    MemoryChanged,
    MessageDone,
    MessageRestarted,
    Notice,
    Retrying,
    Rewound,
    Steered,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.messages import Message
from ba_tui.faces.tui.agents.rows import AgentRows
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
from ba_tui.faces.tui.transcript.turn_records import TurnRecords

TAIL = 4_000
MEMORY_TOOLS = ("remember", "forget")


class Records:
    """The fold. ``items`` only ever change from ``changed`` on, or in the places of ``touched``."""

    def __init__(self, agent: str = MAIN) -> None:
        """``agent``: whose transcript it is."""
        self.items: list[Record] = []
        self.touched: set[int] = set()
        self.changed = 0
        self._agent = agent
        self.agents = AgentRows(agent)
        self._calls: dict[str, int] = {}
        self._asked: dict[str, str] = {}
        self._persons: set[str] = set()
        """Commands of the person's own that run: the end of a turn is not theirs."""
        self._drafts: list[int] = []
        self._pieces: list[str] = []
        self._began: float | None = None
        self._counted = 0
        self._course = TurnRecords()
        self._answer = ("", 0, 0)
        """The id of the newest message, where its records begin, and how many they are."""

    @property
    def busy(self) -> bool:
        """Something runs whose elapsed time or countdown is shown."""
        live = self.items[-1:] + [self.items[index] for index in self._calls.values()]
        return any(isinstance(item, Retry) or (isinstance(item, ToolRow) and item.open) for item in live)

    def apply(self, event: Event) -> None:
        """Take one event in. Cheap: a delta only joins the pieces that ``settle`` puts together."""
        if event.agent != self._agent:
            self._other(event)
            return
        match event:
            case TextDelta(text=text):
                self._draft(ProseRecord, text)
            case ThinkingDelta(text=text):
                self._draft(Thought, text)
            case ToolProgress(call_id=call_id, text=text):
                self._report(call_id, text)
            case ToolInputDelta():
                self._announce(event)
            case MessageDone(message=message):
                self._message(message)
            case MessageRestarted():
                self._void()
            case ToolStarted() | ToolFinished() | Asked() | Answered():
                self._tool(event)
            case Judged(verdict="deny", call_id=call_id, tool=tool):
                if (row := self._row(call_id)) is not None and row.name == tool:
                    self._change(call_id, replace(row, note=denial(event)))
            case Retrying(reason=reason, delay=delay, attempt=attempt, attempts=attempts, at=at):
                self._unretry()
                self._add(Retry(reason, at + delay, attempt, attempts))
            case Notice(text=text, level=level, hint=hint):
                self._add(NoticeRecord(text, level, hint))
            case FiguresChecked():
                self._ground(event)
            case Compressed():
                self._add(compaction(event))
            case MemoriesUsed() | MemoryChanged():
                self._memory(event)
            case TurnStarted() | Steered() | TurnResumed() | TurnEnded():
                self._turn(event)
            case Rewound():
                self._rewound(event)
            case _:
                pass

    def _other(self, event: Event) -> None:
        """Of agents below; those in the background begin when their call is over."""
        if event.agent == PERSON and self._agent == MAIN:
            self._own(event)
            return
        if isinstance(event, AgentStarted) and (at := row_of(event.call_id, self.items)) is not None:
            self._calls[event.call_id] = at
        if line := self.agents.apply(event, self._calls):
            self._calls[line.agent_id] = self._add(agent_row(line))

    def _own(self, event: Event) -> None:
        """A command that the person runs beside the turns."""
        match event:
            case ToolStarted(call=call, target=target, at=at):
                self._persons.add(call.id)
                self._calls[call.id] = self._add(own_row(call, target, at))
            case ToolProgress(call_id=call_id, text=text):
                self._report(call_id, text)
            case ToolFinished(call_id=call_id):
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
        """Put the pieces of a streaming answer together; afterwards ``items`` is all there is."""
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
        """Nothing runs any more: calls without a result will not get one.

        Half-written calls are gone, and thoughts that came to no word: no message holds them.
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
        """The file ends here: the person's own commands do not run any more either."""
        self._persons.clear()
        self.agents.end()
        self.interrupt()

    def take_changes(self) -> tuple[int, set[int]]:
        """From which place on everything is new, and which places before it changed; then starts counting anew."""
        changes = min(self.changed, len(self.items)), {index for index in self.touched if index < self.changed}
        self.changed, self.touched = len(self.items), set()
        return changes

    def _add(self, record: Record) -> int:
        self.items.append(record)
        return len(self.items) - 1

    def _remove(self, index: int) -> None:
        """Only ever near the end; what stands behind moves up."""
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
        self.settle()
        self._unretry()
        if self._drafts:
            self._close(self._drafts[-1])
        self._drafts.append(self._add(kind("", open=True)))
        self._pieces.append(text)

    def _close(self, index: int) -> None:
        item = self.items[index]
        if isinstance(item, ProseRecord | Thought):
            self.items[index] = replace(item, open=False)
            self.touched.add(index)

    def _announce(self, event: ToolInputDelta) -> None:
        """The model is still writing the call; what it is about is not known yet."""
        summary = f"writing {event.size:,} characters"
        if (row := self._row(event.call_id)) is not None:
            self._change(event.call_id, replace(row, summary=summary))
            return
        self.settle()
        self._unretry()
        if self._drafts:
            self._close(self._drafts[-1])
        index = self._add(ToolRow(event.call_id, event.name, "…", summary=summary))
        self._calls[event.call_id] = index
        self._drafts.append(index)

    def _void(self) -> None:
        self._pieces.clear()
        for index in reversed(self._drafts):
            self._remove(index)
        self._drafts.clear()

    def _message(self, message: Message) -> None:
        """The whole answer takes the place of what its deltas had brought."""
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

    def _ground(self, event: FiguresChecked) -> None:
        """The words of the newest message know where their figures come from."""
        id, start, size = self._answer
        if event.message != id or not event.report.verdicts:
            return
        for at, item in grounded(self.items[start : start + size], event):
            self.items[start + at] = item
            self.touched.add(start + at)

    def _memory(self, event: MemoriesUsed | MemoryChanged) -> None:
        """A line of its own, unless a call wrote to memory: then the call's row says it."""
        row = self._row(next(reversed(self._calls), "")) if isinstance(event, MemoryChanged) else None
        if row is not None and row.name in MEMORY_TOOLS:
            self._change(row.call_id, replace(row, changed=memory_note(event)))
        else:
            self._add(memory_note(event))

    def _tool(self, event: ToolStarted | ToolFinished | Asked | Answered) -> None:
        match event:
            case ToolStarted(call=call, target=target, at=at):
                if call.id not in self._calls:
                    self._calls[call.id] = self._add(queued(call))
                row, self._counted = self._row(call.id) or queued(call), self._counted + 1
                row = replace(row, state="running", target=target or row.target, started=at, summary="")
                self._change(call.id, row)
            case ToolFinished(call_id=call_id, result=result, duration=duration):
                self.settle()
                if (row := self._row(call_id)) is not None:
                    self._change(call_id, finished(row, result, duration))
                    if not self.agents.alive(call_id):
                        del self._calls[call_id]
            case Asked(ask_id=ask_id, question=question):
                if (row := self._row(question.call_id)) is not None:
                    self._asked[ask_id] = question.call_id
                    self._change(question.call_id, replace(row, state="waiting"))
            case Answered(ask_id=ask_id, reply=reply):
                call_id = self._asked.pop(ask_id, "")
                if (row := self._row(call_id)) is not None:
                    self._change(call_id, answered(row, reply, event.at))

    def _turn(self, event: TurnStarted | Steered | TurnResumed | TurnEnded) -> None:
        self.agents.own(event)
        match event:
            case TurnStarted(prompt=message, at=at):
                self.interrupt()
                self._began, self._counted = at, 0
                self._course.begin(len(self.items))
                if not message.hidden:
                    self._add(prompt_of(message))
            case Steered(message=message):
                if not message.hidden and message.origin in ("user", "steer"):
                    self._add(replace(prompt_of(message), steered=True))
            case TurnResumed(calls=calls, at=at):
                self._began = at
                self._revive(calls)
            case TurnEnded(reason=reason, error=error, at=at):
                self.interrupt()
                seconds = max(0.0, at - self._began) if self._began is not None else 0.0
                if reason != "done" or self._counted or seconds >= 10:
                    self._add(End(reason, seconds, self._counted, error))
                # Work beside the turns ends too, and has no beginning.
                self._began, self._counted = None, 0

    def _revive(self, calls: Sequence[str]) -> None:
        """Rows that read as interrupted are those of calls that are made again."""
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

    def _rewound(self, event: Rewound) -> None:
        """Turns that were taken back go, those that were brought back come again."""
        self.interrupt()
        if event.turns is not None:
            cut = self._course.back(self.items, event.turns)
            self.changed = min(self.changed, cut)
            self._calls = {id: at for id, at in self._calls.items() if at < cut}
        self._add(rewound(event))


def fold(events: Iterable[Event], agent: str = MAIN) -> list[Record]:
    """The records of a stored conversation. Calls that never got a result read as interrupted."""
    records = Records(agent)
    for event in events:
        records.apply(event)
    records.end()
    return records.items
