"""The closed union of everything that happens. All faces, files and meters are folds over it.

Events are frozen and JSON-ready: nothing live inside. ``TRANSIENT`` ones are never written to the journal. May import
what lies below ``core.events`` in the vocabulary.
"""

from __future__ import annotations

import json
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events.knowledge import FiguresChecked, MemoriesUsed, MemoryChanged, MemoryProposed, WorkingChanged
from ba_tui.core.events.signed import MAIN as MAIN
from ba_tui.core.events.signed import PERSON as PERSON
from ba_tui.core.events.signed import Signed
from ba_tui.core.events.teamwork import (
    ActivityChanged,
    AgentPaused,
    AgentStarted,
    ConflictChanged,
    PlanChanged,
    SubTaskChanged,
    TeamChanged,
    TeamMessage,
)
from ba_tui.core.messages import ByType, Message, ToolUse, Usage, clean_json
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import StateChange, ToolResult
from ba_tui.core.text.json_line import json_line, plain
from ba_tui.core.values import frozen
from ba_tui.core.work import ActiveSkill

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Mode: TypeAlias = Literal["default", "accept-edits", "plan", "auto", "bypass"]
Strategy: TypeAlias = Literal["truncate", "extract", "summarize", "undo"]
Ending: TypeAlias = Literal["done", "cancelled", "limit", "error", "interrupted"]


@frozen
class TurnStarted(Signed):
    """The person said ``prompt``; opens a turn."""

    prompt: Message
    type: Literal["turn_started"] = "turn_started"


@frozen
class Steered(Signed):
    """A message that joined a running turn: the person's steering, or a hidden reminder (see its origin)."""

    message: Message
    type: Literal["steered"] = "steered"


@frozen
class TextDelta(Signed):
    text: str
    type: Literal["text_delta"] = "text_delta"


@frozen
class ThinkingDelta(Signed):
    text: str
    type: Literal["thinking_delta"] = "thinking_delta"


@frozen
class ToolInputDelta(Signed):
    """The model is writing the arguments of a call; ``size`` characters so far."""

    call_id: str
    name: str
    size: int
    type: Literal["tool_input_delta"] = "tool_input_delta"


@frozen
class PromptProgress(Signed):
    """The model reads a prompt of about ``total`` tokens: ``done`` so far, ``left`` more seconds; None when unknown."""

    total: int
    done: int | None = None
    left: float | None = None
    type: Literal["prompt_progress"] = "prompt_progress"


@frozen
class Retrying(Signed):
    """The request failed and is sent again after ``delay`` seconds; ``attempt`` of ``attempts``.

    ``attempts`` 0: nothing failed, it only waits for a rate limit.
    """

    reason: str
    delay: float
    attempt: int
    attempts: int
    type: Literal["retrying"] = "retrying"


@frozen
class MessageRestarted(Signed):
    """The answer begins anew; what its deltas had brought so far is void."""

    type: Literal["message_restarted"] = "message_restarted"


@frozen
class MessageDone(Signed):
    """An answer is complete (or kept in part: see its ``stop``). ``cost`` in US dollars, None when unknown;
    ``estimate``: what limits count for it where the server reported no usage."""

    message: Message
    cost: float | None = None
    estimate: float | None = None
    type: Literal["message_done"] = "message_done"

    @property
    def usage(self) -> Usage | None:
        return self.message.usage


@frozen
class ToolStarted(Signed):
    """``target`` names what the call is about in one line: a path, a pattern, a command."""

    call: ToolUse
    target: str = ""
    type: Literal["tool_started"] = "tool_started"


@frozen
class ToolProgress(Signed):
    call_id: str
    text: str
    type: Literal["tool_progress"] = "tool_progress"


@frozen
class ToolFinished(Signed):
    """``duration`` in seconds, without the time that a person took to answer."""

    call_id: str
    result: ToolResult
    duration: float = 0.0
    type: Literal["tool_finished"] = "tool_finished"


@frozen
class Asked(Signed):
    ask_id: str
    question: Question
    type: Literal["asked"] = "asked"


@frozen
class Answered(Signed):
    ask_id: str
    reply: Reply
    type: Literal["answered"] = "answered"


@frozen
class Judged(Signed):
    """What was decided about a call, and by whom: ``rule``, ``mode``, ``person``, ``hook`` or ``sandbox``. ``hash`` is
    of the arguments that were judged; the arguments themselves stand in the call. ``profile``: how what it runs is
    confined, empty for calls that run nothing."""

    call_id: str
    tool: str
    verdict: Literal["allow", "ask", "deny"]
    by: Literal["rule", "mode", "person", "hook", "sandbox"]
    rule: str = ""
    reason: str = ""
    hash: str = ""
    profile: str = ""
    type: Literal["judged"] = "judged"


@frozen
class SkillsChanged(Signed):
    """The activation stack from now on, the outermost skill first."""

    active: tuple[ActiveSkill, ...]
    type: Literal["skills_changed"] = "skills_changed"


