"""The closed union of all events. Faces, files and meters are folds over events.

Events are frozen and JSON-ready. ``TRANSIENT`` events are never journaled. The class names and fields are the format of
the session file. May import the layers below ``core.events`` in the vocabulary.
"""

from __future__ import annotations

import json
import time
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.messages import ByType, Message, ToolUse, Usage, clean_json
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ActiveSkill, StateChange, ToolResult
from ba_tui.core.teamwork import AgentActivity, AgentMessage, Conflict, Plan, SubTask, Team
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.json_text import json_line, plain
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@frozen
class MemoryLine:
    """A memory as shown to people, at the time of the event. ``at`` in seconds since 1970. ``why``: the reason for its
    use, if it was used. ``older``: the text that it replaces, if any."""

    id: str
    text: str
    kind: str = "fact"
    at: float = 0.0
    why: str = ""
    older: str = ""


MAIN = "main"
"""The name of the agent that the user talks to."""
PERSON = "person"
"""The agent name in events of commands that the user runs outside turns. Models only read messages that share them."""


@frozen
class SignedEvent:
    """Base of all events: the agent (``main``, ``main/explore-1``) and the time in seconds since the epoch."""

    agent: str = field(default=MAIN, kw_only=True)
    at: float = field(default_factory=time.time, kw_only=True)


@frozen
class AgentStarted(SignedEvent):
    """A sub-agent starts, or continues when ``resumed``; its TurnStarted follows. ``kind`` is its type, such as
    ``explore``; ``call_id`` the call that started it; ``worktree`` the project copy that it works in, empty for the
    project itself."""

    kind: str
    description: str = ""
    call_id: str = ""
    model: str = ""
    background: bool = False
    resumed: bool = False
    worktree: str = ""
    type: Literal["agent_started"] = "agent_started"


@frozen
class ActivityChanged(SignedEvent):
    """The new state of the agent. It follows from other events, so the journal omits it."""

    activity: AgentActivity
    before: AgentActivity
    type: Literal["activity_changed"] = "activity_changed"


@frozen
class AgentPaused(SignedEvent):
    """The agent pauses before its next request, or resumes."""

    paused: bool
    type: Literal["agent_paused"] = "agent_paused"


@frozen
class PlanChanged(SignedEvent):
    """The whole new plan: proposed, edited, approved, rejected, replanned, ended. ``reason``: why."""

    plan: Plan
    reason: str = ""
    type: Literal["plan_changed"] = "plan_changed"


@frozen
class SubTaskChanged(SignedEvent):
    """The new state of one subtask of the plan with id ``plan``."""

    plan: str
    subtask: SubTask
    type: Literal["subtask_changed"] = "subtask_changed"


@frozen
class TeamChanged(SignedEvent):
    """The whole new team: its members and their activities."""

    team: Team
    type: Literal["team_changed"] = "team_changed"


@frozen
class TeamMessage(SignedEvent):
    """A message between members was delivered. Heartbeats are excluded."""

    message: AgentMessage
    type: Literal["team_message"] = "team_message"


@frozen
class ConflictChanged(SignedEvent):
    """Members disagree, or their conflict was settled."""

    team: str
    conflict: Conflict
    type: Literal["conflict_changed"] = "conflict_changed"


@frozen
class FiguresChecked(SignedEvent):
    """The figures of the answer with message id ``message`` were checked. A later event for the same message replaces
    it."""

    message: str
    report: FigureReport
    type: Literal["figures_checked"] = "figures_checked"


@frozen
class MemoriesUsed(SignedEvent):
    """These memories were sent with the newest words of the user, best first."""

    memories: tuple[MemoryLine, ...]
    type: Literal["memories_used"] = "memories_used"


@frozen
class MemoryChanged(SignedEvent):
    """Memory changed other than by a manual edit of the user; ``Memory.undo`` reverts any of these ids. ``private``:
    from now on the session neither stores nor recalls."""

    stored: tuple[MemoryLine, ...] = ()
    forgotten: tuple[str, ...] = ()
    private: bool = False
    type: Literal["memory_changed"] = "memory_changed"


