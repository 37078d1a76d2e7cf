"""The strategies of compression in one module, which the first compression loads; starts don't need it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ba_tui.context.compression.extract import extract
from ba_tui.context.compression.facts import Fact, FactKind
from ba_tui.context.compression.ledger import StringUses
from ba_tui.context.compression.notes import WORDS_SHARE, Notes, chosen, notes_before, read, size_of_texts, within
from ba_tui.context.compression.rounds import (
    KEEP,
    Compression,
    Count,
    Keep,
    Round,
    Rounds,
    base_id,
    opening,
    rounds_of,
    turn_start,
)
from ba_tui.context.compression.stubs import fit
from ba_tui.context.compression.summarize import Summary
from ba_tui.context.compression.user_text import texts_of
from ba_tui.core.events import Compressed, Event
from ba_tui.core.messages import Block, Message, RedactedThinking, Text, Thinking, ToolOutput, ToolUse
from ba_tui.core.results import Todo
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen

# A conversation is split for a summary; a summary that was written meanwhile must still fit. Pure.


@frozen
class Split:
    """``source`` is summarized, ``rest`` stays: the last ``keep`` rounds and the running one."""

    source: tuple[Message, ...]
    rest: tuple[Message, ...]
    keep: int


@frozen
class SummaryDraft:
    """A summary of ``parts.source`` being written. ``replaced``: ids of the messages in its place until then."""

    task: asyncio.Task[Summary]
    replaced: tuple[str, ...]
    parts: Split


def split(messages: Sequence[Message], keep: Keep, target: int, count: Count) -> Split | None:
    """Split the conversation: as many of the last rounds stay as ``keep`` says; fewer when they and the older user
    texts have more than ``target`` tokens, or when there are no others. Returns None for a single round."""
    found = rounds_of(messages, keep.starts)
    rounds = found.rounds
    best: Split | None = None
    for kept in range(min(keep.rounds, len(rounds) - 2), -1, -1):
        head, tail = rounds[: -kept - 1], rounds[-kept - 1 :]
        source = (*found.earlier, *(message for item in head for message in item.messages))
        rest = tuple(message for item in tail for message in item.messages)
        here = Split(source, rest, kept)
        words = size_of_texts(_texts(Rounds(found.earlier, head)), count)
        if count(rest) + min(words, int(target * WORDS_SHARE)) <= target:
            return here
        best = best or here
    return best


def with_summary(
    summary: Summary, todos: Sequence[Todo], source: Sequence[Message], starts: Mapping[str, int]
) -> Notes:
    """Return notes with ``summary`` and what none may lose: the user's texts in ``source``, and the open todos."""
    notes = _texts(rounds_of(source, starts))
    last = max((text.round for text in notes.texts), default=1)
    left = [Fact("todo", last, -1, todo.content, 0.0) for todo in todos if not todo.done]
    return replace(notes, facts=(*notes.facts, *left), summary=summary.text)


def _texts(parts: Rounds) -> Notes:
    """Return the user's texts in the notes of an earlier compression and in the rounds."""
    before = read(parts.earlier)
    facts = tuple(fact for fact in before.facts if fact.kind == "person")
    found = [text for item in parts.rounds for text in texts_of(item)]
    later = [replace(text, place=place) for place, text in enumerate(found)]
    return Notes((*before.texts, *later), facts, before.left_out)


def drafted(parts: Split, messages: Sequence[Message]) -> tuple[str, ...] | None:
    """Return the ids of those of ``messages`` that replace ``parts.source``; None when the rest is incomplete."""
    place = _begin(parts, messages)
    if place is None or list(map(base_id, messages[place:])) != list(map(base_id, parts.rest)):
        return None
    return tuple(message.id for message in messages[:place])


def placed(draft: SummaryDraft, messages: Sequence[Message]) -> Sequence[Message] | None:
    """Return the part of ``messages`` after the summary; None when they no longer begin with what it replaces."""
    place = _begin(draft.parts, messages)
    if place is None or tuple(message.id for message in messages[:place]) != draft.replaced:
        return None
    return messages[place:]


def _begin(parts: Split, messages: Sequence[Message]) -> int | None:
    first = base_id(parts.rest[0]) if parts.rest else ""
    return next((place for place, message in enumerate(messages) if base_id(message) == first), None)


NOTES_SHARE, FACTS_SHARE = 6, 12
"""Notes of truncation get one part in this many of the room; facts in them one in this many."""
LEFT_OUT: frozenset[FactKind] = frozenset({"step", "seen"})


