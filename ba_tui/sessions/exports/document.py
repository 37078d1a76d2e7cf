"""A session as the parts of a document, in order: what was said, answered, called and remarked.

Pure: events in, parts out. How a part looks is the business of markdown and html; totals are outline's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from ba_tui.core.displays.charts import Chart
from ba_tui.core.events import (
    AgentStarted,
    Compressed,
    Event,
    FiguresChecked,
    MessageDone,
    Notice,
    PlanChanged,
    Rewound,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import CommandText, Diff, Diffs
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.sessions.exports.outline import Survey, time_of
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import MAIN
from ba_tui.sessions.timeline import current_events

_DIFF_LINES = 20_000
BELOW = f"{MAIN}/"
"""What the names of sub-agents begin with."""
OUTPUT = 20_000
"""Characters of a tool's output that stand in a document."""
_ENDINGS = {
    "cancelled": "Stopped by the user.",
    "limit": "Stopped at a limit.",
    "error": "Ended with an error.",
    "interrupted": "Interrupted: ba was ended in the middle of this turn.",
}


@frozen
class DocumentOpening:
    """A turn begins."""

    at: float


@frozen
class PromptPart:
    message: Message


@frozen
class AnswerPart:
    """``figures``: where those of the answer come from, as far as they were checked."""

    message: Message
    figures: FigureReport | None = None


@frozen
class ToolCallPart:
    start: ToolStarted | None
    end: ToolFinished

    @property
    def changes(self) -> list[Diff]:
        """What it changed in files."""
        shown = self.end.result.display
        items = shown.items if isinstance(shown, Diffs) else (shown,)
        return [] if self.end.result.is_error else [item for item in items if isinstance(item, Diff)]

    @property
    def outcome(self) -> str:
        result = self.end.result
        return result.error.message if result.error else result.summary

    def output(self, hide: Callable[[str], str]) -> str:
        """What it gave, its middle left out where that is long; empty where ``outcome`` or ``changes`` say it all."""
        result = self.end.result
        shown = result.display
        text = shown.output if isinstance(shown, CommandText) else "" if result.error else result.text
        if isinstance(shown, Chart):
            from ba_tui.plotting.drawing import text_of  # noqa: PLC0415 - most sessions have no chart

            text = f"{text_of(shown)}\n\n{text}"
        lines = shown.lines if isinstance(shown, CommandText) else 0
        # Secrets first: half of one is not recognised.
        return _without_middle(paintable(hide(text)), lines) if text.strip() and not self.changes else ""

    @property
    def agent(self) -> str:
        """Who made it beside the turns; empty for the main agent, and for those that have a section of their own."""
        return "" if self.end.agent == MAIN or self.end.agent.startswith(BELOW) else self.end.agent


@frozen
class Remark:
    """A line about the session itself."""

    text: str


@frozen
class PlanPart:
    """A plan as it stood in the end, in the place where it was made."""

    plan: Plan


@frozen
class AgentPart:
    """What a sub-agent was told, said and did, its own sub-agents among it. ``calls`` are its own."""

    name: str
    kind: str
    description: str
    parts: tuple[DocumentPart, ...]
    calls: int = 0
    seconds: float = 0.0
    ending: str = ""

    @property
    def head(self) -> str:
        """The line that stands for all of it while it is folded."""
        kind = f" ({self.kind})" if self.kind and not self.name.startswith(f"{self.kind}-") else ""
        about = f"{self.name}{kind}: {self.description}" if self.description else f"{self.name}{kind}"
        ended = self.ending if self.ending != "done" else ""
        facts = [count(self.calls, "call"), f"{self.seconds:.0f} s" if self.seconds >= 1 else "", ended]
        return " · ".join([one_line(about), *filter(None, facts)])


DocumentPart: TypeAlias = DocumentOpening | PromptPart | AnswerPart | ToolCallPart | PlanPart | Remark | AgentPart


def _without_middle(text: str, lines: int) -> str:
    """``text`` up to OUTPUT characters, cut at line ends; ``lines``: how many there were, if some are gone."""
    if len(text) <= OUTPUT:
        return text
    half = OUTPUT // 2
    upto = text.rfind("\n", 0, half) + 1 or half
    start = text.find("\n", len(text) - half) + 1 or len(text) - half
    left = max(lines, text.count("\n")) - text.count("\n", 0, upto) - text.count("\n", start)
    what = count(left, "line") if left else count(start - upto, "character")
    return f"{text[:upto].rstrip()}\n[… {what} left out here …]\n{text[start:]}"


def document_parts(events: Iterable[Event], whole: Survey) -> Iterator[DocumentPart]:
    """Turns that were taken back are left out; what a compression left out of requests is all there."""
    answer: AnswerPart | None = None
    for part in _parts(events, whole):
        # The figures of an answer are checked right after it.
        if isinstance(part, FiguresChecked):
            if answer and answer.message.id == part.message and part.report.verdicts:
                answer = AnswerPart(answer.message, part.report)
            continue
        if answer:
            yield answer
        answer = part if isinstance(part, AnswerPart) else None
        if answer is None:
            yield part
    if answer:
        yield answer


@dataclass
class _Section:
    """A sub-agent that has not ended yet."""

    kind: str = ""
    description: str = ""
    background: bool = False
    began: float = 0.0
    calls: int = 0
    parts: list[DocumentPart] = field(default_factory=list["DocumentPart"])
    started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])


