"""The lines of a conversation: a fold over its events. What a turn came to is ``results``' business."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    MessageRestarted,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
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
from ba_tui.core.results import ToolResult
from ba_tui.faces.claude.pieces import Line, Pieces, envelope
from ba_tui.faces.claude.words import ERRORS, ClaudeCall, ToolWords, stop_reason


class ClaudeLines:
    """The lines of one session. ``partial``: also the pieces of an answer while it arrives."""

    def __init__(self, session: str, model: str, words: ToolWords, *, partial: bool = False) -> None:
        self.session = session
        self._words = words
        self._partial = partial
        self.model = model
        self._writing: dict[str, Pieces] = {}
        self.calls: dict[str, ClaudeCall] = {}
        """The calls of the running turn, by id."""
        self._running: dict[str, list[str]] = {}
        """Calls without a result, by the agent that made them."""
        self._parents: dict[str, str] = {}
        """The call that started a sub-agent, by the sub-agent's name."""

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
        """One line of the session about the conversation."""
        return {
            "type": type,
            **fields,
            "parent_tool_use_id": parent,
            "session_id": self.session,
            "uuid": str(uuid.uuid4()),
        }

    def system(self, subtype: str, **fields: Any) -> Line:
        """One line about the session."""
        return {
            "type": "system",
            "subtype": subtype,
            **fields,
            "session_id": self.session,
            "uuid": str(uuid.uuid4()),
        }

    def user(self, content: Any, parent: str | None = None, **fields: Any) -> Line:
        """A line in the person's role."""
        line = self.line("user", parent, message={"role": "user", "content": content})
        return {**line, "timestamp": _now(), **fields}

    def failure(self, text: str, kind: str) -> Line:
        """What stands for the answer of a model that could not be asked."""
        message = envelope(f"msg_{uuid.uuid4().hex}", "<synthetic>", Usage(), {"type": "text", "text": text})
        message.update(stop_reason="stop_sequence", stop_sequence="")
        return {**self.line("assistant", message=message), "error": ERRORS.get(kind, "unknown")}

    def _requesting(self) -> Iterator[Line]:
        if self._partial:
            yield self.system("status", status="requesting")

    def _parent(self, agent: str) -> str | None:
        """The call that started ``agent``: the oldest running one of its parent that started no other."""
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
        """A line for each block, as Claude Code has it, between the pieces that bring the block."""
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