@frozen
class MemoryProposed(SignedEvent):
    """A statement of the user may be worth storing. ``Memory.proposals`` has it under these ids."""

    proposals: tuple[MemoryLine, ...]
    type: Literal["memory_proposed"] = "memory_proposed"


@frozen
class WorkingChanged(SignedEvent):
    """The current content of the working memory of ``scope``: the name of a task, or empty for the session."""

    scope: str
    values: dict[str, Any]
    type: Literal["working_changed"] = "working_changed"


Mode: TypeAlias = Literal["default", "accept-edits", "plan", "auto", "bypass"]
Strategy: TypeAlias = Literal["truncate", "extract", "summarize", "undo"]
Ending: TypeAlias = Literal["done", "cancelled", "limit", "error", "interrupted"]


@frozen
class TurnStarted(SignedEvent):
    """The user sent ``prompt``, which opens a turn."""

    prompt: Message
    type: Literal["turn_started"] = "turn_started"


@frozen
class Steered(SignedEvent):
    """A message joined the running turn: steering by the user, or a hidden reminder (see its origin)."""

    message: Message
    type: Literal["steered"] = "steered"


@frozen
class TextDelta(SignedEvent):
    text: str
    type: Literal["text_delta"] = "text_delta"


@frozen
class ThinkingDelta(SignedEvent):
    text: str
    type: Literal["thinking_delta"] = "thinking_delta"


@frozen
class ToolInputDelta(SignedEvent):
    """The model is writing the arguments of a call; ``size`` is the number of characters so far."""

    call_id: str
    name: str
    size: int
    type: Literal["tool_input_delta"] = "tool_input_delta"


@frozen
class PromptProgress(SignedEvent):
    """The model is reading a prompt of about ``total`` tokens: ``done`` so far, ``left`` seconds remain; None if
    unknown."""

    total: int
    done: int | None = None
    left: float | None = None
    type: Literal["prompt_progress"] = "prompt_progress"


@frozen
class Retrying(SignedEvent):
    """The request failed and is sent again after ``delay`` seconds; ``attempt`` of ``attempts``. ``attempts`` 0:
    nothing failed, it only waits for a rate limit."""

    reason: str
    delay: float
    attempt: int
    attempts: int
    type: Literal["retrying"] = "retrying"


@frozen
class MessageRestarted(SignedEvent):
    """The answer starts again; its earlier deltas are void."""

    type: Literal["message_restarted"] = "message_restarted"


@frozen
class MessageDone(SignedEvent):
    """An answer is complete (or partial: see its ``stop``). ``cost`` in US dollars, None if unknown; ``estimate``: the
    cost that limits use if the server reported no usage."""

    message: Message
    cost: float | None = None
    estimate: float | None = None
    type: Literal["message_done"] = "message_done"

    @property
    def usage(self) -> Usage | None:
        return self.message.usage


@frozen
class ToolStarted(SignedEvent):
    """``target`` names the subject of the call in one line: a path, a pattern, a command."""

    call: ToolUse
    target: str = ""
    type: Literal["tool_started"] = "tool_started"


@frozen
class ToolProgress(SignedEvent):
    call_id: str
    text: str
    type: Literal["tool_progress"] = "tool_progress"


@frozen
class ToolFinished(SignedEvent):
    """``duration`` in seconds, without the time that the user took to answer."""

    call_id: str
    result: ToolResult
    duration: float = 0.0
    type: Literal["tool_finished"] = "tool_finished"


@frozen
class Asked(SignedEvent):
    ask_id: str
    question: Question
    type: Literal["asked"] = "asked"


@frozen
class Answered(SignedEvent):
    ask_id: str
    reply: Reply
    type: Literal["answered"] = "answered"


