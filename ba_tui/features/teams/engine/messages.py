"""The messages of a team: one dataclass per kind, and the topics that they are sent to.

Another process wrote incoming messages, so reading checks every field. Unknown fields are ignored: they may come from a
newer ba with the same protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import EVERYBODY, PROTOCOL, AgentActivity, AgentMessage, MessageType, Role
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

Redact: TypeAlias = Callable[[str], str]
MB = 1_000_000
NAME = 200
"""Maximum characters of a name, a topic or an id."""
DEPTH = 60
HUGE = 1e15
"""Upper bound for the numbers of a message."""
DIGITS = 16
SHORT = 6
"""Texts with fewer characters are not treated as secrets."""
_TYPES: frozenset[str] = frozenset(get_args(MessageType))
_TEXTS = ("sender", "receiver", "team", "correlation_id", "idempotency_key", "id")


@frozen
class BusLimits:
    """``message_mb``: maximum message size. ``waiting``: maximum waiting messages of one topic. ``lease``: seconds
    after which a delivery that was neither acknowledged nor renewed is repeated. ``deliveries``: attempts before the
    message becomes a dead letter.
    """

    message_mb: float = 1.0
    waiting: int = 100_000
    lease: float = 30.0
    deliveries: int = 5


USUAL = BusLimits()


def encoded(message: AgentMessage, limits: BusLimits) -> str:
    """Return ``message`` as JSON. Raises UsageError if it is too large or its content can't be JSON."""
    data = {each.name: getattr(message, each.name) for each in fields(message)}
    try:
        # The JSON is ASCII, so its length is its size in bytes.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A {message.type} is not valid JSON: {error}.") from error
    if len(text) > limits.message_mb * MB:
        raise UsageError(
            f"The message is {len(text) / MB:.1f} MB, at most {limits.message_mb:g} MB.",
            "Store the text as an artifact and send its reference.",
        )
    return text


def decoded(text: str, limits: BusLimits = USUAL) -> AgentMessage:
    """Return the message in ``text``. Raises UsageError for invalid text, or a message that no ba could have sent."""
    if len(text) > limits.message_mb * MB:
        raise UsageError(f"A message on the bus has {len(text) / MB:.1f} MB, at most {limits.message_mb:g} MB.")
    try:
        # Text with unpaired surrogates could not be stored.
        data: Any = json.loads(text.encode("utf-8", "replace"), parse_constant=_no_number)
        json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError(f"A message on the bus is no JSON: {clipped(str(error), 200)}.") from error
    if not isinstance(data, dict):
        raise UsageError("A message on the bus is no JSON object.")
    cleaned(data, str)
    given = cast("dict[str, Any]", data)
    texts = {name: given.get(name, "") for name in _TEXTS}
    numbers = (given.get("sequence", 0), given.get("protocol", 0), given.get("at", 0.0))
    right = (
        all(isinstance(each, str) and len(each) <= NAME for each in texts.values())
        and texts["sender"]
        and texts["id"]
        and all(isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < HUGE for each in numbers)
        and given.get("type") in _TYPES
        and isinstance(given.get("content"), dict)
    )
    if not right:
        raise UsageError("A message on the bus has wrong fields.")
    sequence, protocol, at = numbers
    return AgentMessage(
        type=given["type"], content=given["content"], sequence=int(sequence), protocol=int(protocol), at=at, **texts
    )


def number_in(text: object) -> int:
    """Return ``text`` as a whole number, 0 for anything else: any process may have written it."""
    said = str(text)
    return int(said) if said.isascii() and said.isdigit() and len(said) < DIGITS else 0


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def discreet(message: AgentMessage, redact: Redact) -> AgentMessage:
    """Return ``message`` with each of its texts passed through ``redact``."""
    if redact is str:
        return message
    return replace(message, content=cleaned(message.content, redact))


