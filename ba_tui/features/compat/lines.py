"""Output lines in the wire format of Claude Code, folded from the events of a session."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ba_tui.core.errors import BudgetUsed, ErrorInfo, ProviderError, StepsUsed, TurnsUsed
from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    MessageRestarted,
    Mode,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.ledger import Account, Ledger
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.values import frozen
from ba_tui.faces.run_result import EARLY, GOES_ON
from ba_tui.tools.claude_calls import ToolTelling, claude_calls, claude_names, claude_response

_SUBTYPES = {
    StepsUsed.kind: "error_max_turns",
    TurnsUsed.kind: "error_max_turns",
    BudgetUsed.kind: "error_max_budget_usd",
}
_REASONS = {StepsUsed.kind: "max_turns", TurnsUsed.kind: "max_turns"}
VERSION = "2.1.197"
"""The version of Claude Code whose wire format is written."""
MODES: Mapping[Mode, str] = {
    "default": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "auto": "auto",
    "bypass": "bypassPermissions",
}
OWN_MODES: Mapping[str, Mode] = {theirs: ours for ours, theirs in MODES.items()}
QUIET = "dontAsk"
"""The mode that denies each call that needs approval."""
ERRORS: Mapping[str, str] = {
    "auth_failed": "authentication_failed", "rate_limited": "rate_limit", "bad_request": "invalid_request",
    "model_not_found": "invalid_request", "context_overflow": "invalid_request", "overloaded": "server_error",
    "server_error": "server_error", "max_tokens": "max_output_tokens",
}  # fmt: skip
"""Error codes of Claude Code by the kind of a BaError; other kinds become ``unknown``."""
STOPS: Mapping[str | None, str] = {"context_window": "model_context_window_exceeded"}


_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


@frozen
class ClaudeWords:
    """Converts names and arguments of ba's tools, called in ``cwd``, to those of Claude Code."""

    cwd: Path

    def name(self, tool: str) -> str:
        return claude_names(tool)[0]

    def call(self, use: ToolUse) -> ToolTelling:
        """Return the call in Claude Code's format; unchanged for a patch of several files or invalid arguments."""
        try:
            told = claude_calls(use.name, use.input, self.cwd)
        except (TypeError, ValueError, AttributeError, KeyError):
            told = ()
        return told[0] if len(told) == 1 else ToolTelling((use.name,), use.input, dict)

    def response(self, call: ToolTelling, result: ToolResult) -> Mapping[str, Any] | None:
        """Return the ``tool_use_result`` of a call, or None."""
        return claude_response(call, result).get("tool_response")

    def key_source(self, model: str) -> str:
        """Return the environment variable with the key of ``model``; ``none`` if it is not set."""
        variable = _KEYS.get(model.partition("/")[0], "")
        return variable if os.environ.get(variable) else "none"


def stop_reason(stop: str | None) -> str | None:
    """Return the stop reason in the Messages API's words; None if the answer was cut off."""
    return None if stop in {None, "cancelled", "error"} else STOPS.get(stop, stop)


Line = dict[str, Any]


class Pieces:
    """The stream events of one answer, as the Messages API sends them. Deltas of text and thinking are written as they
    arrive, all other blocks when the answer is complete."""

    def __init__(self, model: str) -> None:
        self.id = f"msg_{uuid.uuid4().hex}"
        self._model = model
        self._begun: list[str] = []
        """The types of the started blocks."""
        self._told = 0
        """Number of blocks of the complete answer that were written."""
        self._open = False

    def piece(self, block: Line, delta: Line) -> Iterator[Line]:
        """Yield a delta; start the empty ``block`` first if the open block has another type."""
        if not self._open or self._begun[-1] != block["type"]:
            yield from self._begin(block)
        yield self._delta(delta)

    def brought(self, block: Line) -> Iterator[Line]:
        """Yield the events of a complete block; nothing if its deltas were streamed already."""
        index, self._told = self._told, self._told + 1
        if index < len(self._begun) and self._begun[index] == block["type"]:
            return
        yield from self._begin(_empty(block))
        yield from map(self._delta, _deltas(block))

    def closed(self) -> Iterator[Line]:
        """Yield the end of the open block, if all started blocks were written."""
        if self._open and self._told >= len(self._begun):
            yield self._stop()

    def ended(self, stop: str | None, usage: Usage) -> Iterator[Line]:
        """Yield the events that end the answer."""
        if not self._begun:
            yield self._start()
        if self._open:
            yield self._stop()
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}
        yield {"type": "message_stop"}

    def _begin(self, block: Line) -> Iterator[Line]:
        if not self._begun:
            yield self._start()
        if self._open:
            yield self._stop()
        self._begun.append(block["type"])
        self._open = True
        yield {"type": "content_block_start", "index": len(self._begun) - 1, "content_block": block}

    def _start(self) -> Line:
        message = envelope(self.id, self._model, Usage())
        del message["context_management"]
        return {"type": "message_start", "message": message}

    def _delta(self, delta: Line) -> Line:
        return {"type": "content_block_delta", "index": len(self._begun) - 1, "delta": delta}

    def _stop(self) -> Line:
        self._open = False
        return {"type": "content_block_stop", "index": len(self._begun) - 1}


