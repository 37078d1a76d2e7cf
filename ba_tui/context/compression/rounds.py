"""A conversation as rounds, and what a compression gives back. What is shortened, and how, is said elsewhere.

A round is what the person said and all that followed, numbered as the tool recall numbers it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ba_tui.core.messages import Block, Message, Text, ToolOutput
from ba_tui.core.values import frozen

Count: TypeAlias = Callable[[Sequence[Message]], int]
"""Tokens of messages."""

ACKNOWLEDGED = "Noted."
CHANGED = "~"


@frozen
class Keep:
    """``rounds``: the last ones that stay word for word, beside the current one. ``starts``: by the id of the message
    that a round begins in, its number as recall counts (Transcript.rounds); without it rounds are counted here."""

    rounds: int = 5
    starts: Mapping[str, int] = field(default_factory=dict[str, int])


KEEP = Keep()


@frozen
class Compression:
    """``messages`` for all that was before; the running turn begins with message ``turn_start``.
    ``kept`` says in a line what was kept, ``stubs`` names each observation that was cut."""

    messages: tuple[Message, ...]
    turn_start: int
    kept: str = ""
    stubs: tuple[str, ...] = ()


@frozen
class Round:
    """``messages[0]`` holds the prompt."""

    number: int
    messages: tuple[Message, ...]


@frozen
class Rounds:
    """``earlier``: the notes that a compression before this one left, with which the conversation opens."""

    earlier: tuple[Message, ...]
    rounds: tuple[Round, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.earlier, *(message for item in self.rounds for message in item.messages))


def rounds_of(messages: Sequence[Message], starts: Mapping[str, int] | None = None) -> Rounds:
    """``messages`` cut where the person begins to speak. Rounds not in ``starts`` count on."""
    known = starts or {}
    cut = 0
    while cut < len(messages) and messages[cut].origin == "compaction" and not messages[cut].calls:
        cut += 1
    found: list[tuple[int, list[Message]]] = []
    number = 0
    for message in messages[cut:]:
        # A prompt after an interrupted call stands in one message with its results, which belong to the call.
        given = known.get(base_id(message)) if not _answers(message) else None
        if given is not None or not found or _is_prompt(message):
            number = given if given is not None else number + 1
            found.append((number, []))
        found[-1][1].append(message)
    return Rounds(tuple(messages[:cut]), tuple(Round(number, tuple(items)) for number, items in found))


def turn_start(messages: Sequence[Message], starts: Mapping[str, int] | None = None) -> int:
    """The place after the last prompt."""
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
    """``blocks`` as the notes that a compressed conversation opens with, and an answer, so that roles alternate."""
    answer = Message("assistant", (Text(ACKNOWLEDGED),), stop="end_turn", origin="compaction", hidden=True)
    return Message("user", tuple(blocks), origin="compaction", hidden=True), answer


def changed(message: Message, blocks: Iterable[Block]) -> Message:
    """``message`` with other blocks and so with another id, which still tells whose it was."""
    blocks = tuple(blocks)
    mark = zlib.crc32(repr(blocks).encode("utf-8", "replace"))
    return replace(message, blocks=blocks, id=f"{base_id(message)}{CHANGED}{mark:08x}")


def base_id(message: Message) -> str:
    """The id that ``message`` had before it was shortened."""
    return message.id.partition(CHANGED)[0]


def is_changed(message: Message) -> bool:
    """True for a message that a compression shortened."""
    return CHANGED in message.id


def is_compressed(message: Message) -> bool:
    """True for a message that a compression shortened or wrote."""
    return is_changed(message) or message.origin == "compaction"
