"""A conversation cut in two for a summary, and whether one that was written meanwhile still fits. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ba_tui.context.compression.digest import WORDS_SHARE, size_of_texts
from ba_tui.context.compression.facts import Fact
from ba_tui.context.compression.notes import Notes, read
from ba_tui.context.compression.rounds import Count, Keep, Rounds, base_id, rounds_of
from ba_tui.context.compression.summarize import Summary
from ba_tui.context.compression.user_text import texts_of
from ba_tui.core.messages import Message
from ba_tui.core.values import frozen
from ba_tui.core.work import Todo


@frozen
class Split:
    """``source`` is what a summary stands for, ``rest`` stays: the last ``keep`` rounds and the running one."""

    source: tuple[Message, ...]
    rest: tuple[Message, ...]
    keep: int


@frozen
class SummaryDraft:
    """A summary that is being written of ``parts.source``. ``stands``: the ids of what is in its place until then."""

    task: asyncio.Task[Summary]
    stands: tuple[str, ...]
    parts: Split


def split(messages: Sequence[Message], keep: Keep, target: int, count: Count) -> Split | None:
    """As many of the last rounds stay as ``keep`` says; fewer when they and the person's texts of older rounds are
    more than ``target`` tokens, or all there is. None when there is only one round."""
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
    """Notes with ``summary`` and what no summary may lose: what the person wrote in ``source``, and the open todos."""
    notes = _texts(rounds_of(source, starts))
    last = max((text.round for text in notes.texts), default=1)
    left = [Fact("todo", last, -1, todo.content, 0.0) for todo in todos if not todo.done]
    return replace(notes, facts=(*notes.facts, *left), summary=summary.text)


def _texts(parts: Rounds) -> Notes:
    """What the person wrote, as far as the notes of an earlier compression and the rounds have it."""
    before = read(parts.earlier)
    facts = tuple(fact for fact in before.facts if fact.kind == "person")
    found = [text for item in parts.rounds for text in texts_of(item)]
    later = [replace(text, place=place) for place, text in enumerate(found)]
    return Notes((*before.texts, *later), facts, before.left_out)


def drafted(parts: Split, messages: Sequence[Message]) -> tuple[str, ...] | None:
    """The ids of those of ``messages`` that stand for ``parts.source``; None when the rest is not all there."""
    place = _begin(parts, messages)
    if place is None or list(map(base_id, messages[place:])) != list(map(base_id, parts.rest)):
        return None
    return tuple(message.id for message in messages[:place])


def placed(draft: SummaryDraft, messages: Sequence[Message]) -> Sequence[Message] | None:
    """What stays of ``messages`` behind the summary; None when they no longer open with what it was to replace."""
    place = _begin(draft.parts, messages)
    if place is None or tuple(message.id for message in messages[:place]) != draft.stands:
        return None
    return messages[place:]


def _begin(parts: Split, messages: Sequence[Message]) -> int | None:
    first = base_id(parts.rest[0]) if parts.rest else ""
    return next((place for place, message in enumerate(messages) if base_id(message) == first), None)
