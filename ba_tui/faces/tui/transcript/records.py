"""Records of the transcript, and the records of each turn, so that a rewind can remove and restore turns.

Pure: no screen, width or colour. Text is stored unchanged; painting code makes it paintable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import (
    Compressed,
    Ending,
    Event,
    FiguresChecked,
    Judged,
    MemoriesUsed,
    MemoryChanged,
    MemoryLine,
    Rewound,
    Strategy,
)
from ba_tui.core.messages import Document, Image, Message, RedactedThinking, Text, Thinking, ToolUse
from ba_tui.core.questions import Reply
from ba_tui.core.results import UNREAD, CommandText, Table, ToolResult
from ba_tui.core.text.wording import count, one_line, with_hint
from ba_tui.core.values import frozen
from ba_tui.faces.tui.roster import RosterEntry
from ba_tui.faces.tui.transcript.figure_marks import AnswerFigures

RecordState: TypeAlias = Literal["queued", "waiting", "running", "ok", "failed", "denied", "cancelled"]
OPEN: tuple[RecordState, ...] = ("queued", "waiting", "running")


@frozen
class Prompt:
    """The user's words; ``steered`` when they joined a running turn, ``unread`` while the model has not got them."""

    text: str
    attached: tuple[str, ...] = ()
    steered: bool = False
    unread: bool = False


@frozen
class ProseRecord:
    """An answer in Markdown. ``open`` while it streams; ``partial`` says why it is not whole. ``table``: the one of its
    tables that is to be opened, ``figure`` likewise the number of one of its figures, or -1 for all."""

    text: str
    open: bool = False
    partial: str = ""
    table: Table | None = None
    grounded: AnswerFigures | None = None
    figure: int | None = None


@frozen
class Thought:
    """Reasoning that the model showed."""

    text: str
    open: bool = False


@frozen
class MemoryNote:
    """Memories that were sent with the prompt above, or a change of memory; ``hint``: how to undo it."""

    text: str
    memories: tuple[MemoryLine, ...] = ()
    hint: str = ""


@frozen
class ToolRow:
    """One call. ``tail`` is its output while running, ``note`` who or what denied it, and why. ``own``: the user ran
    it.
    """

    call_id: str
    name: str
    target: str = ""
    state: RecordState = "queued"
    args: Mapping[str, Any] | None = None
    started: float = 0.0
    duration: float = 0.0
    tail: str = ""
    summary: str = ""
    note: str = ""
    refused: bool = False
    """The user denied it."""
    result: ToolResult | None = None
    own: bool = False
    changed: MemoryNote | None = None
    """Its change of memory."""
    agents: tuple[RosterEntry, ...] = ()
    """The sub-agents that it started."""

    @property
    def open(self) -> bool:
        """Whether it or one of its background agents runs or waits."""
        return self.state in OPEN or any(line.running for line in self.agents)