@frozen
class Compressed(Signed):
    """From now on the model is sent ``messages`` for all that was before. The originals stay in the journal.

    ``before`` and ``after`` in tokens; ``kept`` says in a line what was kept; the running turn begins with message
    ``turn_start``. ``cost`` in US dollars and ``usage`` are those of summaries, also of such as came to nothing; None
    when unknown, or when no model was asked. ``estimate``: see MessageDone.
    """

    messages: tuple[Message, ...]
    strategy: Strategy
    before: int
    after: int
    cost: float | None = None
    kept: str = ""
    turn_start: int = 0
    usage: Usage | None = None
    estimate: float | None = None
    type: Literal["compressed"] = "compressed"

    @property
    def priced(self) -> bool:
        """Whether all that it cost is known: what rules do is free, a summary may be by a model without a price."""
        return self.cost is not None or (self.usage is None and self.strategy != "summarize")


@frozen
class MediaLeftOut(Signed):
    """From now on the model is sent a note in place of the pictures and documents with these ``keys`` (see
    ``core.contents.media_key``); ``why`` is in the note."""

    keys: tuple[str, ...]
    why: str
    type: Literal["media_left_out"] = "media_left_out"


@frozen
class SideRequest(Signed):
    """A model answered a request beside the conversation, for ``purpose``; ``cost`` in US dollars if known.
    ``estimate``: see MessageDone."""

    purpose: str
    model: str
    usage: Usage | None = None
    cost: float | None = None
    estimate: float | None = None
    type: Literal["side_request"] = "side_request"


@frozen
class Checkpointed(Signed):
    """The files as they were before the first change of turn ``turn`` (from 1), kept under ``id``."""

    id: str
    turn: int
    type: Literal["checkpointed"] = "checkpointed"


@frozen
class Rewound(Signed):
    """The conversation stands again as after ``turns`` turns (None: it was left as it is), the files as in checkpoint
    ``files`` (empty: they were left). ``undo`` is the checkpoint that was taken just before."""

    messages: tuple[Message, ...] = ()
    state: StateChange = field(default_factory=StateChange)
    turns: int | None = None
    files: str = ""
    undo: str = ""
    type: Literal["rewound"] = "rewound"


@frozen
class Notice(Signed):
    """A line for the person that the model does not see. ``damage``: of what can't be read in the session's file."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    hint: str = ""
    damage: bool = False
    type: Literal["notice"] = "notice"


@frozen
class ModeChanged(Signed):
    mode: Mode
    type: Literal["mode_changed"] = "mode_changed"


@frozen
class ModelChanged(Signed):
    model: str
    type: Literal["model_changed"] = "model_changed"


@frozen
class Titled(Signed):
    title: str
    type: Literal["titled"] = "titled"


@frozen
class TurnResumed(Signed):
    """A turn goes on that an earlier run of ba left at a question. ``calls`` are asked about again, by their ids.
    ``checkpointed``: the files were kept before the turn changed any."""

    calls: tuple[str, ...]
    checkpointed: bool = False
    type: Literal["turn_resumed"] = "turn_resumed"


@frozen
class TurnEnded(Signed):
    reason: Ending
    error: ErrorInfo | None = None
    type: Literal["turn_ended"] = "turn_ended"


Event: TypeAlias = Annotated[
    TurnStarted
    | Steered
    | TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | PromptProgress
    | Retrying
    | MessageRestarted
    | MessageDone
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | Asked
    | Answered
    | Judged
    | SkillsChanged
    | Compressed
    | MediaLeftOut
    | SideRequest
    | Checkpointed
    | Rewound
    | Notice
    | FiguresChecked
    | MemoriesUsed
    | MemoryChanged
    | MemoryProposed
    | WorkingChanged
    | AgentStarted
    | ActivityChanged
    | AgentPaused
    | PlanChanged
    | SubTaskChanged
    | TeamChanged
    | TeamMessage
    | ConflictChanged
    | ModeChanged
    | ModelChanged
    | Titled
    | TurnResumed
    | TurnEnded,
    ByType(),
]

TRANSIENT = (
    *(TextDelta, ThinkingDelta, ToolInputDelta, PromptProgress, Retrying, MessageRestarted, ToolProgress),
    MemoryProposed,
    ActivityChanged,
)


@cache
def event_adapter() -> TypeAdapter[Any]:
    """The validator of Event; built on first use, because it costs a tenth of a second."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - see ByType

    return TypeAdapter(Event)


def event_to_json(event: Event) -> bytes:
    """One line of JSON without a line end, for any event: what JSON or UTF-8 can't hold is replaced."""
    try:
        return json_line(event).encode()
    except ValueError:
        return json_line(clean_json(json.loads(json.dumps(event, default=plain)))).encode()


def event_from_json(line: bytes | str) -> Event:
    """Raises pydantic.ValidationError when the line is no event."""
    return event_adapter().validate_json(line)
