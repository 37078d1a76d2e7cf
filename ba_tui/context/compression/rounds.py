"""A conversation as rounds, a prompt and all after it, numbered as in the tool recall; the result of a compression."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ba_tui.core.messages import Block, Message, Text, ToolOutput
from ba_tui.core.values import frozen

Count: TypeAlias = Callable[[Sequence[Message]], int]
"""Counts the tokens of messages."""

ACKNOWLEDGED = "Noted."
CHANGED = "~"


@frozen
class Keep:
    """``rounds``: the last ones that stay unchanged, beside the current one. ``starts``: the number of the round that
    begins in a message, by its id (Transcript.rounds); without it rounds are counted here."""

    rounds: int = 5
    starts: Mapping[str, int] = field(default_factory=dict[str, int])


KEEP = Keep()


@frozen
class Compression:
    """``messages`` that replace all before; the running turn begins with message ``turn_start``. ``kept``: a line about
    what was kept; ``stubs`` names each cut observation."""

    messages: tuple[Message, ...]
    turn_start: int
    kept: str = ""
    stubs: tuple[str, ...] = ()


@frozen
class Round:
    """A round; ``messages[0]`` has the prompt."""

    number: int
    messages: tuple[Message, ...]


@frozen
class Rounds:
    """``earlier``: the notes of an earlier compression, with which the conversation begins."""

    earlier: tuple[Message, ...]
    rounds: tuple[Round, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.earlier, *(message for item in self.rounds for message in item.messages))


def rounds_of(messages: Sequence[Message], starts: Mapping[str, int] | None = None) -> Rounds:
    """Split ``messages`` at the user's prompts. Rounds that are not in ``starts`` get the next numbers."""
    known = starts or {}
    cut = 0
    while cut < len(messages) and messages[cut].origin == "compaction" and not messages[cut].calls:
        cut += 1
    found: list[tuple[int, list[Message]]] = []
    number = 0
    for message in messages[cut:]:
        # A prompt after an interrupted call is in one message with its results, which belong to the call.
        given = known.get(base_id(message)) if not _answers(message) else None
        if given is not None or not found or _is_prompt(message):
            number = given if given is not None else number + 1
            found.append((number, []))
        found[-1][1].append(message)
    return Rounds(tuple(messages[:cut]), tuple(Round(number, tuple(items)) for number, items in found))


def turn_start(messages: Sequence[Message], starts: Mapping[str, int] | None = None) -> int:
    """Return the position after the last prompt."""
    known = starts or {}
    for place in range(len(messages) - 1, -1, -1):
        if base_id(messages[place]) in known or _is_prompt(messages[place]):
            return place + 1
    return 0


def _is_prompt(message: Message) -> bool:
    if message.role != "user" or message.origin != "user" or message.hidden:
        return False
    return not _answers(message)


def _answers(message: Message) -> bool:
    return any(isinstance(block, ToolOutput) for block in message.blocks)


def opening(blocks: Sequence[Block]) -> tuple[Message, Message]:
    """Return ``blocks`` as the opening notes of a compressed conversation, with an answer, so that roles alternate."""
    answer = Message("assistant", (Text(ACKNOWLEDGED),), stop="end_turn", origin="compaction", hidden=True)
    return Message("user", tuple(blocks), origin="compaction", hidden=True), answer


def changed(message: Message, blocks: Iterable[Block]) -> Message:
    """Return ``message`` with other blocks and so with another id, from which the original id can be read."""
    blocks = tuple(blocks)
    mark = zlib.crc32(repr(blocks).encode("utf-8", "replace"))
    return replace(message, blocks=blocks, id=f"{base_id(message)}{CHANGED}{mark:08x}")


def base_id(message: Message) -> str:
    """Return the id of ``message`` before it was shortened."""
    return message.id.partition(CHANGED)[0]


def is_changed(message: Message) -> bool:
    """Return True for a message that a compression shortened."""
    return CHANGED in message.id


def is_compressed(message: Message) -> bool:
    """Return True for a message that a compression shortened or wrote."""
    return is_changed(message) or message.origin == "compaction"