@frozen
class Judged(SignedEvent):
    """The decision about a call, and its origin ``by``. ``hash`` is of the judged arguments, which the call itself
    contains. ``profile``: how the program of the call is confined, empty for calls that run none."""

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
class SkillsChanged(SignedEvent):
    """The current activation stack, the outermost skill first."""

    active: tuple[ActiveSkill, ...]
    type: Literal["skills_changed"] = "skills_changed"


@frozen
class Compressed(SignedEvent):
    """From now on the model reads ``messages`` instead of all earlier ones, which stay in the journal.

    ``before`` and ``after`` in tokens; ``kept`` describes in a line what was kept; the running turn begins with message
    ``turn_start``. ``cost`` in US dollars and ``usage`` include failed summaries; None if unknown, or if no model was
    asked. ``estimate``: see MessageDone.
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
        """Return whether the full cost is known: rules are free, but a model without a price may have written a
        summary."""
        return self.cost is not None or (self.usage is None and self.strategy != "summarize")


@frozen
class MediaLeftOut(SignedEvent):
    """From now on the model reads a note with ``why`` instead of the pictures and documents with these ``keys`` (see
    ``core.messages.media_key``)."""

    keys: tuple[str, ...]
    why: str
    type: Literal["media_left_out"] = "media_left_out"


@frozen
class SideRequest(SignedEvent):
    """A model answered a request outside the conversation, for ``purpose``; ``cost`` in US dollars if known.
    ``estimate``: see MessageDone."""

    purpose: str
    model: str
    usage: Usage | None = None
    cost: float | None = None
    estimate: float | None = None
    type: Literal["side_request"] = "side_request"


@frozen
class Checkpointed(SignedEvent):
    """The files were saved under ``id`` before the first change of turn ``turn`` (from 1)."""

    id: str
    turn: int
    type: Literal["checkpointed"] = "checkpointed"


@frozen
class Rewound(SignedEvent):
    """The conversation is back at the state after ``turns`` turns (None: unchanged), the files at checkpoint ``files``
    (empty: unchanged). ``undo`` is the checkpoint taken just before."""

    messages: tuple[Message, ...] = ()
    state: StateChange = field(default_factory=StateChange)
    turns: int | None = None
    files: str = ""
    undo: str = ""
    type: Literal["rewound"] = "rewound"


@frozen
class Notice(SignedEvent):
    """A line for the user, hidden from the model. ``damage``: it is about unreadable parts of the session's file."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    hint: str = ""
    damage: bool = False
    type: Literal["notice"] = "notice"


@frozen
class ModeChanged(SignedEvent):
    mode: Mode
    type: Literal["mode_changed"] = "mode_changed"


@frozen
class ModelChanged(SignedEvent):
    model: str
    type: Literal["model_changed"] = "model_changed"


@frozen
class Titled(SignedEvent):
    title: str
    type: Literal["titled"] = "titled"


@frozen
class TurnResumed(SignedEvent):
    """A turn continues that an earlier run of ba left at a question. ``calls`` are the ids of the calls asked about
    again. ``checkpointed``: the files were saved before the turn changed any."""

    calls: tuple[str, ...]
    checkpointed: bool = False
    type: Literal["turn_resumed"] = "turn_resumed"


@frozen
class TurnEnded(SignedEvent):
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
    """Return the validator of Event, built on first use because that takes a tenth of a second."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - see ByType

    return TypeAdapter(Event)


def event_to_json(event: Event) -> bytes:
    """Return one line of JSON without a line end, for any event; content that JSON or UTF-8 cannot represent is
    replaced."""
    try:
        return json_line(event).encode()
    except ValueError:
        return json_line(clean_json(json.loads(json.dumps(event, default=plain)))).encode()


def event_from_json(line: bytes | str) -> Event:
    """Parse an event. Raises pydantic.ValidationError for an invalid line."""
    return event_adapter().validate_json(line)
