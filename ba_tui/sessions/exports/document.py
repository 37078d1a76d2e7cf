"""A session as the parts of a document, in order; its totals; its plans; and its questions with final answers.

Pure: events in, parts out. ``markdown`` and ``html`` render the parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.events import (
    AgentStarted,
    Compressed,
    Event,
    FiguresChecked,
    MessageDone,
    Notice,
    PlanChanged,
    Rewound,
    SideRequest,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.messages import Message, Usage
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.ports.sessions import Outline, SessionInfo, TurnLine
from ba_tui.core.results import Chart, CommandText, Diff, Diffs
from ba_tui.core.teamwork import Plan
from ba_tui.core.text.figures import AnswerNotes, FigureReport, Footnotes
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.plotting.plan_exports import as_json, mermaid, plan_of
from ba_tui.plotting.plan_graph import tree_text
from ba_tui.plotting.plan_signs import STATES, counted, words
from ba_tui.sessions.foreign import escaped, one_line, without_secrets
from ba_tui.sessions.records import MAIN
from ba_tui.sessions.timeline import Timeline, current_events, follow


class Survey:
    """Totals of a session that a document needs before its first part: turns, usage, cost.

    ``cost`` is in US dollars; None unless every item had a price. Usage and cost include undone turns and summaries, as
    billed.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.timeline = Timeline()
        self.usage = Usage()
        self.compressions: list[Compressed] = []
        """The compressions, without their messages."""
        self.plans = PlanCourse()
        self._cost: float | None = None
        self._priced = True
        self._turns: dict[int, TurnLine] = {}
        self._asked_again: set[str] = set()
        """Calls that start again, because their question was open when ba ended."""
        for event in follow(events, self.timeline):
            self._add(event)

    @property
    def cost(self) -> float | None:
        return self._cost if self._priced else None

    @property
    def turns(self) -> list[TurnLine]:
        """The current turns, renumbered."""
        kept = (self._turns[number] for number in self.timeline.numbers() if number in self._turns)
        return [replace(line, number=number) for number, line in enumerate(kept, 1)]

    def outline(self, hide: Callable[[str], str]) -> Outline:
        return Outline(self.usage, tuple(replace(line, prompt=hide(line.prompt)) for line in self.turns))

    def _add(self, event: Event) -> None:
        self.plans.apply(event)
        turn = self.timeline.last
        match event:
            case MessageDone(message=message, cost=price):
                self.usage += message.usage or Usage()
                self._pay(price, known=price is not None or message.usage is None)
            case SideRequest(cost=price, usage=used):
                self.usage += used or Usage()
                self._pay(price, known=price is not None)
            case Compressed(cost=price, usage=used):
                self.usage += used or Usage()
                self._pay(price or None, known=event.priced)
                self.compressions.append(replace(event, messages=()))
            case TurnStarted(prompt=message, agent="main", at=at):
                self._turns[turn] = TurnLine(turn, at, one_line(message.said))
            case ToolStarted(call=call) if turn in self._turns and call.id not in self._asked_again:
                line = self._turns[turn]
                self._turns[turn] = replace(line, calls=line.calls + 1)
            case TurnResumed(calls=calls):
                self._asked_again.update(calls)
            case TurnEnded(agent="main", reason=reason) if turn in self._turns:
                self._turns[turn] = replace(self._turns[turn], ended=reason)
            case _:
                pass

    def _pay(self, price: float | None, *, known: bool) -> None:
        self._priced = self._priced and known
        if price is not None:
            self._cost = (self._cost or 0.0) + price


def as_record(line: TurnLine) -> dict[str, Any]:
    """Return a turn as a JSON record."""
    record = {"number": line.number, "at": iso(line.at), "prompt": line.prompt, "tool_calls": line.calls}
    return {**record, "ended": line.ended} if line.ended else record


def time_of(at: float) -> str:
    return iso(at).replace("T", " ").replace("+00:00", " UTC")


