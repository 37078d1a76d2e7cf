"""The turn that has not ended: which of its calls wait for the person, and which were not begun. Pure.

A call whose question is open has not run, so it can be asked about again in a later run of ba. A call that was allowed
may have run in part, so it can't.
"""

from __future__ import annotations

from ba_tui.core.events import (
    MAIN,
    Answered,
    Asked,
    Checkpointed,
    Compressed,
    Event,
    Judged,
    MessageDone,
    Rewound,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.values import frozen

ASKING = ("choice", "plan")
"""Kinds of questions that a tool asks and does nothing else: allowing the call settles nothing."""


@frozen
class WaitingCalls:
    """Calls to ``ask`` about again, each with the question that was open, and those that come ``later``.
    ``checkpointed``: the files were kept before the turn changed any."""

    ask: tuple[tuple[ToolUse, Question], ...]
    later: tuple[ToolUse, ...]
    checkpointed: bool

    @property
    def open_calls(self) -> frozenset[str]:
        """The ids of all these calls."""
        return frozenset([*(call.id for call, _ in self.ask), *(call.id for call in self.later)])


class OpenTurn:
    """Feed it every event of a session, replayed or live."""

    def __init__(self) -> None:
        self.begun = False
        """Whether there is a turn without an end."""
        self._checkpointed = False
        self._calls: tuple[ToolUse, ...] = ()
        self._begin_calls()

    def _begin_calls(self, calls: tuple[ToolUse, ...] = ()) -> None:
        self._calls = calls
        self._started: set[str] = set()
        self._allowed: set[str] = set()
        self._asked: dict[str, Question] = {}

    def apply(self, event: Event) -> None:
        if event.agent != MAIN:
            return
        match event:
            case TurnStarted():
                self.begun, self._checkpointed = True, False
                self._begin_calls()
            case TurnEnded() | Rewound(turns=int()):
                self.begun = False
                self._begin_calls()
            case MessageDone(message=message):
                self._begin_calls(message.calls)
            case Compressed():
                self._begin_calls()
            case TurnResumed():
                # What was open is asked anew, under another id.
                self._asked.clear()
            case Checkpointed(turn=turn) if turn:
                self._checkpointed = True
            case _:
                self._call(event)

    def _call(self, event: Event) -> None:
        match event:
            case ToolStarted(call=call):
                self._started.add(call.id)
            case Judged(call_id=call_id, verdict="allow"):
                self._allowed.add(call_id)
            case Asked(ask_id=ask_id, question=question) if question.call_id:
                self._asked[ask_id] = question
            case Answered(ask_id=ask_id):
                if question := self._asked.pop(ask_id, None):
                    self._allowed.add(question.call_id)
            case ToolFinished(call_id=call_id):
                self._calls = tuple([call for call in self._calls if call.id != call_id])
            case _:
                pass

    def waiting(self) -> WaitingCalls | None:
        """The calls that can be asked about again; None when there are none."""
        if not self.begun or not self._asked:
            return None
        questions = {
            question.call_id: question
            for question in self._asked.values()
            if question.kind in ASKING or question.call_id not in self._allowed
        }
        ask = tuple([(call, questions[call.id]) for call in self._calls if call.id in questions])
        later = tuple([call for call in self._calls if call.id not in self._started])
        return WaitingCalls(ask, later, self._checkpointed) if ask else None
