"""What a turn came to: its last line."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ba_tui.core.errors import BudgetUsed, ErrorInfo, ProviderError, StepsUsed, TurnsUsed
from ba_tui.core.events import Event, MessageDone, ToolFinished, TurnEnded, TurnStarted
from ba_tui.core.ledger import Account, Ledger
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.faces.claude.pieces import Line, tokens
from ba_tui.faces.claude.words import ClaudeCall, stop_reason
from ba_tui.faces.run_result import EARLY, GOES_ON

_SUBTYPES = {
    StepsUsed.kind: "error_max_turns",
    TurnsUsed.kind: "error_max_turns",
    BudgetUsed.kind: "error_max_budget_usd",
}
_REASONS = {StepsUsed.kind: "max_turns", TurnsUsed.kind: "max_turns"}


def _kinds(error: type[ProviderError]) -> Iterator[str]:
    yield error.kind
    for each in error.__subclasses__():
        yield from _kinds(each)


PROVIDER_KINDS = frozenset(_kinds(ProviderError))
"""Errors of a model, or of the way to it."""


class RunFigures:
    """What all turns of this run came to: cost, models, seconds of waiting for models."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.waited = 0.0


class TurnResult:
    """A fold over the events of one turn. ``started``: when it began, in seconds since the epoch."""

    def __init__(self, run: RunFigures, started: float) -> None:
        self._run = run
        self._started = started
        self._asked = started
        """When the newest request can have begun."""
        self._ended = started
        self._ledger = Ledger()
        self._answers = 0
        self._text = ""
        self._stop: str | None = None
        self._denials: list[Line] = []
        self.ending = "error"
        self.error: ErrorInfo | None = None

    @property
    def is_error(self) -> bool:
        return self.ending != "done" or self.error is not None

    @property
    def failed_request(self) -> bool:
        """Whether a model, or the way to it, failed."""
        return self.ending == "error" and self.error is not None and self.error.kind in PROVIDER_KINDS

    def apply(self, event: Event, calls: Mapping[str, ClaudeCall]) -> None:
        self._ledger.apply(event)
        self._run.ledger.apply(event)
        self._ended = max(self._ended, event.at)
        match event:
            case TurnStarted(at=at):
                self._asked = at
            case MessageDone(message=message, at=at, agent="main"):
                self._run.waited += max(0.0, at - self._asked)
                self._answered(message)
            case ToolFinished(call_id=id, result=result, at=at):
                self._asked = max(self._asked, at)
                if result.error and result.error.kind == "permission_denied" and id in calls:
                    self.denied(id, calls[id])
            case TurnEnded(agent="main", reason=reason, error=error):
                self.ending, self.error = reason, error
                if reason == "done" and self._stop in EARLY:
                    self.error = ErrorInfo(str(self._stop), *EARLY[str(self._stop)][1:])
            case _:
                pass

    def _answered(self, message: Message) -> None:
        self._answers += 1
        if self._stop in GOES_ON:
            self._text += message.text
        elif message.text.strip():
            self._text = message.text
        self._stop = message.stop

    def denied(self, id: str, call: ClaudeCall) -> None:
        """A call was not allowed."""
        told = {"tool_name": call.names[0], "tool_use_id": id, "tool_input": dict(call.input)}
        if told not in self._denials:
            self._denials.append(told)

    def failed(self, error: ErrorInfo) -> None:
        """The turn could not begin."""
        self.ending, self.error = "error", error

    @property
    def subtype(self) -> str:
        if self.ending == "done" or self.failed_request:
            return "success"
        return _SUBTYPES.get(self.error.kind if self.error else "", "error_during_execution")

    @property
    def _reason(self) -> str:
        if self.ending == "cancelled":
            return "aborted_tools" if self._stop == "tool_use" else "aborted_streaming"
        return _REASONS.get(self.error.kind if self.error else "", "completed")

    def line(self, session: str, model: ModelInfo | None) -> Line:
        """The line of type ``result``. Costs and models are those of the run, the rest those of the turn."""
        error, success = self.error, self.subtype == "success"
        told: Line = {"type": "result", "subtype": self.subtype, "is_error": self.is_error}
        if success:
            told |= {"api_error_status": None}
        told |= {
            "duration_ms": round((self._ended - self._started) * 1000),
            "duration_api_ms": round(self._run.waited * 1000),
            "num_turns": self._answers,
        }
        if success:
            told["result"] = error.with_hint if error and not (self.ending == "done" and self._text) else self._text
        told |= {
            "stop_reason": "stop_sequence" if self.failed_request else stop_reason(self._stop),
            "session_id": session,
            "total_cost_usd": _dollars(self._run.ledger.session),
            "usage": {
                **tokens(self._ledger.session.usage),
                "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            },
            "modelUsage": {name: _used(each, name, model) for name, each in self._run.ledger.models.items()},
            "permission_denials": self._denials,
            "terminal_reason": self._reason,
            "fast_mode_state": "off",
            "uuid": str(uuid.uuid4()),
        }
        if not success:
            told["errors"] = [error.with_hint if error else "The turn was interrupted."]
        return told


def _used(account: Account, name: str, model: ModelInfo | None) -> dict[str, Any]:
    """``contextWindow`` and ``maxOutputTokens`` only of the model of the session."""
    known = model if model and name in {model.id, model.name} else None
    return {
        "inputTokens": account.usage.input,
        "outputTokens": account.usage.output,
        "cacheReadInputTokens": account.usage.cache_read,
        "cacheCreationInputTokens": account.usage.cache_write,
        "webSearchRequests": 0,
        "costUSD": _dollars(account),
        **({"contextWindow": known.window, "maxOutputTokens": known.max_output} if known else {}),
    }


def _dollars(account: Account) -> float | None:
    return None if account.cost is None else round(account.cost, 6)