def iso(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


_DIFF_LINES = 20_000
BELOW = f"{MAIN}/"
"""Prefix of sub-agents' names."""
OUTPUT = 20_000
"""Maximum characters of a tool's output in a document."""
_ENDINGS = {
    "cancelled": "Stopped by the user.",
    "limit": "Stopped at a limit.",
    "error": "Ended with an error.",
    "interrupted": "Interrupted: ba was ended in the middle of this turn.",
}


@frozen
class DocumentOpening:
    """The beginning of a turn."""

    at: float


@frozen
class PromptPart:
    message: Message


@frozen
class AnswerPart:
    """``figures``: the verdicts on the answer's figures, if they were checked."""

    message: Message
    figures: FigureReport | None = None


@frozen
class ToolCallPart:
    start: ToolStarted | None
    end: ToolFinished

    @property
    def changes(self) -> list[Diff]:
        """Its changes to files."""
        shown = self.end.result.display
        items = shown.items if isinstance(shown, Diffs) else (shown,)
        return [] if self.end.result.is_error else [item for item in items if isinstance(item, Diff)]

    @property
    def outcome(self) -> str:
        result = self.end.result
        return result.error.message if result.error else result.summary

    def output(self, hide: Callable[[str], str]) -> str:
        """Return its output with the middle of long output left out; empty if ``outcome`` or ``changes`` contain
        everything."""
        result = self.end.result
        shown = result.display
        text = shown.output if isinstance(shown, CommandText) else "" if result.error else result.text
        if isinstance(shown, Chart):
            from ba_tui.plotting.drawing import text_of  # noqa: PLC0415 - most sessions have no chart

            text = f"{text_of(shown)}\n\n{text}"
        lines = shown.lines if isinstance(shown, CommandText) else 0
        # Hide secrets before shortening: half of a secret is not recognised.
        return _without_middle(paintable(hide(text)), lines) if text.strip() and not self.changes else ""

    @property
    def agent(self) -> str:
        """The name of a caller outside the turns; empty for the main agent and for agents with their own section."""
        return "" if self.end.agent == MAIN or self.end.agent.startswith(BELOW) else self.end.agent


@frozen
class Remark:
    """A line about the session itself."""

    text: str


@frozen
class PlanPart:
    """The final state of a plan, at the place where it was made."""

    plan: Plan


@frozen
class AgentPart:
    """A sub-agent's task, words and calls, including its own sub-agents. ``calls`` are its own."""

    name: str
    kind: str
    description: str
    parts: tuple[DocumentPart, ...]
    calls: int = 0
    seconds: float = 0.0
    ending: str = ""

    @property
    def head(self) -> str:
        """The line shown while the section is folded."""
        kind = f" ({self.kind})" if self.kind and not self.name.startswith(f"{self.kind}-") else ""
        about = f"{self.name}{kind}: {self.description}" if self.description else f"{self.name}{kind}"
        ended = self.ending if self.ending != "done" else ""
        facts = [count(self.calls, "call"), f"{self.seconds:.0f} s" if self.seconds >= 1 else "", ended]
        return " · ".join([one_line(about), *filter(None, facts)])


DocumentPart: TypeAlias = DocumentOpening | PromptPart | AnswerPart | ToolCallPart | PlanPart | Remark | AgentPart


def _without_middle(text: str, lines: int) -> str:
    """Return ``text`` limited to OUTPUT characters, cut at line ends. ``lines``: the original number of lines, if some
    are missing."""
    if len(text) <= OUTPUT:
        return text
    half = OUTPUT // 2
    upto = text.rfind("\n", 0, half) + 1 or half
    start = text.find("\n", len(text) - half) + 1 or len(text) - half
    left = max(lines, text.count("\n")) - text.count("\n", 0, upto) - text.count("\n", start)
    what = count(left, "line") if left else count(start - upto, "character")
    return f"{text[:upto].rstrip()}\n[… {what} left out here …]\n{text[start:]}"


def document_parts(events: Iterable[Event], whole: Survey) -> Iterator[DocumentPart]:
    """Yield the parts of a session. Undone turns are left out; messages removed by compression are included."""
    answer: AnswerPart | None = None
    for part in _parts(events, whole):
        # The check of an answer's figures follows directly.
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
    """Collects the events of each sub-agent until it ends: several work at the same time, and readers want one after
    the other."""

    def __init__(self) -> None:
        self._open: dict[str, _Section] = {}

    def take(self, event: Event) -> Iterator[AgentPart]:
        """Add an event of a sub-agent; its section is yielded at its end."""
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
        """Yield sections without an end, at the beginning or end of a turn; background agents only at the very end."""
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
            return "The last compression was undone: the model receives everything again."
        case Compressed(strategy=strategy, before=before, after=after, agent="main"):
            size = f", {before:,} to {after:,} tokens" if before else ""
            return f"Compressed ({strategy}{size}): the model is sent less from here on. Nothing is left out above."
        case Rewound(turns=None, agent="main"):
            return "Files were restored to an earlier state."
        case Rewound(agent="main"):
            return "Rewound to an earlier turn. The undone turns are left out here."
        case _:
            return ""


def changed_lines(change: Diff) -> list[str]:
    """Return one file's change as a unified diff."""
    import difflib  # noqa: PLC0415 - for exports alone

    before, after = (change.before or "").split("\n"), change.after.split("\n")
    if len(before) + len(after) > _DIFF_LINES and change.before is not None:
        head = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))))
        return [f"(a large file; its first change is at line {head + 1})"]
    path = one_line(change.path)
    old = path if change.before is not None else "/dev/null"
    return list(difflib.unified_diff(before if change.before is not None else [], after, old, path, lineterm=""))


