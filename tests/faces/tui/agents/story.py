"""The events of a turn that has sub-agents work, as the journal holds them."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.events import (
    AgentStarted,
    Event,
    MessageDone,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, Usage, user
from ba_tui.core.results import ToolResult


def said(text: str, *calls: ToolUse) -> Message:
    return Message("assistant", (Text(text), *calls), Usage(900, 100), "tool_use" if calls else "end_turn")


def begins(*calls: str, at: float = 10.0) -> Iterator[Event]:
    """The main agent makes calls of delegate_task."""
    uses = [ToolUse(id, "delegate_task", {"agent_type": "explore", "prompt": f"look {id}"}) for id in calls]
    yield TurnStarted(user("go"), at=at)
    yield MessageDone(said("I start them.", *uses), at=at)
    for use in uses:
        yield ToolStarted(use, "explore", at=at)


def starts(name: str, call_id: str = "", *, at: float = 11.0, background: bool = False) -> Iterator[Event]:
    yield AgentStarted("explore", f"Look at {name}", call_id, background=background, agent=name, at=at)
    yield TurnStarted(user(f"CHILD {name}"), agent=name, at=at)


def works(name: str, *, at: float = 12.0) -> Iterator[Event]:
    """One request with a call."""
    call = ToolUse(f"{name}-r", "read_file", {"path": "a.txt"})
    yield TextDelta("I read ", agent=name, at=at)
    yield MessageDone(said("I read it.", call), agent=name, at=at)
    yield ToolStarted(call, "a.txt", agent=name, at=at)
    yield ToolFinished(call.id, ToolResult("1", summary="1 line"), 0.1, agent=name, at=at)


def ends(name: str, call_id: str = "", *, at: float = 20.0) -> Iterator[Event]:
    yield MessageDone(said(f"## Found\n\nThat is **{name}**."), agent=name, at=at)
    yield TurnEnded("done", agent=name, at=at)
    if call_id:
        yield ToolFinished(call_id, ToolResult("report", summary="explore"), at - 10, at=at)
