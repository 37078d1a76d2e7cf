"""What the messages of a team hold: one value for each kind, and the topics that they go to.

Another process wrote what arrives, so reading checks every field. Unknown fields are left out: they may come from a
newer ba with the same protocol.
"""

from __future__ import annotations

from dataclasses import MISSING, field, fields
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.teamwork.teams import EVERYBODY, PROTOCOL, AgentMessage, MessageType, Role
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.wire import HUGE

WORKERS = "workers"
"""The topic of heartbeats: every orchestrator subscribes to it with a group of its own."""
TAKERS = "takers"
"""The group of those who pull work: each request goes to one of them."""

LEAD = "lead"
"""Begins the name of whoever hands out work: ``lead:`` and the team's id."""
ALWAYS: frozenset[MessageType] = frozenset({"task_response", "status_update", "heartbeat", "error"})
"""What every member may send: without these no work could be handed out."""

Outcome: TypeAlias = Literal["done", "limit", "cancelled", "error", "refused"]
RequestKind: TypeAlias = Literal["context", "bids", "capability", "lease", "call", "question"]


def work_topic(role: str) -> str:
    """Where requests for ``role`` wait until one of its members takes them (group TAKERS)."""
    return f"work:{role}"


def inbox(member: str) -> str:
    """The topic of one member. On a shared server names must be unique: a team's id or a host is part of them."""
    return member


def team_topic(team: str) -> str:
    """Broadcasts within one team; every member subscribes to it with its own name as the group."""
    return f"team:{team}"


def lead_of(team: str) -> str:
    """The name of the first lead of a team; its sub-orchestrators have a number behind it."""
    return f"{LEAD}:{team}"


def team_of(lead: str) -> str:
    """The id of the team that ``lead`` leads; empty when that is no name of a lead."""
    kind, _, rest = lead.partition(":")
    return rest.partition(".")[0] if kind == LEAD else ""


def may_send(role: Role, type: MessageType) -> bool:
    """Whether members of ``role`` may send messages of that type. Only leads hand out work."""
    return type in ALWAYS or (type != "task_request" and (not role.messages or type in role.messages))


@frozen
class TaskRequest:
    """One subtask. ``prompt``: all that the member is told; results of earlier subtasks are filled in.

    ``task``: the id of the subtask. ``role``: whose work it is; which agent does it is up to the member.
    ``context``: items of the shared context by key, ``partial``: what an earlier member had found.
    ``deadline``: seconds since the epoch, 0 without. ``chain``: who handed it on, first to last. ``attempt`` from 1.
    ``apart``: members answer independently of each other, and share nothing.
    ``again``: it may be begun a second time although a worker that vanished may have changed something.
    ``max_cost`` in US dollars and ``max_tokens``: 0 for those of the role. The idempotency_key of the message is the
    same for every attempt.
    """

    type: ClassVar[MessageType] = "task_request"
    task: str
    prompt: str
    description: str = ""
    expected_output: str = ""
    role: str = ""
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    partial: str = ""
    deadline: float = 0.0
    chain: tuple[str, ...] = ()
    attempt: int = 1
    critical: bool = False
    again: bool = False
    apart: bool = False
    max_loops: int = 10
    max_cost: float = 0.0
    max_tokens: int = 0


@frozen
class TaskResponse:
    """How a subtask came out; the correlation_id is that of its request. ``value``: the result as JSON where it is
    data.

    ``claims``: values by key that others may contradict. ``confidence`` from 0 to 1. ``asks``: questions that nobody
    answered. ``tokens`` in and out; ``cost`` in US dollars, -1 when it is not known. ``seconds`` of work.
    """

    type: ClassVar[MessageType] = "task_response"
    task: str
    outcome: Outcome
    result: str = ""
    value: Any = None
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    confidence: float = 0.5
    artifact: str = ""
    error: str = ""
    hint: str = ""
    asks: tuple[str, ...] = ()
    worker: str = ""
    agent_id: str = ""
    session: str = ""
    tokens: int = 0
    cost: float = -1.0
    seconds: float = 0.0


@frozen
class StatusUpdate:
    """What a member does. ``partial``: what it has found so far, for whoever goes on with the task."""

    type: ClassVar[MessageType] = "status_update"
    task: str
    activity: AgentActivity
    doing: str = ""
    partial: str = ""


@frozen
class Share:
    """An item of the shared context as it is now; ``version`` counts its writes from 1."""

    type: ClassVar[MessageType] = "information_share"
    key: str
    value: Any = None
    version: int = 0
    by: str = ""
    kind: str = "item"