def truncate(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP) -> Compression:
    """Return ``messages`` without the oldest rounds, in at most ``target`` tokens."""
    if count(messages) <= target:
        return Compression(tuple(messages), turn_start(messages, keep.starts), "everything: it was small enough")
    parts = rounds_of(messages, keep.starts)
    uses = StringUses(messages, read(parts.earlier).strings)
    words, room = int(target * WORDS_SHARE), target // NOTES_SHARE
    while True:
        left_out, first, kept = _newest(parts.rounds, target - room, count)
        notes = notes_before(parts.earlier, left_out, kept)
        notes = replace(notes, facts=tuple(fact for fact in notes.facts if fact.kind not in LEFT_OUT))
        notes = replace(notes, strings=uses.ranked(kept))
        needed = min(words, size_of_texts(notes, count)) + target // FACTS_SHARE
        if room >= needed or not notes.texts:
            break
        # User texts have priority over whole rounds.
        room = needed
    said = chosen(notes, max(room, target - count(kept)), words, count)
    if left_out and not said:
        number = left_out[-1].number
        said = opening((Text(f"What came before, up to round {number}, is not shown. recall(round=N) gives a round."),))
    fitted = fit((*said, *kept), target, count, keep.starts)
    rounds = len(parts.rounds) - first
    last = f"the last {rounds} rounds" if rounds > 1 else "the current round"
    return Compression(fitted, turn_start(fitted, keep.starts), last)


def _newest(rounds: Sequence[Round], room: int, count: Count) -> tuple[list[Round], int, list[Message]]:
    """Return the removed part, the number of the first round that stays, and its messages: the newest rounds in
    ``room`` tokens, or the last one without its oldest steps."""
    sizes = [count(item.messages) for item in rounds]
    first, rest = 0, sum(sizes)
    while first < len(rounds) - 1 and rest > room:
        rest -= sizes[first]
        first += 1
    left_out, last = list(rounds[:first]), rounds[-1]
    if rest <= room:
        return left_out, first, [message for item in rounds[first:] for message in item.messages]
    step = 1
    while step + 2 < len(last.messages) and rest > room:
        rest -= count(last.messages[step : step + 2])
        step += 2
    if step > 1:
        left_out.append(Round(last.number, last.messages[1:step]))
    return left_out, first, [last.messages[0], *last.messages[step:]]


def faults(messages: Sequence[Message], source: Sequence[Message] | None = None) -> list[str]:
    """Return every broken rule, with its place. ``source``: where reasoning must be found byte for byte."""
    return list(_faults(messages, source))


def _faults(messages: Sequence[Message], source: Sequence[Message] | None) -> Iterator[str]:
    if not messages:
        yield "there is no message"
        return
    if messages[0].role != "user":
        yield "message 0 is not from the user"
    for place, message in enumerate(messages):
        before = messages[place - 1] if place else None
        if before and before.role == message.role:
            yield f"messages {place - 1} and {place} are both from the {message.role}"
        yield from _pairing(place, message, before)
        if not message.blocks:
            yield f"message {place} is empty"
        for index, block in enumerate(message.blocks):
            if rule := _misplaced(message, block):
                yield f"message {place}, block {index}: {rule}"
    if messages[-1].calls:
        yield f"message {len(messages) - 1} has calls without results"
    if source is not None:
        thought = set(_thinking(source))
        if any(block not in thought for block in _thinking(messages)):
            yield "thinking was changed"


def _pairing(place: int, message: Message, before: Message | None) -> Iterator[str]:
    asked = Counter(call.id for call in before.calls) if before else Counter[str]()
    given = Counter(block.tool_use_id for block in message.blocks if isinstance(block, ToolOutput))
    if asked != given:
        yield f"message {place} does not answer exactly the calls before it"


def _misplaced(message: Message, block: Block) -> str:
    match block:
        case Text(text=text) if not text.strip():
            return "the text is empty"
        case ToolUse() | Thinking() | RedactedThinking() if message.role == "user":
            return f"{block.type} from the user"
        case ToolOutput() if message.role == "assistant":
            return "a tool result from the assistant"
        case _:
            return ""


def _thinking(messages: Sequence[Message]) -> Iterator[tuple[str, str | None]]:
    for message in messages:
        for block in message.blocks:
            match block:
                case Thinking(thinking=text, signature=signature):
                    yield text, signature
                case RedactedThinking(data=data):
                    yield data, None
                case _:
                    pass


def uncompressed(events: Sequence[Event], agent: str = "main") -> Transcript | None:
    """Return the messages of ``events`` without the last effective compression; None without one."""
    standing: list[int] = []
    void: set[int] = set()
    for place, event in enumerate(events):
        if not isinstance(event, Compressed) or event.agent != agent:
            continue
        if event.strategy == "undo" and standing:
            void |= {standing.pop(), place}
        else:
            standing.append(place)
    if not standing:
        return None
    void.add(standing[-1])
    return Transcript(agent, [event for place, event in enumerate(events) if place not in void])


def undone(events: Sequence[Event], now: Transcript) -> tuple[tuple[Message, ...], int] | None:
    """Return the messages without the last compression, and where the running turn begins; None if nothing changes."""
    earlier = uncompressed(events, now.agent)
    if earlier is None or [message.id for message in earlier.messages] == [message.id for message in now.messages]:
        return None
    return tuple(earlier.messages), _turn_start(earlier)


def _turn_start(transcript: Transcript) -> int:
    messages = transcript.messages
    begins = (place + 1 for place in range(len(messages) - 1, -1, -1) if messages[place].id in transcript.rounds)
    return next(begins, 0)


__all__ = [
    "SummaryDraft",
    "drafted",
    "extract",
    "faults",
    "fit",
    "placed",
    "split",
    "truncate",
    "undone",
    "with_summary",
    "within",
]
