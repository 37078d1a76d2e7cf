"""The last resort: whatever the conversation is, the request fits afterwards, and no rule is broken.

It leaves out from the front, then cuts long texts. What is worth keeping is not its business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ba_tui.context.rounds import Count, changed, rounds_of
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    user,
)

CUT = "\n[… cut to fit; recall gives the whole …]\n"
ROOMS = (8_000, 2_000, 500, 120)
"""Characters that each text of the last messages is cut to, one after the other, until they fit."""
WIDE = (500_000, 250_000, 120_000, 60_000, 30_000, 15_000, *ROOMS)
"""The same, as long as nothing has to go for it: one enormous message keeps what there is room for."""


def fit(messages: Sequence[Message], limit: int, count: Count) -> tuple[Message, ...]:
    """``messages``, or as much of them as ``limit`` tokens hold: at the very least the last words of the person."""
    if count(messages) <= limit:
        return tuple(messages)
    notes = rounds_of(messages).earlier
    kept = list(messages[len(notes) :])
    for room in (None, *ROOMS):
        if room == ROOMS[0] and (found := _cut_only(notes, kept, limit, count)):
            return found
        shorter = kept if room is None else [_cut(message, room) for message in kept]
        for opening in (notes, tuple(_cut(note, room) for note in notes) if room else ()):
            left = limit - count(opening)
            if found := next((part for part in _shorter(shorter, left, count) if count(part) <= left), None):
                return (*opening, *found)
    return (_words(kept or list(messages), limit, count),)


def _cut_only(
    notes: Sequence[Message], kept: Sequence[Message], limit: int, count: Count
) -> tuple[Message, ...] | None:
    """All of ``kept``, with no more cut from its long texts than must be."""
    for room in WIDE:
        shorter = (*notes, *(_cut(message, room) for message in kept))
        if count(shorter) <= limit:
            return shorter
    return None


def _shorter(messages: Sequence[Message], limit: int, count: Count) -> Iterator[Sequence[Message]]:
    """``messages`` without the oldest rounds, as many as must go by their sizes; then the last round without its
    oldest steps."""
    sizes = [count([message]) for message in messages]
    rest = sum(sizes)
    starts = _starts(messages)
    for start, later in zip(starts, [*starts[1:], len(messages)], strict=True):
        if rest <= limit or start == starts[-1]:
            break
        rest -= sum(sizes[start:later])
    else:
        return
    if rest <= limit:
        yield messages[start:]
        return
    first = starts[-1]
    place = first + 1
    while place + 2 < len(messages) and rest > limit:
        rest -= sizes[place] + sizes[place + 1]
        place += 2
    yield [messages[first], *messages[place:]]


def _starts(messages: Sequence[Message]) -> list[int]:
    """Where the conversation may begin: at words of the user that answer no call."""
    found = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and not any(isinstance(block, ToolOutput) for block in message.blocks)
    ]
    return found or [0]


def _cut(message: Message, room: int) -> Message:
    blocks = tuple(_smaller(block, room) for block in message.blocks if not _droppable(block, message))
    return changed(message, blocks) if blocks != message.blocks else message


def _droppable(block: Block, message: Message) -> bool:
    """Thinking is never cut: it goes as a whole, where something else is left to send."""
    unsaid = (Thinking, RedactedThinking, Opaque)
    return isinstance(block, unsaid) and any(not isinstance(other, unsaid) for other in message.blocks)


def _smaller(block: Block, room: int) -> Block:
    match block:
        case Text(text=text) if len(text) > room:
            return Text(ends(text, room))
        case ToolOutput(content=text) if len(text) > room or block.attachments:
            return replace(block, content=ends(text, room), attachments=())
        case ToolUse(input=given, malformed=malformed) if len(json.dumps(given, default=str)) > room:
            smaller = {
                name: ends(value, room // 2) if isinstance(value, str) else value for name, value in given.items()
            }
            if len(json.dumps(smaller, default=str)) > 2 * room:
                smaller = {"cut": ends(json.dumps(given, ensure_ascii=False, default=str), room)}
            return replace(block, input=smaller, malformed=ends(malformed, room) if malformed else malformed)
        case ToolUse(malformed=str() as malformed) if len(malformed) > room:
            return replace(block, malformed=ends(malformed, room))
        case Image(media_type=kind) | Document(media_type=kind):
            return Text(f"[{kind}, left out to fit]")
        case _:
            return block


def _words(messages: Sequence[Message], limit: int, count: Count) -> Message:
    """The person's last words alone, cut until they fit."""
    said = [message for message in messages if message.role == "user" and message.text.strip()]
    last = next((message for message in reversed(said) if message.origin == "user"), said[-1] if said else None)
    words = last.text if last else "Go on."

    def made(room: int) -> Message:
        blocks = (Text(ends(words, room)),)
        return changed(last, blocks) if last else replace(user("Go on."), blocks=blocks)

    return made(_largest(len(words), lambda room: count([made(room)]) <= limit))


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def ends(text: str, room: int) -> str:
    """Beginning and end of ``text``, with a mark between them where there is room for it."""
    if len(text) <= room:
        return text
    if room <= 2 * len(CUT):
        return text.strip()[: max(1, room)].strip() or "…"
    half = (room - len(CUT)) // 2
    return f"{text[:half]}{CUT}{text[len(text) - half :]}"
