"""What one run brought, gathered from its events: the answer, its figures, costs, calls, and the exit code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ba_tui.core.errors import ErrorInfo, SessionNotSaved
from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Asked,
    Event,
    FiguresChecked,
    MemoriesUsed,
    MemoryChanged,
    MessageDone,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from ba_tui.core.events.plan_course import PlanCourse
from ba_tui.core.ledger import Account, Ledger
from ba_tui.core.messages import Message
from ba_tui.core.questions import Question
from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.core.text.wording import count

SCHEMA = 1
OK, USAGE, INFRASTRUCTURE, LIMIT, DENIED, UNSOURCED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
GOES_ON = {"max_tokens", "pause_turn"}
"""An answer that stopped so is gone on with in the next message."""
EARLY = {
    "refusal": (INFRASTRUCTURE, "The model declined to go on.", "Ask in another way, or use another model."),
    "max_tokens": (
        LIMIT,
        "The output limit was reached: this answer is not complete.",
        'Ask for the rest: ba -p -c "go on".',
    ),
    "pause_turn": (LIMIT, "The model paused: this answer is not complete.", 'Ask for the rest: ba -p -c "go on".'),
    "context_window": (
        LIMIT,
        "The context window is full: this answer is not complete.",
        "Start a new session, or use a model with a larger window.",
    ),
}
"""Ends of an answer that no error tells: exit code, words and cure."""
TOLD = ("name", "ok", "duration_ms", "agent")
"""What the report says of a call; ``agent`` only of those that a sub-agent made."""
NAMED = 5
"""Figures, and files, that a line names."""


@dataclass
class RunResult:
    """What one run brought, gathered from its events."""

    session: str = ""
    model: str = ""
    result: str = ""
    ending: str = "error"
    error: ErrorInfo | None = None
    answers: int = 0
    """Those of the main agent."""
    ledger: Ledger = field(default_factory=Ledger)
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The sub-agents, by name; ``ending`` is None for those that did not end."""
    denied: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    timed_out: bool = False
    stop: str = ""
    """Why the newest answer ended, unless calls followed."""
    insisted: bool = False
    """Whether the model was stopped because it made a call again and again that had been denied."""
    asked: dict[str, Question] = field(default_factory=dict[str, Question])
    """The approvals that nobody could give, by call."""
    strict: bool = False
    """Whether unsourced figures fail the run."""
    figures: FigureReport | None = None
    """Of the newest answer; None when they were not checked, or it has none."""
    memory: dict[str, list[Any]] = field(default_factory=lambda: {"used": [], "stored": [], "forgotten": []})
    """Memories that went with the prompt, those that were stored, and the ids of those forgotten."""
    plans: PlanCourse = field(default_factory=PlanCourse)
    unsaved: SessionNotSaved | None = None
    """Why the end of the session is lost."""
    place: int = 0
    """Where the newest message begins in ``result``."""

    @property
    def code(self) -> int:
        if self.ending == "cancelled":
            return LIMIT if self.timed_out else INTERRUPTED
        if self.ending == "limit":
            return DENIED if self.insisted else LIMIT
        if self.error and self.error.kind == "prompt_refused":
            return DENIED
        if self.ending == "done" and self.stop in EARLY:
            return EARLY[self.stop][0]
        if self.ending != "done":
            return USAGE if self.error and self.error.kind == "usage" else INFRASTRUCTURE
        if self.denied:
            return DENIED
        found = self.figures or FigureReport()
        if self.strict and (self.unchecked or found.unsourced or found.skipped):
            return UNSOURCED
        return saved_code(self.unsaved)

    @property
    def unchecked(self) -> bool:
        """Whether the answer has digits, and nobody looked where they come from."""
        return self.figures is None and any(letter.isdigit() for letter in self.result)

    def apply(self, event: Event) -> None:
        self.ledger.apply(event)
        self.plans.apply(event)
        match event:
            case MessageDone(message=message, agent="main"):
                self.answers += 1
                self._answered(message)
            case FiguresChecked(agent="main", report=report):
                self.figures = report
            case ToolStarted(call=call, target=target):
                row = {"id": call.id, "name": call.name, "ok": False, "duration_ms": 0, "target": target}
                self.tools.append(row if event.agent == MAIN else {**row, "agent": event.agent})
            case AgentStarted():
                self.agents[event.agent] = {"type": event.kind, "description": event.description, "ending": None}
            case TurnEnded(reason=reason) if event.agent in self.agents:
                self.agents[event.agent]["ending"] = reason
            case MemoriesUsed(memories=memories):
                self.memory["used"] += map(asdict, memories)
            case MemoryChanged(stored=stored, forgotten=forgotten):
                self.memory["stored"] += map(asdict, stored)
                self.memory["forgotten"] += forgotten
            case Asked(question=Question(kind="permission") as question):
                self.asked[question.call_id] = question
            case Asked(question=Question(kind="continue") as question):
                refused = {(each["tool"], each["target"]) for each in self.denied}
                self.insisted = any(
                    row["id"] == question.call_id and (row["name"], row["target"]) in refused for row in self.tools
                )
            case ToolFinished(call_id=call_id, result=result, duration=duration):
                row = next((row for row in reversed(self.tools) if row["id"] == call_id), None)
                if row is not None:
                    row.update(ok=not result.failed, duration_ms=round(duration * 1000))
                    if result.error and result.error.kind == "permission_denied":
                        self.denied.append(self._denied(row, result.error.message))
            case TurnEnded(agent="main", reason=reason, error=error):
                self.ending, self.error = reason, error
                if reason == "done" and self.stop in EARLY:
                    self.error = ErrorInfo(self.stop, *EARLY[self.stop][1:])
            case _:
                pass

    def _answered(self, message: Message) -> None:
        if self.stop in GOES_ON:
            self.place = len(self.result)
            self.result, self.figures = self.result + message.text, None
        elif message.text.strip():
            self.place = 0
            self.result, self.figures = message.text, None
        self.stop = "" if message.calls else message.stop or ""

    def _denied(self, row: dict[str, Any], reason: str) -> dict[str, Any]:
        """``asked``: why a person would have been asked, ``rule``: what they could have remembered; both empty for
        what a rule or the mode denied."""
        question = self.asked.get(row["id"]) or Question("permission", "")
        return {
            "tool": row["name"],
            "target": row["target"],
            "reason": reason,
            "asked": question.reason,
            "rule": question.rule or "",
        }

    @property
    def _reason(self) -> str:
        return self.stop if self.ending == "done" and self.stop in EARLY else self.ending

    def report(self, started: float) -> dict[str, Any]:
        """The JSON object of ``--output-format json`` and the last line of stream-json."""
        report: dict[str, Any] = {
            "schema_version": SCHEMA,
            "result": self.result,
            "session_id": self.session,
            "model": self.model,
            "stop_reason": "timeout" if self.timed_out else self._reason,
            "num_turns": self.answers,
            **_account(self.ledger.session),
            "models": {model: _account(each) for model, each in self.ledger.models.items()},
            "summaries_cost_usd": _dollars(self.ledger.summaries),
            "summaries_usage": self.ledger.summed.record,
            "duration_ms": round((time.monotonic() - started) * 1000),
            "tool_calls": [{key: row[key] for key in TOLD if key in row} for row in self.tools],
            "agents": [{"agent": name, **facts} for name, facts in self.agents.items()],
            "denied": self.denied,
            "memory": self.memory,
            **figure_fields(self.figures or FigureReport(), self.place),
        }
        if self.plans.newest:
            from ba_tui.plotting.plans.plan_json import as_json  # noqa: PLC0415 - few runs have a plan

            report["plan"] = as_json(self.plans.newest.plan)
        if self.unsaved:
            message, hint = self.unsaved.at_end
            report["not_saved"] = {"message": message, "hint": hint}
        if self.error:
            report["error"] = asdict(self.error)
        return report


