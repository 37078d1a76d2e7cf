"""Folds over events: the messages for a model, and the turn that has not ended.

A transcript never contains a call without an output. Pure: reading never changes it, and a replayed journal gives the
same transcript as the live events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import (
    MAIN,
    PERSON,
    Answered,
    Asked,
    Checkpointed,
    Compressed,
    Event,
    Judged,
    MediaLeftOut,
    MemoryChanged,
    MessageDone,
    Mode,
    ModeChanged,
    PlanChanged,
    Rewound,
    SkillsChanged,
    Steered,
    SubTaskChanged,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    WorkingChanged,
)
from ba_tui.core.messages import Message, ToolOutput, ToolUse, broken_command, reminder, without_media
from ba_tui.core.plan_folds import PlanFold
from ba_tui.core.questions import Question
from ba_tui.core.results import ActiveSkill, SeenFile, StateChange, Todo, ToolResult
from ba_tui.core.values import frozen

_RAN = (None, "timeout", "interrupted", "execution_error")
"""Failure kinds of commands that did run."""


class SharedOutput:
    """Output of the user's own commands that the model has not read. Private commands never become messages.
    ``waiting``: messages for the next request, oldest first."""

    def __init__(self) -> None:
        self.waiting: tuple[Message, ...] = ()
        self._calls: dict[str, ToolUse] = {}
        self._turn = 0
        self._open = False
        self._between: dict[int, tuple[Message, ...]] = {}
        """Outputs of commands that ended after the turn of that number and before the next one."""

    def finish(self, event: ToolStarted | ToolFinished) -> None:
        """Apply an event of the user's own commands."""
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
        """Start turn number ``turn`` of the session."""
        self._turn, self._open = turn, True

    def end(self) -> None:
        """End the turn."""
        self._open = False

    def said(self, message: Message) -> None:
        """Remove ``message``, which joined the conversation, from the waiting ones."""
        if self.waiting:
            self.waiting = tuple(each for each in self.waiting if each.id != message.id)

    def rewind(self, turn: int) -> None:
        """Make ``turn`` the last one again. Output shared after it goes with the next turn."""
        self._turn, self._open = turn, False
        self.waiting = self._between.get(turn, ())


def _shared(call: ToolUse, result: ToolResult, at: float) -> Message | None:
    """Return the message that shares a result with its command; None for a private command, or one that never ran."""
    if call.input.get("private") or (result.error.kind if result.error else None) not in _RAN:
        return None
    ran = "a query on the data of this session" if "sql" in call.input else "a command in a shell of their own"
    head = f"The user ran {ran} and shares what came of it. It needs no answer on its own."
    said = reminder(f"{head}\n{result.text}")
    return Message("user", said.blocks, origin=said.origin, hidden=True, id=call.id, at=datetime.fromtimestamp(at, UTC))


INTERRUPTED = "Interrupted before it finished: no result. Ask the user before going on."
UNFINISHED = ErrorInfo("interrupted", INTERRUPTED)

ACTIVATE = "activate_skill"
"""Name of the tool that starts a skill."""


