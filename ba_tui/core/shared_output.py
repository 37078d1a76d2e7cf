"""The fold over commands that the person ran: which of their outputs the model has not been told yet.

Pure. Private commands never become a message.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ba_tui.core.events import ToolFinished, ToolStarted
from ba_tui.core.messages import Message, ToolUse, reminder
from ba_tui.core.results import ToolResult

_RAN = (None, "timeout", "interrupted", "execution_error")
"""Kinds of failures of a command that did run."""


class SharedOutput:
    """``waiting``: messages that join the conversation before its next request, oldest first."""

    def __init__(self) -> None:
        self.waiting: tuple[Message, ...] = ()
        self._calls: dict[str, ToolUse] = {}
        self._turn = 0
        self._open = False
        self._between: dict[int, tuple[Message, ...]] = {}
        """Outputs of commands that ended after the turn of that number, and before the next one."""

    def finish(self, event: ToolStarted | ToolFinished) -> None:
        """Take in an event of the person's own commands."""
        if isinstance(event, ToolStarted):
            self._calls[event.call.id] = event.call
            return
        call = self._calls.pop(event.call_id, None)
        message = _shared(call, event.result, event.at) if call else None
        if message:
            self.waiting = (*self.waiting, message)
            if not self._open:
                self._between[self._turn] = (*self._between.get(self._turn, ()), message)

    def begin(self, turn: int) -> None:
        """A turn begins, the one of that number in the session."""
        self._turn, self._open = turn, True

    def end(self) -> None:
        """The turn has ended."""
        self._open = False

    def said(self, message: Message) -> None:
        """``message`` has joined the conversation."""
        if self.waiting:
            self.waiting = tuple(each for each in self.waiting if each.id != message.id)

    def rewind(self, turn: int) -> None:
        """``turn`` is the last one again. What was shared behind it is shared with the turn that comes next."""
        self._turn, self._open = turn, False
        self.waiting = self._between.get(turn, ())


def _shared(call: ToolUse, result: ToolResult, at: float) -> Message | None:
    """The message that shares a result, its command first; None for a private command, or one that never ran."""
    if call.input.get("private") or (result.error.kind if result.error else None) not in _RAN:
        return None
    ran = "a query on the data of this session" if "sql" in call.input else "a command in a shell of their own"
    head = f"The person ran {ran} and shares what came of it. It needs no answer by itself."
    said = reminder(f"{head}\n{result.text}")
    return Message("user", said.blocks, origin=said.origin, hidden=True, id=call.id, at=datetime.fromtimestamp(at, UTC))