def envelope(id: str, model: str, usage: Usage, *content: Line) -> Line:
    """Return a message in the form of the Messages API."""
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": tokens(usage),
        "context_management": None,
    }


def tokens(usage: Usage) -> Line:
    """Return token counts under the names of the Messages API."""
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _empty(block: Line) -> Line:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Line) -> Iterator[Line]:
    match block["type"]:
        case "text":
            yield {"type": "text_delta", "text": block["text"]}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"], default=str)}
        case _:
            pass


class ClaudeLines:
    """The lines of one session. ``partial``: also write stream events while an answer arrives."""

    def __init__(self, session: str, model: str, words: ClaudeWords, *, partial: bool = False) -> None:
        self.session = session
        self._words = words
        self._partial = partial
        self.model = model
        self._writing: dict[str, Pieces] = {}
        self.calls: dict[str, ToolTelling] = {}
        """The tool calls of the running turn, by id."""
        self._running: dict[str, list[str]] = {}
        """Ids of unfinished tool calls, by agent."""
        self._parents: dict[str, str] = {}
        """Ids of the tool calls that started sub-agents, by the sub-agent's name."""

    def apply(self, event: Event) -> Iterator[Line]:
        """Return the lines of one event."""
        match event:
            case AgentStarted(agent=agent, call_id=id):
                if id:
                    self._parents[agent] = id
            case TurnStarted(agent="main"):
                self.calls.clear()
                yield from self._requesting()
            case TextDelta(text=text):
                yield from self._piece(event.agent, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
            case ThinkingDelta(text=text):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._piece(event.agent, block, {"type": "thinking_delta", "thinking": text})
            case MessageRestarted(agent=agent):
                self._writing.pop(agent, None)
            case MessageDone(message=message, agent=agent):
                yield from self._answer(message, agent)
            case ToolStarted(call=call, agent=agent):
                self._running.setdefault(agent, []).append(call.id)
            case ToolFinished(call_id=id, result=result, agent=agent):
                yield from self._result(id, result, agent)
            case Retrying(attempts=attempts) if attempts:
                delay = {"attempt": event.attempt, "max_retries": attempts, "retry_delay_ms": round(event.delay * 1000)}
                yield self.system("api_retry", **delay, error_status=None, error=event.reason)
            case Compressed(before=before, agent="main"):
                yield self.system("compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": before})
            case TurnEnded(agent="main"):
                self._writing.clear()
                self._running.clear()
            case _:
                pass

    def line(self, type: str, parent: str | None = None, **fields: Any) -> Line:
        """Return a line about the conversation."""
        return {
            "type": type,
            **fields,
            "parent_tool_use_id": parent,
            "session_id": self.session,
            "uuid": str(uuid.uuid4()),
        }

    def system(self, subtype: str, **fields: Any) -> Line:
        """Return a line about the session."""
        return {
            "type": "system",
            "subtype": subtype,
            **fields,
            "session_id": self.session,
            "uuid": str(uuid.uuid4()),
        }

    def user(self, content: Any, parent: str | None = None, **fields: Any) -> Line:
        """Return a line in the role ``user``."""
        line = self.line("user", parent, message={"role": "user", "content": content})
        return {**line, "timestamp": _now(), **fields}

    def failure(self, text: str, kind: str) -> Line:
        """Return the line that replaces an answer if the request to the model failed."""
        message = envelope(f"msg_{uuid.uuid4().hex}", "<synthetic>", Usage(), {"type": "text", "text": text})
        message.update(stop_reason="stop_sequence", stop_sequence="")
        return {**self.line("assistant", message=message), "error": ERRORS.get(kind, "unknown")}

    def _requesting(self) -> Iterator[Line]:
        if self._partial:
            yield self.system("status", status="requesting")

    def _parent(self, agent: str) -> str | None:
        """Return the call that started ``agent``: the oldest running call of its parent that started no other agent."""
        if agent == MAIN:
            return None
        if agent not in self._parents:
            running = self._running.get(agent.rpartition("/")[0], [])
            taken = set(self._parents.values())
            self._parents[agent] = next((id for id in running if id not in taken), running[-1] if running else "")
        return self._parents[agent] or None

    def _piece(self, agent: str, block: Line, delta: Line) -> Iterator[Line]:
        yield from self._streamed(self._pieces(agent).piece(block, delta), self._parent(agent))

    def _pieces(self, agent: str) -> Pieces:
        return self._writing.setdefault(agent, Pieces(self.model))

    def _answer(self, message: Message, agent: str) -> Iterator[Line]:
        """Yield a line for each block, between the block's stream events, in Claude Code's order."""
        parent, pieces = self._parent(agent), self._pieces(agent)
        usage = message.usage or Usage()
        for told in filter(None, map(self._block, message.blocks)):
            yield from self._streamed(pieces.brought(told), parent)
            yield self.line("assistant", parent, message=envelope(pieces.id, message.model, usage, told))
            yield from self._streamed(pieces.closed(), parent)
        yield from self._streamed(pieces.ended(stop_reason(message.stop), usage), parent)
        self._writing.pop(agent, None)

    def _streamed(self, events: Iterable[Line], parent: str | None) -> Iterator[Line]:
        if self._partial:
            yield from (self.line("stream_event", parent, event=event) for event in events)

    def _block(self, block: Block) -> Line | None:
        match block:
            case Text(text=text):
                return {"type": "text", "text": text} if text else None
            case Thinking(thinking=thinking, signature=signature):
                return {"type": "thinking", "thinking": thinking, "signature": signature or ""}
            case RedactedThinking(data=data):
                return {"type": "redacted_thinking", "data": data}
            case ToolUse(id=id):
                call = self.calls[id] = self._words.call(block)
                return {"type": "tool_use", "id": id, "name": call.names[0], "input": dict(call.input)}
            case Opaque(raw=raw, vendor="anthropic"):
                return dict(raw)
            case _:
                return None

    def _result(self, id: str, result: ToolResult, agent: str) -> Iterator[Line]:
        running = self._running.get(agent, [])
        if id in running:
            running.remove(id)
        content: Any = result.text
        if result.attachments:
            pictures = [each for each in map(_attached, result.attachments) if each]
            content = [{"type": "text", "text": result.text}, *pictures]
        told: Line = {"tool_use_id": id, "type": "tool_result", "content": content}
        if result.failed:
            told["is_error"] = True
        response: Any = f"Error: {result.text}" if result.failed else None
        if not result.failed and (call := self.calls.get(id)):
            response = self._words.response(call, result)
        more = {} if response is None else {"tool_use_result": response}
        yield self.user([told], self._parent(agent), **more)
        if not running:
            yield from self._requesting()