def session_summary(info: SessionInfo, whole: Survey) -> list[str]:
    """Return the facts below the title: id and folder first."""
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


Hide = Callable[[str], str]


def newest_plan(events: Iterable[Event], format: str, hide: Hide) -> str:
    """Return the newest current plan in the format ``mermaid`` or ``plan-json``. Raises UsageError if there is none."""
    timeline = Timeline()
    for _ in follow(events, timeline):
        pass
    record = PlanCourse(current_events(events, timeline)).newest
    if record is None or not record.plan.subtasks:
        raise UsageError("This session has no plan.", "ba plan list shows which sessions have one.")
    plan = shown(record.plan, hide)
    if format == "mermaid":
        return mermaid(plan)
    return escaped(json.dumps(as_json(plan), ensure_ascii=False, indent=2, default=str)) + "\n"


def shown(plan: Plan, hide: Hide) -> Plan:
    """Return ``plan`` without secrets."""
    data: Any = without_secrets(json.loads(json.dumps(as_json(plan), default=str)), hide)
    # Ids and states connect its parts and contain no prose.
    ids = {"id": plan.id, "state": plan.state, "schema_version": 1}
    steps = [
        {**new, "id": old.id, "status": old.status, "dependencies": old.dependencies, "optional": old.optional}
        for new, old in zip(data["subtasks"], plan.subtasks, strict=True)
    ]
    return plan_of({**data, **ids, "subtasks": steps})


def plan_lines(plan: Plan, hide: Hide) -> list[str]:
    """Return a plan as lines of a document: its state, its steps as a tree, and why steps failed."""
    plan = shown(plan, hide)
    lines = [f"{STATES[plan.state]}, {counted(plan)} done", *tree_text(plan)]
    lines += [f"{words(step.id)}: {words(step.error)}" for step in plan.subtasks if step.error]
    return [paintable(line, newlines=False) for line in lines]


def plan_title(plan: Plan, hide: Hide) -> str:
    """Return ``Plan: `` and its goal."""
    return f"Plan: {words(hide(plan.task.goal or plan.task.original_query))}".rstrip(": ")


_NONE = AnswerNotes("")
_UNCHECKED = FigureReport()


@frozen
class QuestionAndAnswer:
    """A prompt with additions during the turn, the charts, and the last answer with the verdicts on its figures.
    ``at``: seconds since the epoch."""

    at: float
    prompt: str = ""
    answer: AnswerNotes = _NONE
    figures: FigureReport = _UNCHECKED
    charts: tuple[Chart, ...] = ()


def answers(events: Iterable[Event], hide: Callable[[str], str]) -> list[QuestionAndAnswer]:
    """Return the current turns. ``hide`` removes secrets; ``events`` are iterated twice."""

    def safe(text: str) -> str:
        return paintable(hide(text))

    found: list[QuestionAndAnswer] = []
    for part in document_parts(events, Survey(events)):
        match part:
            case DocumentOpening(at=at):
                found.append(QuestionAndAnswer(at))
            case PromptPart(message=message) if found:
                prompt = "\n\n".join(filter(None, (found[-1].prompt, safe(message.said).strip())))
                found[-1] = replace(found[-1], prompt=prompt, answer=_NONE, figures=_UNCHECKED)
            case AnswerPart(message=message, figures=figures) if found:
                found[-1] = replace(found[-1], answer=AnswerNotes(message.text), figures=figures or _UNCHECKED)
            case ToolCallPart(end=end, agent="") if found and not end.result.is_error:
                if isinstance(chart := end.result.display, Chart):
                    title = replace(chart.request, title=safe(chart.request.title))
                    found[-1] = replace(found[-1], charts=(*found[-1].charts, replace(chart, request=title)))
            case _:
                pass
    footnotes = Footnotes(safe)
    return [replace(each, answer=footnotes.of(each.answer.text, each.figures)) for each in found]