def saved_code(unsaved: SessionNotSaved | None) -> int:
    """The exit code of a run that is fine otherwise. Where the user's folder is closed to ba as a whole, nobody waits
    for a session."""
    return INFRASTRUCTURE if unsaved and not unsaved.chosen else OK


def _account(of: Account) -> dict[str, Any]:
    return {"usage": of.usage.record, "cost_usd": _dollars(of.cost)}


def _dollars(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def figure_fields(report: FigureReport, offset: int = 0) -> Mapping[str, Any]:
    """``figures`` in order, ``figure_counts`` by label, and what more is to be known. ``offset`` is added to places."""
    found: dict[str, Any] = {
        "figures": [_figure(report, verdict, offset) for verdict in report.verdicts],
        "figure_counts": dict(report.counts),
    }
    if report.partly:
        found["figures_partly_read"] = list(report.partly)
    if report.unread:
        found["figures_not_read"] = report.unread
    return found


def _figure(report: FigureReport, verdict: FigureVerdict, offset: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text": verdict.text,
        "start": verdict.start + offset,
        "end": verdict.end + offset,
        "value": verdict.value,
        "unit": verdict.unit,
        "label": verdict.label,
        "sources": [asdict(source) for source in verdict.sources],
        "derivation": verdict.derivation or None,
    }
    if verdict.note:
        found["note"] = verdict.note
    if stale := report.stale_files(verdict):
        found["changed_files"] = list(stale)
    return found


def figure_lines(report: FigureReport) -> Iterator[str]:
    """What a person should know of the figures: nothing when all come from somewhere."""
    if report.skipped:
        yield f"{count(report.skipped, 'figure')} of this answer could not be checked: there are too many."
    if unsourced := report.unsourced:
        named = ", ".join(verdict.text for verdict in unsourced[:NAMED])
        more = f" and {len(unsourced) - NAMED} more" if len(unsourced) > NAMED else ""
        are = "is" if len(unsourced) == 1 else "are"
        yield f"{len(unsourced)} of {count(len(report.verdicts), 'figure')} {are} unsourced: {named}{more}."
    if report.changed:
        yield f"Changed since a query read it: {', '.join(report.changed[:NAMED])}."