@frozen
class NoticeRecord:
    """A notice: words for the user that the model does not see."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    hint: str = ""


@frozen
class Compaction:
    """A compression of the conversation, or its undoing. ``notes``: the text that replaces removed messages."""

    strategy: Strategy
    before: int
    after: int
    cost: float | None = None
    kept: str = ""
    notes: str = ""


@frozen
class Retry:
    """The request goes out again at ``until`` (seconds since the epoch)."""

    reason: str
    until: float
    attempt: int
    attempts: int


@frozen
class End:
    """How a turn ended, after how many seconds and calls."""

    reason: Ending
    seconds: float = 0.0
    calls: int = 0
    error: ErrorInfo | None = None


Record: TypeAlias = Prompt | ProseRecord | Thought | ToolRow | NoticeRecord | MemoryNote | Compaction | Retry | End

_PARTIAL = {
    "cancelled": "interrupted: this answer is incomplete",
    "error": "failed: this answer is incomplete",
    "max_tokens": "stopped at the output limit",
    "context_window": "stopped: the context window is full",
    "refusal": "the model declined to continue",
}
UNDO = "/memory undo"
QUOTED = 80
"""Characters of a memory in a line about it."""
_TELLING = ("path", "file_path", "command", "pattern", "query", "question", "url", "expression", "name")


def source(record: Record) -> str:
    """Return what copying the whole record gives: its source text, not its looks."""
    match record:
        case Prompt(text=text) | ProseRecord(text=text) | Thought(text=text):
            return text
        case ToolRow(result=ToolResult(display=CommandText(command=command, output=output))):
            return f"$ {command}\n{output}"
        case ToolRow():
            head = f"{record.name} {record.target}".strip()
            return f"{head}\n{record.result.text if record.result else record.tail}".strip()
        case NoticeRecord(text=text, hint=hint):
            return with_hint(text, hint)
        case MemoryNote(text=text, memories=memories):
            return "\n".join((text, *(memory.text for memory in memories)))
        case Compaction(kept=kept, notes=notes):
            return f"{kept}\n\n{notes}".strip()
        case Retry(reason=reason):
            return reason
        case End(reason=reason, error=error):
            return error.with_hint if error else reason


def unread(result: ToolResult) -> str:
    """Return which parts of the result the model did not get; empty if it read all."""
    lines = result.meta.get(UNREAD)
    if not isinstance(lines, int):
        return ""
    return f"The model did not read {count(lines, 'line')} in the middle." if lines else "The model read a summary."


def prompt_of(message: Message) -> Prompt:
    attached = tuple(
        block.media_type if isinstance(block, Image) else block.title or block.media_type
        for block in message.blocks
        if isinstance(block, Image | Document)
    )
    return Prompt(message.said, attached)


def compaction(event: Compressed) -> Compaction:
    made = [message for message in event.messages if message.origin == "compaction" and message.role == "user"]
    notes = [message.text for message in made] if event.strategy != "undo" else []
    return Compaction(event.strategy, event.before, event.after, event.cost, event.kept, "\n\n".join(notes))


def records_of(message: Message) -> Iterable[Record]:
    """Yield the records of one answer in order; adjacent texts are one record."""
    words = ""
    thoughts = ""
    ending = _PARTIAL.get(message.stop or "", "")
    for block in message.blocks:
        if isinstance(block, RedactedThinking) or (isinstance(block, Thinking) and not block.thinking):
            continue
        if words and not isinstance(block, Text):
            yield ProseRecord(words)
            words = ""
        if thoughts and not isinstance(block, Thinking):
            yield Thought(thoughts)
            thoughts = ""
        match block:
            case Text(text=text):
                words += text
            case Thinking(thinking=text):
                thoughts += text
            case ToolUse():
                yield queued(block)
            case _:
                pass
    if thoughts:
        yield Thought(thoughts)
    if words or ending:
        yield ProseRecord(words, partial=ending)


def memory_note(event: MemoriesUsed | MemoryChanged) -> MemoryNote:
    """Return one line: how many memories were used, or which were stored, replaced and forgotten."""
    if isinstance(event, MemoriesUsed):
        return MemoryNote(f"{count(len(event.memories), 'memory')} used", event.memories)
    stored = [
        "a summary of this session"
        if each.kind == "summary"
        else f"“{one_line(each.text, QUOTED)}”" + (f" (before: “{one_line(each.older, QUOTED)}”)" if each.older else "")
        for each in event.stored
    ]
    parts = [
        f"Remembered {', '.join(stored)}" if stored else "",
        f"Forgot {count(len(event.forgotten), 'memory')}" if event.forgotten else "",
        "Private from here on: nothing is stored or recalled" if event.private else "",
    ]
    undo = f"{UNDO} takes it back." if event.stored or event.forgotten else ""
    return MemoryNote(f"{' · '.join(filter(None, parts))}.", event.stored, undo)


def queued(call: ToolUse) -> ToolRow:
    return ToolRow(call.id, call.name, _guessed_target(call.input), args=call.input)


def _guessed_target(args: Mapping[str, Any]) -> str:
    """Return a short description of a call, used until its tool reports one."""
    value = next((args[name] for name in _TELLING if args.get(name)), None)
    if value is None:
        value = next((item for item in args.values() if isinstance(item, str | int | float) and item != ""), "")
    return " ".join(str(value)[:500].split())


def denial(event: Judged) -> str:
    """Return who or what denied a call, and why: the user, a rule, a hook, the mode or the sandbox."""
    first, _, rest = " ".join(event.reason.split()).partition(". ")
    why = first.rstrip(".")
    match event.by:
        case "person":
            return f"you said: {event.reason.strip()}" if why else "you said no"
        case "rule" if event.rule:
            rule = f"rule {event.rule}"
            return f"{rest.rstrip('.')} ({rule})" if rest else rule
        case "hook":
            return ": ".join(filter(None, (f"hook {event.rule}".rstrip(), why)))
        case _:
            return f"{why[:1].lower()}{why[1:]}"


def finished(row: ToolRow, result: ToolResult, duration: float) -> ToolRow:
    kind = result.error.kind if result.error else ""
    state: RecordState = "failed" if result.failed else "ok"
    if kind == "permission_denied":
        state = "denied"
    elif kind == "interrupted":
        state = "cancelled"
    if state == "denied" and not row.note and not row.refused and result.error:
        row = replace(row, note=" ".join(result.error.message.split()).partition(". ")[0].rstrip("."))
    summary = row.note if state == "denied" and row.note else result.summary
    if row.changed and row.changed.hint:
        older = [f"before: “{one_line(each.older, QUOTED)}”" for each in row.changed.memories if each.older]
        summary = " · ".join((summary, *older, UNDO))
    return replace(row, state=state, result=result, duration=duration, summary=summary, tail="")


def own_row(call: ToolUse, target: str, at: float) -> ToolRow:
    """Return the row of a command that the user runs."""
    name = "/sql" if "sql" in call.input else "!! private" if call.input.get("private") else "! shared"
    return ToolRow(call.id, name, target, "running", call.input, at, own=True)


def agent_row(line: RosterEntry) -> ToolRow:
    """Return the row of an agent that no call started; its id is the agent's name."""
    return ToolRow(line.agent_id, line.kind, line.description, "running", started=line.began, agents=(line,))


