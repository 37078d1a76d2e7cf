"""The fold from events to the messages a model is sent. It cannot hold a call without an output.

Pure: reading never changes it, and a refolded journal equals the live one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.contents import broken_command, without_media
from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import (
    MAIN,
    PERSON,
    Compressed,
    Event,
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
    TurnStarted,
    WorkingChanged,
)
from ba_tui.core.events.planned import PlanFold
from ba_tui.core.messages import Message, ToolOutput, ToolUse, reminder
from ba_tui.core.results import SeenFile, StateChange, ToolResult
from ba_tui.core.work import ActiveSkill, Todo

# A fold over the user's own commands: which outputs the model has not read yet. Private commands never become
# messages.

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


INTERRUPTED = "Interrupted before it finished: no result. Ask the person before going on."
UNFINISHED = ErrorInfo("interrupted", INTERRUPTED)

ACTIVATE = "activate_skill"
"""The tool that starts a skill."""


class Transcript:
    """Messages of one agent, in order. Neighbours of the same role are merged, so roles always alternate."""

    def __init__(self, agent: str = "main", events: Iterable[Event] = ()) -> None:
        self.agent = agent
        self.todos: tuple[Todo, ...] = ()
        self.skills: tuple[ActiveSkill, ...] = ()
        self.cwd: str | None = None
        self.mode: Mode | None = None
        self.seen: dict[str, SeenFile] = {}
        """Files that were read or written, by their absolute paths."""
        self.rounds: dict[str, int] = {}
        """The number, from 1, of the round that begins in a message, by the message's id."""
        self.private = False
        """Whether the session neither stores memories nor recalls any."""
        self.working: dict[str, dict[str, Any]] = {}
        """What working memory holds, by its scope: the name of a task, or empty for the session."""
        self.plans = PlanFold()
        self.shared = SharedOutput()
        self._children: dict[str, int] = {}
        """How many sub-agents of each name this agent has had."""
        self._below = f"{agent}/"
        self._messages: list[Message] = []
        self._turn_start = 0
        self._turns = 0
        self._last = 0
        """The turn that stands last, counted among all that were begun."""
        self._standing = {0: 0}
        """How many turns stood once that one had begun."""
        self._open: tuple[ToolUse, ...] = ()
        self._outputs: dict[str, ToolOutput] = {}
        self._version = 0
        self._read: tuple[int, tuple[Message, ...]] = (0, ())
        """The messages as last read, and as of which version: they are the same objects until something changes."""
        for event in events:
            self.apply(event)

    def become(self, other: Transcript) -> None:
        """Take over all that ``other`` holds, so that those who know this one see it."""
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
        """Take in what changes messages that are there."""
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
        """Take in what is no message."""
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
        """Return a name for a sub-agent, such as ``explore-2``, that none has had in this session."""
        number = self._children[name] = self._children.get(name, 0) + 1
        return f"{name}-{number}"

    def _met(self, child: str) -> None:
        """Remember the number in the name of a sub-agent, so that the next one gets another."""
        name, _, number = child.rpartition("-")
        if number.isdecimal():
            self._children[name] = max(self._children.get(name, 0), int(number))

    @property
    def messages(self) -> Sequence[Message]:
        """All messages so far; unfinished calls read as interrupted."""
        version, (known, messages) = self._version, self._read
        if known != version:
            messages = (*self._messages, self._answers()) if self._open else tuple(self._messages)
            # As of the version before: another thread may read while a message comes.
            self._read = (version, messages)
        return messages

    @property
    def turns(self) -> int:
        """How many turns were begun, those included that were taken back."""
        return self._turns

    @property
    def standing(self) -> int:
        """How many turns stand: those that were taken back are not among them."""
        return self._standing.get(self._last, 0)

    @property
    def broken_command(self) -> str:
        """The last command of the current turn and how it ended, where it failed; else nothing."""
        return broken_command([*self._messages[self._turn_start :], *((self._answers(),) if self._open else ())])

    def calls_since_prompt(self) -> list[ToolUse]:
        """Every call of the current turn, oldest first."""
        return [call for message in self._messages[self._turn_start :] for call in message.calls]

    def _replace(self, messages: Sequence[Message], turn_start: int) -> None:
        self._messages = list(messages)
        self._turn_start = turn_start
        self._open, self._outputs = (), {}
        self._version += 1

    def _leave_out(self, event: MediaLeftOut) -> None:
        """Replace pictures and documents by notes, also in results of calls that are not all answered yet."""
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
        # One id per answer, so that a provider's encoding of it can be kept while it stays the same.
        return Message("user", blocks, origin="tool", id=f"{self._messages[-1].id}-out", at=self._messages[-1].at)

    def _change(self, change: StateChange) -> None:
        if change.todos is not None:
            self.todos = change.todos
        if change.cwd is not None:
            self.cwd = change.cwd
        if change.skills is not None:
            self.skills = change.skills
        self.seen.update((file.path, file) for file in change.seen)