class AgentSections:
    """Gathers what each sub-agent did until it ends: several work at once, and a reader wants one after the other."""

    def __init__(self) -> None:
        self._open: dict[str, _Section] = {}

    def take(self, event: Event) -> Iterator[AgentPart]:
        """Take in an event of a sub-agent; its section comes with its end."""
        section = self._open.setdefault(event.agent, _Section(began=event.at))
        match event:
            case AgentStarted():
                section.kind, section.description, section.background = event.kind, event.description, event.background
            case TurnStarted(prompt=message):
                section.parts.append(PromptPart(message))
            case Steered(message=message) if not message.hidden:
                section.parts.append(PromptPart(message))
            case MessageDone(message=message) if message.text.strip():
                section.parts.append(AnswerPart(message))
            case ToolStarted(call=call):
                section.calls += 1
                section.started[call.id] = event
            case ToolFinished(call_id=call_id):
                section.parts.append(ToolCallPart(section.started.pop(call_id, None), event))
            case Notice(text=text, level="warning" | "error"):
                section.parts.append(Remark(text))
            case TurnEnded(reason=reason, error=error):
                if error:
                    section.parts.append(Remark(error.message))
                yield from self._close(event.agent, reason, event.at)
            case _:
                pass

    def left(self, at: float | None = None) -> Iterator[AgentPart]:
        """Those that have no end, at the beginning or end of a turn; those in the background only at the very end."""
        for agent in sorted(self._open, key=lambda name: -name.count("/")):
            if at is None or not self._open[agent].background:
                yield from self._close(agent, "interrupted", at or self._open[agent].began)

    def _close(self, agent: str, reason: str, at: float) -> Iterator[AgentPart]:
        ended = self._open.pop(agent)
        facts = (ended.kind, ended.description, tuple(ended.parts), ended.calls, max(0.0, at - ended.began), reason)
        part = AgentPart(agent.rpartition("/")[2], *facts)
        above = self._open.get(agent.rpartition("/")[0])
        if above is None:
            yield part
        else:
            above.parts.append(part)


def _parts(events: Iterable[Event], whole: Survey) -> Iterator[DocumentPart | FiguresChecked]:
    started: dict[str, ToolStarted] = {}
    planned: set[str] = set()
    sections = AgentSections()
    for event in current_events(events, whole.timeline):
        if event.agent.startswith(BELOW):
            yield from sections.take(event)
            continue
        if isinstance(event, TurnStarted | TurnEnded):
            yield from sections.left(event.at)
        match event:
            case PlanChanged(plan=plan) if plan.subtasks and plan.id not in planned:
                planned.add(plan.id)
                record = whole.plans.find(plan.id)
                yield PlanPart(record.plan if record else plan)
            case TurnStarted(prompt=message, agent="main", at=at):
                yield DocumentOpening(at)
                yield PromptPart(message)
            case Steered(message=message) if not message.hidden:
                yield PromptPart(message)
            case MessageDone(message=message, agent="main") if message.text.strip():
                yield AnswerPart(message)
            case FiguresChecked(agent="main"):
                yield event
            case ToolStarted(call=call):
                started[call.id] = event
            case ToolFinished(call_id=call_id):
                yield ToolCallPart(started.pop(call_id, None), event)
            case _:
                if remark := _remark(event):
                    yield Remark(remark)
    yield from sections.left()


def _remark(event: Event) -> str:
    match event:
        case Notice(text=text, level="warning" | "error"):
            return text
        case TurnEnded(reason=reason, error=error, agent="main") if reason in _ENDINGS:
            return _ENDINGS[reason] + (f" {error.message}" if error else "")
        case Compressed(strategy="undo", agent="main"):
            return "The last compression was taken back: the model is sent everything again."
        case Compressed(strategy=strategy, before=before, after=after, agent="main"):
            size = f", {before:,} to {after:,} tokens" if before else ""
            return f"Compressed ({strategy}{size}): the model is sent less from here on. Nothing is left out above."
        case Rewound(turns=None, agent="main"):
            return "Files were brought back as they were before."
        case Rewound(agent="main"):
            return "Gone back to an earlier turn. What was taken back is left out here."
        case _:
            return ""


def changed_lines(change: Diff) -> list[str]:
    """One file's change as a unified diff."""
    import difflib  # noqa: PLC0415 - for exports alone

    before, after = (change.before or "").split("\n"), change.after.split("\n")
    if len(before) + len(after) > _DIFF_LINES and change.before is not None:
        head = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))))
        return [f"(a large file; its first change is at line {head + 1})"]
    path = one_line(change.path)
    old = path if change.before is not None else "/dev/null"
    return list(difflib.unified_diff(before if change.before is not None else [], after, old, path, lineterm=""))


def session_summary(info: SessionInfo, whole: Survey) -> list[str]:
    """What stands under the title: id and folder first."""
    used = whole.usage
    found = [
        info.id,
        one_line(str(info.cwd)),
        time_of(info.created),
        one_line(info.model),
        count(info.turns, "turn"),
        f"{used.about}{used.prompt:,} tokens in, {used.about}{used.output:,} out" if used.prompt or used.output else "",
        "" if whole.cost is None else f"${whole.cost:.4f}",
    ]
    return [*found[:2], *(fact for fact in found[2:] if fact)]
