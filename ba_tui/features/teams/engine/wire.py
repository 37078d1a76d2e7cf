"""Messages as JSON: the limits of a bus, and what comes from another process, checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.teams import AgentMessage, MessageType
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

Redact: TypeAlias = Callable[[str], str]
MB = 1_000_000
NAME = 200
"""Characters of a name, a topic or an id."""
DEPTH = 60
HUGE = 1e15
"""What no number of a message reaches."""
DIGITS = 16
SHORT = 6
"""Characters below which a text is no secret."""
_TYPES: frozenset[str] = frozenset(get_args(MessageType))
_TEXTS = ("sender", "receiver", "team", "correlation_id", "idempotency_key", "id")


@frozen
class BusLimits:
    """``message_mb``: the largest message. ``waiting``: most messages of one topic that wait. ``lease``: seconds after
    which a delivery that nobody acknowledged or renewed is made again. ``deliveries``: how often, before the message
    is set aside."""

    message_mb: float = 1.0
    waiting: int = 100_000
    lease: float = 30.0
    deliveries: int = 5


USUAL = BusLimits()


def encoded(message: AgentMessage, limits: BusLimits) -> str:
    """``message`` as JSON. Raises UsageError when it is too large or its content is no JSON."""
    data = {
        "sender": message.sender,
        "receiver": message.receiver,
        "type": message.type,
        "content": message.content,
        "team": message.team,
        "correlation_id": message.correlation_id,
        "idempotency_key": message.idempotency_key,
        "sequence": message.sequence,
        "id": message.id,
        "at": message.at,
        "protocol": message.protocol,
    }
    try:
        # ASCII, so that its length is its size in bytes.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A {message.type} holds what is no JSON: {error}.") from error
    if len(text) > limits.message_mb * MB:
        raise UsageError(
            f"The message is {len(text) / MB:.1f} MB, at most {limits.message_mb:g} MB.",
            "Store the text as an artifact and send its reference.",
        )
    return text


def decoded(text: str, limits: BusLimits = USUAL) -> AgentMessage:
    """The message that ``text`` holds. Raises UsageError when it is none, or one that nobody here could have sent."""
    if len(text) > limits.message_mb * MB:
        raise UsageError(f"A message on the bus has {len(text) / MB:.1f} MB, at most {limits.message_mb:g} MB.")
    try:
        # A text with half of a character could be written nowhere.
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
    """The whole number that ``text`` is, 0 for anything else: anybody may have written it."""
    said = str(text)
    return int(said) if said.isascii() and said.isdigit() and len(said) < DIGITS else 0


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def discreet(message: AgentMessage, redact: Redact) -> AgentMessage:
    """``message`` with what ``redact`` takes out of each of its texts taken out."""
    if redact is str:
        return message
    return replace(message, content=cleaned(message.content, redact))


def cleaned(value: Any, redact: Redact, depth: int = DEPTH) -> Any:
    """``value`` with what ``redact`` takes out of each text in it taken out. Raises UsageError when it is too deep."""
    if isinstance(value, str):
        return redact(value) if len(value) >= SHORT else value
    if not depth:
        raise UsageError(f"A message is nested deeper than {DEPTH} levels.")
    if isinstance(value, Mapping):
        # A secret may stand under its name: password, and then the password.
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
