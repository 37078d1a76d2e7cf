"""The last resort: whatever the conversation is, the request fits afterwards, and no rule is broken.

It leaves out from the front, then cuts long texts. What is worth keeping is not its business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ba_tui.context.compression.notes import LeftOut, Notes, read, written
from ba_tui.context.compression.rounds import Count, Rounds, base_id, changed, opening, rounds_of
from ba_tui.context.compression.stubs import CutResult, replaced
from ba_tui.context.compression.user_text import texts_in, texts_of, written_in
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
    reminder,
    user,
)

GO_ON = "Go on."
CUT = "\n[… cut to fit; recall gives the whole …]\n"
WIDE = (500_000, 250_000, 120_000, 60_000, 30_000, 15_000, 8_000, 4_000)
"""Characters that each text is cut to, one after the other, until all messages fit."""
ROOMS = (2_000, 500, 120)
"""The same for the newest messages, where older ones have to go."""


def fit(
    messages: Sequence[Message], limit: int, count: Count, starts: Mapping[str, int] | None = None
) -> tuple[Message, ...]:
    """``messages``, or as much of them as ``limit`` tokens hold: at the very least the last words of the person.
    ``starts``: the numbers of rounds, as in rounds.Keep."""
    if count(messages) <= limit:
        return tuple(messages)
    parts = rounds_of(messages, starts)
    for room in WIDE:
        shorter = (*parts.earlier, *_all_cut(parts, room))
        if count(shorter) <= limit:
            return shorter
    before = read(parts.earlier)
    for room, notes in product(ROOMS, (before, Notes(left_out=before.left_out + LeftOut.of(before.texts)), None)):
        if found := _newest(parts, _all_cut(parts, room), notes, limit, count):
            return found
    return (_words(parts, limit, count),)


def _newest(
    parts: Rounds, messages: Sequence[Message], notes: Notes | None, limit: int, count: Count
) -> tuple[Message, ...] | None:
    """As many of the newest of ``messages`` as have room behind ``notes``, which say how much of the person's texts
    is left out."""
    left = limit
    for _ in range(2):
        found = next((part for part in _shorter(messages, left, count) if count(part) <= left), None)
        if found is None:
            return None
        before = _saying_what_is_gone(parts, found, notes) if notes else ()
        if count((*before, *found)) <= limit:
            return (*before, *found)
        left = limit - count(before)
    return None


def _saying_what_is_gone(parts: Rounds, found: Sequence[Message], notes: Notes) -> tuple[Message, ...]:
    there = set(map(base_id, found))
    gone = [text for item in parts.rounds for message, text in texts_in(item) if base_id(message) not in there]
    whole = replace(notes, left_out=notes.left_out + LeftOut.of(gone))
    return opening(written(whole)) if whole != Notes() else ()


def _all_cut(parts: Rounds, room: int) -> list[Message]:
    """The messages of all rounds with their texts cut to ``room``."""
    return [
        _cut(message, room, item.number, begins=place == 0)
        for item in parts.rounds
        for place, message in enumerate(item.messages)
    ]


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


def _cut(message: Message, room: int, number: int, *, begins: bool) -> Message:
    theirs = {
        place.index: CutResult(place.written.within(room).blocks, place.span)
        for place in written_in(message, number, begins=begins, calls={})
    }
    ours = {
        index: CutResult(() if _droppable(block, message) else (_smaller(block, room),))
        for index, block in enumerate(message.blocks)
    }
    blocks = replaced(message.blocks, ours | theirs)
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
            return reminder(f"A file ({kind}) was left out to make the request fit.").blocks[0]
        case _:
            return block


def _words(parts: Rounds, limit: int, count: Count) -> Message:
    """The person's last words alone, cut until they fit."""
    said = [(item, text) for item in parts.rounds for text in texts_of(item)]
    if not said:
        return _largest(user(GO_ON), len(GO_ON), lambda room: (Text(GO_ON[:room]),), limit, count)
    item, last = said[-1]
    message = _largest(item.messages[0], last.size, lambda room: last.within(room).blocks, limit, count)
    if count([message]) <= limit:
        return message
    # Not even a mark has room.
    plain = last.head.lstrip() or last.tail.lstrip()
    return _largest(item.messages[0], len(plain), lambda room: (Text(plain[:room]),), limit, count)


def _largest(
    message: Message, most: int, made: Callable[[int], tuple[Block, ...]], limit: int, count: Count
) -> Message:
    """``message`` with what ``made`` makes of the largest room, at most ``most``, in which it fits."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count([replace(message, blocks=made(middle))]) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return changed(message, made(low))


def ends(text: str, room: int) -> str:
    """Beginning and end of ``text``, with a mark between them where there is room for it."""
    if len(text) <= room:
        return text
    if room <= 2 * len(CUT):
        return text.strip()[: max(1, room)].strip() or "…"
    half = (room - len(CUT)) // 2
    return f"{text[:half]}{CUT}{text[len(text) - half :]}"
