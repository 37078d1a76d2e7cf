"""Explain the newest answer: sources of its figures, its calls, and the decisions about them.

Pure: events in, rows or a JSON value out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ba_tui.core.events import (
    Answered,
    Asked,
    Compressed,
    Event,
    FiguresChecked,
    Judged,
    MessageDone,
    SkillsChanged,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from ba_tui.core.questions import Question
from ba_tui.core.text.figures import DOUBTFUL, FigureReport, FigureVerdict
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.screens.sheet import ReportRow

NAMED = 12
"""Figures that one line names."""
LONG = 300


class Explanation:
    """The newest turn in ``events``, the last events of a session."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.prompt = ""
        self.model = ""
        self.report: FigureReport | None = None
        self._calls: dict[str, tuple[ToolStarted, ToolFinished | None]] = {}
        self._judged: list[Judged] = []
        self._asked: dict[str, Question] = {}
        self._answers: list[tuple[Question, Answered]] = []
        self._context: list[str] = []
        begin = max((at for at, each in enumerate(events) if isinstance(each, TurnStarted) and _main(each)), default=0)
        for event in events[begin:]:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main", prompt=prompt):
                self.prompt = prompt.said
            case MessageDone(agent="main", message=message):
                self.model = message.model or self.model
            case FiguresChecked(agent="main", report=report):
                self.report = report
            case ToolStarted(call=call):
                self._calls[call.id] = (event, None)
            case ToolFinished(call_id=id) if id in self._calls:
                self._calls[id] = (self._calls[id][0], event)
            case Judged():
                self._judged.append(event)
            case Asked(ask_id=id, question=question):
                self._asked[id] = question
            case Answered(ask_id=id) if id in self._asked:
                self._answers.append((self._asked.pop(id), event))
            case Compressed(before=before, after=after):
                self._context.append(f"The conversation was compressed from {before:,} to {after:,} tokens.")
            case SkillsChanged(active=active):
                names = ", ".join(skill.id for skill in active)
                self._context.append(f"Active skills: {names or 'none'}.")
            case _:
                pass

    def short(self) -> Iterator[ReportRow]:
        """Yield rows for a reader: the evidence of the figures, then the other calls and the user's decisions."""
        yield ReportRow(("Answer",), "heading")
        yield ReportRow(("Prompt", one_line(self.prompt, LONG)))
        yield ReportRow(("Model", self.model))
        yield from self._figures()
        cited = {source.call for verdict in self._verdicts() for source in verdict.sources}
        others = [(start, end) for id, (start, end) in self._calls.items() if id not in cited]
        if others:
            yield ReportRow(("Other calls",), "heading")
            yield from (ReportRow((start.call.name, _outcome(start, end))) for start, end in others)
        asked = [(question, answer) for question, answer in self._answers if question.kind == "permission"]
        if asked:
            yield ReportRow(("Your decisions",), "heading")
            yield from (ReportRow((question.tool, _reply(answer))) for question, answer in asked)
        if self._context:
            yield ReportRow(("Context",), "heading")
            yield from (ReportRow(("", text)) for text in self._context)

    def audit(self) -> Iterator[ReportRow]:
        """Yield the same with every decision in order: time, tool, verdict, who decided, and by which rule."""
        yield from self.short()
        if self._judged:
            yield ReportRow(("Decisions",), "heading")
        for each in self._judged:
            rule = f", rule {each.rule}" if each.rule else ""
            profile = f", {each.profile}" if each.profile else ""
            said = f"{_time(each.at)} {each.verdict} by {each.by}{rule}{profile}, arguments {each.hash or '-'}"
            yield ReportRow((each.tool, f"{said}. {one_line(each.reason, LONG)}".rstrip()))

    def value(self) -> Mapping[str, Any]:
        """Return all of it for programs."""
        report = self.report or FigureReport()
        return {
            "prompt": self.prompt,
            "model": self.model,
            "figures": [
                {
                    "text": each.text,
                    "label": each.label,
                    "reason": each.reason,
                    "calls": list(dict.fromkeys(source.call for source in each.sources if source.call)),
                    "changed_files": list(report.stale_files(each)),
                }
                for each in report.verdicts
            ],
            "calls": [
                {
                    "id": id,
                    "tool": start.call.name,
                    "target": start.target,
                    "ok": end is not None and not end.result.failed,
                    "summary": end.result.summary if end else "",
                }
                for id, (start, end) in self._calls.items()
            ],
            "decisions": [
                {"at": each.at, "call": each.call_id, "tool": each.tool, "verdict": each.verdict, "by": each.by,
                 "rule": each.rule, "reason": each.reason, "hash": each.hash}
                for each in self._judged
            ],
            "context": self._context,
        }  # fmt: skip

    def _verdicts(self) -> Sequence[FigureVerdict]:
        return self.report.verdicts if self.report else ()

    def _figures(self) -> Iterator[ReportRow]:
        if self.report is None:
            return
        yield ReportRow((f"Figures: {' · '.join(self.report.parts)}",), "heading")
        by_source: dict[str, list[str]] = {}
        for verdict in self._verdicts():
            names = dict.fromkeys(source.name for source in verdict.sources)
            for name in names or (verdict.label,):
                by_source.setdefault(name, []).append(verdict.text)
        targets = {source.name: self._target(source.call) for each in self._verdicts() for source in each.sources}
        for name, texts in by_source.items():
            target = f" ({targets[name]})" if targets.get(name) else ""
            yield ReportRow((name, f"{_listed(texts)}{target}"), "ask" if name in DOUBTFUL else "")

    def _target(self, call: str) -> str:
        started = self._calls.get(call)
        return one_line(f"{started[0].call.name} {started[0].target}".strip(), LONG) if started else ""


def _main(event: Event) -> bool:
    return event.agent == "main"


def _listed(texts: Iterable[str]) -> str:
    fresh = list(dict.fromkeys(texts))
    more = f" and {len(fresh) - NAMED} more" if len(fresh) > NAMED else ""
    return f"{count(len(fresh), 'figure')}: {', '.join(fresh[:NAMED])}{more}"


def _outcome(start: ToolStarted, end: ToolFinished | None) -> str:
    how = (
        "interrupted"
        if end is None
        else f"failed ({end.result.summary})"
        if end.result.failed
        else end.result.summary or "ok"
    )
    return one_line(f"{start.target}  {how}".strip(), LONG)


def _reply(answer: Answered) -> str:
    words = {"once": "allowed once", "session": "allowed for the session", "always": "always allowed", "deny": "denied"}
    said = one_line(answer.reply.text, LONG)
    return f"{words.get(answer.reply.choice, answer.reply.choice)}{f': {said}' if said else ''}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")
