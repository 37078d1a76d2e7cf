"""A session as the parts of a document, in order: what was said, answered, called and remarked.

Pure: events in, parts out. How a part looks is the business of markdown and html; totals are outline's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import TypeAlias

from ba_tui.core.displays.charts import Chart
from ba_tui.core.events import (
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
OUTPUT = 20_000
"""Characters of a tool's output that stand in a document."""
_ENDINGS = {
    "cancelled": "Stopped by the person.",
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
        """Empty for the main one."""
        return "" if self.end.agent == MAIN else self.end.agent


@frozen
class Remark:
    """A line about the session itself."""

    text: str


@frozen
class PlanPart:
    """A plan as it stood in the end, in the place where it was made."""

    plan: Plan


DocumentPart: TypeAlias = DocumentOpening | PromptPart | AnswerPart | ToolCallPart | PlanPart | Remark


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


def _parts(events: Iterable[Event], whole: Survey) -> Iterator[DocumentPart | FiguresChecked]:
    started: dict[str, ToolStarted] = {}
    planned: set[str] = set()
    for event in current_events(events, whole.timeline):
        match event:
            case PlanChanged(plan=plan) if plan.subtasks and plan.id not in planned:
                planned.add(plan.id)
                record = whole.plans.find(plan.id)
                yield PlanPart(record.plan if record else plan)
            case TurnStarted(prompt=message, agent="main", at=at):
                yield DocumentOpening(at)
                yield PromptPart(message)
            case TurnStarted(prompt=message):
                yield Remark(f"{event.agent} is asked: {message.text}")
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
        f"{used.prompt:,} tokens in, {used.output:,} out" if used.prompt or used.output else "",
        "" if whole.cost is None else f"${whole.cost:.4f}",
    ]
    return [*found[:2], *(fact for fact in found[2:] if fact)]