def _attached(block: Image | Document) -> Line | None:
    if not block.data:
        return None
    return {"type": block.type, "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kinds(error: type[ProviderError]) -> Iterator[str]:
    yield error.kind
    for each in error.__subclasses__():
        yield from _kinds(each)


PROVIDER_KINDS = frozenset(_kinds(ProviderError))
"""Kinds of errors of a model or of the connection to it."""


class RunFigures:
    """Totals of all turns of a run: cost by model, and seconds spent waiting for models."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.waited = 0.0


class TurnResult:
    """The result of one turn, folded from its events. ``started``: its start in seconds since the epoch."""

    def __init__(self, run: RunFigures, started: float) -> None:
        self._run = run
        self._started = started
        self._asked = started
        """Earliest possible start of the newest request, in seconds since the epoch."""
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
        """Return whether the turn failed because of a model or the connection to it."""
        return self.ending == "error" and self.error is not None and self.error.kind in PROVIDER_KINDS

    def apply(self, event: Event, calls: Mapping[str, ToolTelling]) -> None:
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

    def denied(self, id: str, call: ToolTelling) -> None:
        """Note a denied call."""
        told = {"tool_name": call.names[0], "tool_use_id": id, "tool_input": dict(call.input)}
        if told not in self._denials:
            self._denials.append(told)

    def failed(self, error: ErrorInfo) -> None:
        """Note that the turn could not start."""
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
        """Return the line of type ``result``. Costs and models cover the whole run, all else the turn."""
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
    """Return the figures of one model; the limits are included only for the session's ``model``."""
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