@frozen
class ContextRequest:
    """``context``: items with keys or texts that fit ``query``; ``bids``: offers for the task ``task``;
    ``capability``: tools that fit ``query``, to borrow; of a lead: who lends any; ``lease``: to borrow the tools that
    ``facts`` name; ``call``: of the tool ``query`` with the arguments in ``facts``, under the lease ``task``;
    ``question``: whether the call of the tool ``query`` in ``facts`` may run for the task ``task``."""

    type: ClassVar[MessageType] = "context_request"
    kind: RequestKind
    query: str = ""
    task: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@frozen
class Bid:
    """An offer: to do ``task``, or to lend ``tools``. ``cost`` in US dollars, ``quality`` from 0 to 1, ``seconds``
    until it is done."""

    type: ClassVar[MessageType] = "bid"
    task: str = ""
    cost: float = 0.0
    quality: float = 0.5
    seconds: float = 0.0
    tools: tuple[str, ...] = ()
    reason: str = ""


@frozen
class Heartbeat:
    """A sign of life, and what the member is. ``version``: of its ba. ``lends``: others may ask it for tools."""

    type: ClassVar[MessageType] = "heartbeat"
    role: str
    activity: AgentActivity = "idle"
    doing: str = ""
    capabilities: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    version: str = ""
    model: str = ""
    done: int = 0
    lends: bool = False


@frozen
class Trouble:
    """Why something was not done, in a line, and what to do. ``kind``: ``protocol``, ``question``, ``denied``, …"""

    type: ClassVar[MessageType] = "error"
    kind: str
    message: str
    hint: str = ""
    task: str = ""


Content: TypeAlias = TaskRequest | TaskResponse | StatusUpdate | Share | ContextRequest | Bid | Heartbeat | Trouble
C = TypeVar("C", bound=Content)
_CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("task_response", "outcome"): get_args(Outcome),
    ("context_request", "kind"): get_args(RequestKind),
}


def message(
    content: Content, sender: str, receiver: str = EVERYBODY, *, team: str = "", about: AgentMessage | None = None
) -> AgentMessage:
    """A message with ``content``. ``about``: the message that it answers, whose team and key it takes over."""
    held = {each.name: getattr(content, each.name) for each in fields(content)}
    if about is None:
        return AgentMessage(sender, receiver, content.type, held, team)
    key, belongs = about.idempotency_key, about.correlation_id or about.id
    if content.type == "task_response":
        belongs = about.id
    return AgentMessage(sender, receiver, content.type, held, team or about.team, belongs, key)


def content(kind: type[C], message: AgentMessage) -> C:
    """What ``message`` holds, checked. Raises UsageError when it is something else, or a field is wrong."""
    if message.type != kind.type:
        raise UsageError(f"Expected a {kind.type}, got a {message.type} from {message.sender}.")
    given: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in message.content:
            example = each.default if each.default is not MISSING else _made(each)
            given[each.name] = _checked(message, each.name, message.content[each.name], example)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise UsageError(f"The {message.type} from {message.sender} has no {each.name}.")
    return kind(**given)


def check_protocol(message: AgentMessage) -> None:
    """Raises UsageError for a message that this ba might misunderstand."""
    if message.protocol != PROTOCOL:
        newer = message.protocol > PROTOCOL
        raise UsageError(
            f"{message.sender} speaks version {message.protocol} of the team protocol, and this ba version {PROTOCOL}.",
            f"Update ba {'here' if newer else 'there'}: all members need the same version.",
        )


def _made(each: Any) -> Any:
    # A field without a default is text; ``value`` of any kind has None as its default.
    return "" if each.default_factory is MISSING else each.default_factory()


def _checked(message: AgentMessage, name: str, value: Any, example: Any) -> Any:
    """``value`` as the type of ``example``. Raises UsageError."""
    match example, value:
        case None, _:
            return value
        case bool(), bool():
            return value
        case (int() | float(), bool()):
            pass
        case int(), int() if abs(value) < HUGE:
            return value
        case float(), int() | float() if abs(value) < HUGE:
            return float(value)
        case str(), str():
            choices = _CHOICES.get((message.type, name))
            if not choices or value in choices:
                return value
        case tuple(), list() | tuple():
            if all(isinstance(each, str) for each in cast("list[object]", value)):
                return tuple(cast("list[str]", value))
        case dict(), dict():
            return cast("dict[str, Any]", value)
        case _:
            pass
    raise UsageError(f"The {message.type} from {message.sender} has a wrong {name}.")