def with_agents(row: ToolRow, lines: tuple[RosterEntry, ...]) -> ToolRow:
    """Return the row with its agents as they are now; that of an agent alone ends with it."""
    first = lines[0]
    if row.call_id == first.agent_id and not first.running:
        return replace(row, agents=lines, state=first.state, duration=first.seconds(first.ended), summary=first.words)
    return replace(row, agents=lines)


def answered(row: ToolRow, reply: Reply, at: float) -> ToolRow:
    """Return the row of a call that the user allowed or denied."""
    refused = reply.choice == "deny"
    row = row if reply.edited is None else _edited(row, reply.edited)
    return replace(row, state="running", started=at, note=reply.text if refused else "", refused=refused)


def _edited(row: ToolRow, args: Mapping[str, Any]) -> ToolRow:
    """Return the row of a call that the user changed, with the target that really runs."""
    said = [key for key, value in (row.args or {}).items() if value == row.target]
    named = [args[key] for key in said if isinstance(args.get(key), str)]
    return replace(row, args=args, target=named[0] if named else row.target)


def grounded(items: Sequence[Record], event: FiguresChecked) -> Iterator[tuple[int, Record]]:
    """Yield the words among the records of an answer, by place, which know then where their figures come from."""
    prose = [(at, item) for at, item in enumerate(items) if isinstance(item, ProseRecord)]
    place = 0
    for at, item in prose:
        yield at, replace(item, grounded=AnswerFigures(event.report, event.message, place, at == prose[-1][0]))
        place += len(item.text)


def row_of(call_id: str, items: Sequence[Record]) -> int | None:
    """Return the place of a call's row in the newest turn."""
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if isinstance(item, ToolRow) and item.call_id == call_id:
            return at
        if isinstance(item, Prompt) and not item.steered:
            return None
    return None


def rewound(event: Rewound) -> NoticeRecord:
    what = "The files were rewound" if event.turns is None else "Rewound to here"
    files = ", files included" if event.files and event.turns is not None else ""
    return NoticeRecord(f"{what}{files}.", "info", "Use /rewind undo to go forward again.")


def reaches_back(event: Event) -> bool:
    """Return whether it changes earlier records, so that only the whole history can be folded."""
    return isinstance(event, Rewound) and event.turns is not None


class TurnRecords:
    """Parts of the list: 0 precedes the first turn, turns are numbered from 1, records of rewinds from -1."""

    def __init__(self) -> None:
        self._before: dict[int, int | None] = {0: None}
        self._line: list[int] = [0]
        self._begins: dict[int, int] = {0: 0}
        self._gone: dict[int, list[Record]] = {}
        self._turns = 0
        self._rewinds = 0

    def begin(self, at: int) -> None:
        """Begin a turn with the record at ``at``."""
        self._turns += 1
        self._open(self._turns, at)

    def _open(self, part: int, at: int) -> None:
        self._before[part] = self._line[-1]
        self._line.append(part)
        self._begins[part] = at

    def back(self, items: list[Record], turn: int) -> int:
        """Restore ``items`` as of the end of ``turn``; return from which place on they changed."""
        wanted: list[int] = []
        part = turn if turn in self._before else None
        while part is not None:
            wanted.insert(0, part)
            part = self._before[part]
        if not wanted:
            # Only a part of the history is known here.
            return len(items)
        same = 0
        while same < min(len(wanted), len(self._line)) and wanted[same] == self._line[same]:
            same += 1
        ends = [*(self._begins[part] for part in self._line[1:]), len(items)]
        for part, end in list(zip(self._line, ends, strict=True))[same:]:
            self._gone[part] = items[self._begins[part] : end]
        cut = ends[same - 1]
        del items[cut:]
        for part in wanted[same:]:
            self._begins[part] = len(items)
            items += self._gone.pop(part)
        self._line = wanted
        self._rewinds += 1
        self._open(-self._rewinds, len(items))
        return cut