def cleaned(value: Any, redact: Redact, depth: int = DEPTH) -> Any:
    """Return ``value`` with each text passed through ``redact``. Raises UsageError if it is nested too deeply."""
    if isinstance(value, str):
        return redact(value) if len(value) >= SHORT else value
    if not depth:
        raise UsageError(f"A message is nested deeper than {DEPTH} levels.")
    if isinstance(value, Mapping):
        # A secret may follow its name in a list: "password", then the value.
        return {
            cleaned(str(key), redact, 1): _named(str(key), each, redact, depth)
            for key, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [cleaned(each, redact, depth - 1) for each in cast("list[Any]", value)]
    return value


def _named(key: str, value: Any, redact: Redact, depth: int) -> Any:
    if not isinstance(value, str) or len(value) < SHORT:
        return cleaned(value, redact, depth - 1)
    found, head = redact(value), f'"{key}": "'
    if found == value and (line := redact(f'{head}{value}"')) != f'{head}{value}"':
        return line.removeprefix(head).removesuffix('"')
    return found


WORKERS = "workers"
"""The topic of heartbeats: every orchestrator subscribes to it with its own group."""
TAKERS = "takers"
"""The group of members that pull work: each request is delivered to one of them."""

LEAD = "lead"
"""Prefix of a lead's name: ``lead:`` and the team's id."""
ALWAYS: frozenset[MessageType] = frozenset({"task_response", "status_update", "heartbeat", "error"})
"""Message types that every member may send: without them no work could be assigned."""

Outcome: TypeAlias = Literal["done", "limit", "cancelled", "error", "refused"]
RequestKind: TypeAlias = Literal["context", "bids", "capability", "lease", "call", "question"]


def work_topic(role: str) -> str:
    """Return the topic where requests for ``role`` wait until one of its members takes them (group TAKERS)."""
    return f"work:{role}"


def inbox(member: str) -> str:
    """Return the topic of one member. Names must be unique on a shared server: they contain a team's id or a host."""
    return member


def team_topic(team: str) -> str:
    """Return the topic of broadcasts within one team; every member subscribes to it with its own name as the group."""
    return f"team:{team}"


def lead_of(team: str) -> str:
    """Return the name of a team's first lead; names of its sub-orchestrators have a number appended."""
    return f"{LEAD}:{team}"


def team_of(lead: str) -> str:
    """Return the id of the team that ``lead`` leads; empty if it is not the name of a lead."""
    kind, _, rest = lead.partition(":")
    return rest.partition(".")[0] if kind == LEAD else ""


def may_send(role: Role, type: MessageType) -> bool:
    """Return whether members of ``role`` may send messages of that type. Only leads assign work."""
    return type in ALWAYS or (type != "task_request" and (not role.messages or type in role.messages))


@frozen
class TaskRequest:
    """One subtask. ``prompt``: the complete prompt of the member, with the results of earlier subtasks filled in.

    ``task``: the id of the subtask. ``role``: the role that does it; the member chooses the agent. ``context``: items
    of the shared context by key; ``partial``: findings of an earlier member. ``deadline``: seconds since the epoch, 0
    for none. ``chain``: who passed the task on, first to last. ``attempt`` from 1. ``apart``: members answer
    independently of each other and share nothing. ``again``: a second start is allowed although a vanished worker may
    have changed something. ``max_cost`` in US dollars and ``max_tokens``: 0 for the limits of the role. The
    idempotency_key of the message is the same for every attempt.
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
    """The outcome of a subtask; the correlation_id is that of its request. ``value``: the result as JSON if it is data.

    ``claims``: values by key that other members may contradict. ``confidence`` from 0 to 1. ``asks``: questions without
    an answer. ``tokens`` in and out; ``cost`` in US dollars, -1 if unknown. ``seconds`` of work.
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
    """The current activity of a member. ``partial``: its findings so far, for a member that continues the task."""

    type: ClassVar[MessageType] = "status_update"
    task: str
    activity: AgentActivity
    doing: str = ""
    partial: str = ""


@frozen
class Share:
    """The current state of a shared item; ``version`` counts its writes from 1."""

    type: ClassVar[MessageType] = "information_share"
    key: str
    value: Any = None
    version: int = 0
    by: str = ""
    kind: str = "item"


@frozen
class ContextRequest:
    """A question to another member. ``context``: items with keys or texts that match ``query``; ``bids``: bids for the
    task ``task``; ``capability``: tools to borrow that match ``query``, or, asked of a lead, the lenders; ``lease``: a
    lease for the tools that ``facts`` name; ``call``: a call of the tool ``query`` with the arguments in ``facts``,
    under the lease ``task``; ``question``: whether the call of the tool ``query`` in ``facts`` may run for the task
    ``task``.
    """

    type: ClassVar[MessageType] = "context_request"
    kind: RequestKind
    query: str = ""
    task: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@frozen
class Bid:
    """An offer to do ``task``, or to lend ``tools``. ``cost`` in US dollars, ``quality`` from 0 to 1, ``seconds`` until
    it is done.
    """

    type: ClassVar[MessageType] = "bid"
    task: str = ""
    cost: float = 0.0
    quality: float = 0.5
    seconds: float = 0.0
    tools: tuple[str, ...] = ()
    reason: str = ""


@frozen
class Heartbeat:
    """A sign of life, and a description of the member. ``version`` of its ba. ``lends``: other members may ask it for
    tools.
    """

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
    """Why something was not done, in one line, and how to fix it. ``kind``: ``protocol``, ``question``,
    ``denied``, …
    """

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
    """Return a message with ``content``. ``about``: the message that it answers; its team and key are copied."""
    held = {each.name: getattr(content, each.name) for each in fields(content)}
    if about is None:
        return AgentMessage(sender, receiver, content.type, held, team)
    key, belongs = about.idempotency_key, about.correlation_id or about.id
    if content.type == "task_response":
        belongs = about.id
    return AgentMessage(sender, receiver, content.type, held, team or about.team, belongs, key)


def content(kind: type[C], message: AgentMessage) -> C:
    """Return the checked content of ``message``. Raises UsageError for another type or an invalid field."""
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
    """Check the protocol version. Raises UsageError for a message that this ba might misread."""
    if message.protocol != PROTOCOL:
        newer = message.protocol > PROTOCOL
        raise UsageError(
            f"{message.sender} speaks version {message.protocol} of the team protocol, and this ba version {PROTOCOL}.",
            f"Update ba {'here' if newer else 'there'}: all members need the same version.",
        )


def _made(each: Any) -> Any:
    # A field without a default is text; ``value`` may have any type, and its default is None.
    return "" if each.default_factory is MISSING else each.default_factory()


def _checked(message: AgentMessage, name: str, value: Any, example: Any) -> Any:
    """Return ``value`` if it has the type of ``example``. Raises UsageError."""
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
