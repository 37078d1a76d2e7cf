"""Collect the result of a run from its events: answer, figures, costs, calls and exit code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ba_tui.core import events
from ba_tui.core.errors import ErrorInfo, SessionNotSaved
from ba_tui.core.events import MAIN, Event
from ba_tui.core.ledger import Account, Ledger
from ba_tui.core.messages import Message
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.questions import Question
from ba_tui.core.text.figures import DOUBTFUL, FigureReport, FigureVerdict
from ba_tui.core.text.wording import count

SCHEMA = 1
OK, USAGE, INFRASTRUCTURE, LIMIT, DENIED, UNSOURCED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
GOES_ON = {"max_tokens", "pause_turn"}
"""Stop reasons after which the next message continues the answer."""
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
"""Stop reasons without an error event: exit code, message and hint."""
TOLD = ("name", "ok", "duration_ms", "agent")
"""Fields of a call in the report; only calls of sub-agents have ``agent``."""
NAMED = 5
"""Most figures, or files, in a line."""


@dataclass
class RunResult:
    """The result of a run, collected from its events."""

    session: str = ""
    model: str = ""
    result: str = ""
    ending: str = "error"
    error: ErrorInfo | None = None
    answers: int = 0
    """Answers of the main agent."""
    ledger: Ledger = field(default_factory=Ledger)
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The sub-agents, by name; ``ending`` is None for those that did not end."""
    denied: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    timed_out: bool = False
    stop: str = ""
    """Why the newest answer ended, unless calls followed."""
    insisted: bool = False
    """Whether the model was stopped because it kept repeating a denied call."""
    asked: dict[str, Question] = field(default_factory=dict[str, Question])
    """Questions about approval, by call."""
    strict: bool = False
    """Whether unsourced figures fail the run."""
    figures: FigureReport | None = None
    """The figures of the newest answer; None when there are none or they were not checked."""
    memory: dict[str, list[Any]] = field(default_factory=lambda: {"used": [], "stored": [], "forgotten": []})
    """Memories sent with the prompt, memories stored, and ids of memories forgotten."""
    plans: PlanCourse = field(default_factory=PlanCourse)
    unsaved: SessionNotSaved | None = None
    """The error that kept the end of the session from being saved."""
    place: int = 0
    """The index in ``result`` at which the newest message starts."""

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
        if self.strict and (self.unchecked or found.doubtful or found.skipped):
            return UNSOURCED
        return saved_code(self.unsaved)

    @property
    def unchecked(self) -> bool:
        """Whether the answer has digits whose sources were not checked."""
        return self.figures is None and any(letter.isdigit() for letter in self.result)

    def apply(self, event: Event) -> None:
        self.ledger.apply(event)
        self.plans.apply(event)
        match event:
            case events.MessageDone(message=message, agent="main"):
                self.answers += 1
                self._answered(message)
            case events.FiguresChecked(agent="main", report=report):
                self.figures = report
            case events.ToolStarted(call=call, target=target):
                row = {"id": call.id, "name": call.name, "ok": False, "duration_ms": 0, "target": target}
                self.tools.append(row if event.agent == MAIN else {**row, "agent": event.agent})
            case events.AgentStarted():
                self.agents[event.agent] = {"type": event.kind, "description": event.description, "ending": None}
            case events.TurnEnded(reason=reason) if event.agent in self.agents:
                self.agents[event.agent]["ending"] = reason
            case events.MemoriesUsed(memories=memories):
                self.memory["used"] += map(asdict, memories)
            case events.MemoryChanged(stored=stored, forgotten=forgotten):
                self.memory["stored"] += map(asdict, stored)
                self.memory["forgotten"] += forgotten
            case events.Asked(question=Question(kind="permission") as question):
                self.asked[question.call_id] = question
            case events.Asked(question=Question(kind="continue") as question):
                refused = {(each["tool"], each["target"]) for each in self.denied}
                self.insisted = any(
                    row["id"] == question.call_id and (row["name"], row["target"]) in refused for row in self.tools
                )
            case events.ToolFinished(call_id=call_id, result=result, duration=duration):
                row = next((row for row in reversed(self.tools) if row["id"] == call_id), None)
                if row is not None:
                    row.update(ok=not result.failed, duration_ms=round(duration * 1000))
                    if result.error and result.error.kind == "permission_denied":
                        self.denied.append(self._denied(row, result.error.message))
            case events.TurnEnded(agent="main", reason=reason, error=error):
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
        """Return the entry of a denied call. ``asked``: why approval was needed; ``rule``: the rule to allow it; both
        are empty when a rule or the mode denied the call."""
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
        """Return the object of ``--output-format json`` and of the last line of stream-json."""
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
            from ba_tui.plotting.plan_exports import as_json  # noqa: PLC0415 - few runs have a plan

            report["plan"] = as_json(self.plans.newest.plan)
        if self.unsaved:
            message, hint = self.unsaved.at_end
            report["not_saved"] = {"message": message, "hint": hint}
        if self.error:
            report["error"] = asdict(self.error)
        return report


def saved_code(unsaved: SessionNotSaved | None) -> int:
    """Return the exit code of a run without other errors. An unsaved session is no failure where ba may
    not write to the user's folder at all."""
    return INFRASTRUCTURE if unsaved and not unsaved.chosen else OK


def _account(of: Account) -> dict[str, Any]:
    return {"usage": of.usage.record, "cost_usd": _dollars(of.cost)}


def _dollars(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def figure_fields(report: FigureReport, offset: int = 0) -> Mapping[str, Any]:
    """Return the fields about figures: ``figures`` in order, ``figure_counts`` by label. ``offset`` shifts places."""
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
    """Yield lines about figures for the user; none when every figure has a source."""
    unsupported = len(report.unsupported)
    if unsupported:
        figures = count(unsupported, "figure")
        yield f"{figures} of this answer could not be checked: there is no result to check against."
    if report.skipped > unsupported:
        skipped = count(report.skipped - unsupported, "figure")
        yield f"{skipped} of this answer could not be checked: there are too many."
    for label in DOUBTFUL:
        found = [verdict for verdict in report.verdicts if verdict.label == label]
        if found:
            named = ", ".join(verdict.text for verdict in found[:NAMED])
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            are = "is" if len(found) == 1 else "are"
            yield f"{len(found)} of {count(len(report.verdicts), 'figure')} {are} {label}: {named}{more}."
    if report.changed:
        yield f"Changed since a query read it: {', '.join(report.changed[:NAMED])}."