class Transcript:
    """Messages of one agent, in order. Adjacent messages of one role are merged, so roles alternate."""

    def __init__(self, agent: str = "main", events: Iterable[Event] = ()) -> None:
        self.agent = agent
        self.todos: tuple[Todo, ...] = ()
        self.skills: tuple[ActiveSkill, ...] = ()
        self.cwd: str | None = None
        self.mode: Mode | None = None
        self.seen: dict[str, SeenFile] = {}
        """Files that were read or written, by absolute path."""
        self.rounds: dict[str, int] = {}
        """The number, from 1, of the round that begins with a message, by message id."""
        self.private = False
        """Whether the session neither stores nor recalls memories."""
        self.working: dict[str, dict[str, Any]] = {}
        """Content of working memory by scope: the name of a task, or empty for the session."""
        self.plans = PlanFold()
        self.shared = SharedOutput()
        self._children: dict[str, int] = {}
        """Number of sub-agents started under each name."""
        self._below = f"{agent}/"
        self._messages: list[Message] = []
        self._turn_start = 0
        self._turns = 0
        self._last = 0
        """The last turn in effect, numbered among all turns."""
        self._standing = {0: 0}
        """Number of turns in effect after each turn began."""
        self._open: tuple[ToolUse, ...] = ()
        self._outputs: dict[str, ToolOutput] = {}
        self._version = 0
        self._read: tuple[int, tuple[Message, ...]] = (0, ())
        """The version and its messages as last read: the same objects until something changes."""
        for event in events:
            self.apply(event)

    def become(self, other: Transcript) -> None:
        """Take over the state of ``other``, so that references to this transcript see it."""
        vars(self).update(vars(other))

    def apply(self, event: Event) -> None:
        if event.agent != self.agent:
            if event.agent == PERSON and self.agent == MAIN and isinstance(event, ToolStarted | ToolFinished):
                self.shared.finish(event)
            if isinstance(event, TurnStarted) and event.agent.startswith(self._below):
                self._met(event.agent[len(self._below) :])
            return
        match event:
            case TurnStarted(prompt=message):
                self._add(message)
                self._turn_start = len(self._messages)
                self._turns += 1
                self._standing[self._turns] = self.standing + 1
                self._last = self._turns
                self.rounds[self._messages[-1].id if self._messages else message.id] = self._turns
                self.shared.begin(self._turns)
            case Steered(message=message):
                self._add(message)
                self.shared.said(message)
            case MessageDone(message=message):
                self._add(message)
            case TurnEnded():
                self.shared.end()
            case ToolFinished(call_id=call_id, result=result):
                names = {call.id: call.name for call in self._open}
                self._outputs[call_id] = result.output(call_id, skill=names.get(call_id) == ACTIVATE)
                self._version += 1
                if result.changes:
                    self._change(result.changes)
            case ModeChanged() | SkillsChanged() | MemoryChanged() | WorkingChanged():
                self._keep(event)
            case PlanChanged() | SubTaskChanged():
                self.plans.apply(event)
            case _:
                self._rewrite(event)

    def _rewrite(self, event: Event) -> None:
        """Apply an event that changes earlier messages."""
        match event:
            case Compressed(messages=messages, turn_start=turn_start):
                self._replace(messages, turn_start)
            case MediaLeftOut():
                self._leave_out(event)
            case Rewound(turns=int(turn), messages=messages, state=state):
                self._replace(messages, len(messages))
                self._change(state)
                self.shared.rewind(turn)
                self._last = turn
            case _:
                pass

    def _keep(self, event: ModeChanged | SkillsChanged | MemoryChanged | WorkingChanged) -> None:
        """Apply an event that changes state other than messages."""
        match event:
            case ModeChanged(mode=mode):
                self.mode = mode
            case SkillsChanged(active=active):
                self.skills = active
            case MemoryChanged(private=private):
                self.private = self.private or private
            case WorkingChanged(scope=scope, values=values):
                self.working[scope] = values
                if not values:
                    del self.working[scope]

    def new_child(self, name: str) -> str:
        """Return a sub-agent name, such as ``explore-2``, that is unused in this session."""
        number = self._children[name] = self._children.get(name, 0) + 1
        return f"{name}-{number}"

    def _met(self, child: str) -> None:
        """Remember the number in a sub-agent's name, so that the next one gets another."""
        name, _, number = child.rpartition("-")
        if number.isdecimal():
            self._children[name] = max(self._children.get(name, 0), int(number))

    @property
    def messages(self) -> Sequence[Message]:
        """Return all messages so far; unfinished calls read as interrupted."""
        version, (known, messages) = self._version, self._read
        if known != version:
            messages = (*self._messages, self._answers()) if self._open else tuple(self._messages)
            # Store the version read at the start: another thread may read while a message arrives.
            self._read = (version, messages)
        return messages

    @property
    def turns(self) -> int:
        """Return the number of turns, including rewound ones."""
        return self._turns

    @property
    def standing(self) -> int:
        """Return the number of turns in effect, excluding rewound ones."""
        return self._standing.get(self._last, 0)

    @property
    def broken_command(self) -> str:
        """Return the last command of the current turn and its failure; empty if it succeeded."""
        return broken_command([*self._messages[self._turn_start :], *((self._answers(),) if self._open else ())])

    def calls_since_prompt(self) -> list[ToolUse]:
        """Return all calls of the current turn, oldest first."""
        return [call for message in self._messages[self._turn_start :] for call in message.calls]

    def _replace(self, messages: Sequence[Message], turn_start: int) -> None:
        self._messages = list(messages)
        self._turn_start = turn_start
        self._open, self._outputs = (), {}
        self._version += 1

    def _leave_out(self, event: MediaLeftOut) -> None:
        """Replace pictures and documents by notes, including those in results of the current calls."""
        self._messages = [without_media(message, event.keys, event.why) for message in self._messages]
        for id, output in self._outputs.items():
            changed = without_media(Message("user", (output,)), event.keys, event.why).blocks[0]
            if isinstance(changed, ToolOutput):
                self._outputs[id] = changed
        self._version += 1

    def _add(self, message: Message) -> None:
        if self._open:
            known, messages = self._read
            answers = messages[-1] if known == self._version else self._answers()
            self._open, self._outputs = (), {}
            self._merge(answers)
        self._merge(message)
        if message.role == "assistant":
            self._open, self._outputs = message.calls, {}
        self._version += 1

    def _merge(self, message: Message) -> None:
        if not message.blocks:
            return
        if self._messages and self._messages[-1].role == message.role:
            self._messages[-1] = self._messages[-1].joined(message)
        else:
            self._messages.append(message)

    def _answers(self) -> Message:
        blocks = tuple(
            self._outputs.get(call.id) or ToolOutput(call.id, INTERRUPTED, is_error=True, error=UNFINISHED)
            for call in self._open
        )
        # A stable id lets providers reuse their encoding of the message.
        return Message("user", blocks, origin="tool", id=f"{self._messages[-1].id}-out", at=self._messages[-1].at)

    def _change(self, change: StateChange) -> None:
        if change.todos is not None:
            self.todos = change.todos
        if change.cwd is not None:
            self.cwd = change.cwd
        if change.skills is not None:
            self.skills = change.skills
        self.seen.update((file.path, file) for file in change.seen)


ASKING = ("choice", "plan")
"""Kinds of questions that tools ask without another effect: allowing the call does not answer them."""


@frozen
class WaitingCalls:
    """Calls to ``ask`` about again, each with its open question, and ``later`` calls that were not started. A call with
    an open question has not run, so a later run of ba can ask again; an allowed call may have run in part.
    ``checkpointed``: the files were saved before the turn changed any."""

    ask: tuple[tuple[ToolUse, Question], ...]
    later: tuple[ToolUse, ...]
    checkpointed: bool

    @property
    def open_calls(self) -> frozenset[str]:
        """Return the ids of all these calls."""
        return frozenset([*(call.id for call, _ in self.ask), *(call.id for call in self.later)])


class OpenTurn:
    """The turn that has not ended. Apply every event of a session, replayed or live."""

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
                # Open questions are asked again, with a new id.
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
        """Return the calls that can be asked about again; None if there are none."""
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
