"""A conversation cut in two for a summary, and whether one that was written meanwhile still fits. Pure."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from ba_tui.context.rounds import Count, Keep, base_id, rounds_of
from ba_tui.context.summarize import Summary
from ba_tui.core.messages import Message, Text
from ba_tui.core.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.core.work import Todo

GOAL, TODOS = "## The first request", "## Open todos"
LONGEST = 2_000
"""Characters of the first request, half from either end."""
_GOAL = regex(rf"^{GOAL}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@frozen
class Split:
    """``source`` is what a summary stands for, ``rest`` stays: the last ``keep`` rounds and the running one."""

    source: tuple[Message, ...]
    rest: tuple[Message, ...]
    keep: int


@frozen
class Draft:
    """A summary that is being written of ``parts.source``. ``stands``: the ids of what is in its place until then."""

    task: asyncio.Task[Summary]
    stands: tuple[str, ...]
    parts: Split


def split(messages: Sequence[Message], keep: Keep, room: int, count: Count) -> Split | None:
    """As many of the last rounds stay as ``keep`` says; fewer when they alone are more than ``room`` tokens or all
    there is. None when there is only one round."""
    found = rounds_of(messages, keep.starts)
    rounds = found.rounds
    best: Split | None = None
    for kept in range(min(keep.rounds, len(rounds) - 2), -1, -1):
        head, tail = rounds[: -kept - 1], rounds[-kept - 1 :]
        source = (*found.earlier, *(message for item in head for message in item.messages))
        rest = tuple(message for item in tail for message in item.messages)
        here = Split(source, rest, kept)
        if count(rest) <= room:
            return here
        best = best or here
    return best


def notes(summary: Summary, source: Sequence[Message], todos: Sequence[Todo]) -> str:
    """``summary`` behind what no summary may lose: the first request word for word, and the open todos."""
    goal = _first_request(source)
    left = [f"- {todo.content}" for todo in todos if todo.status != "completed"]
    parts = [f"{GOAL}\n{goal}" if goal else "", "\n".join([TODOS, *left]) if left else "", summary.text]
    return "\n\n".join(part for part in parts if part)


def _first_request(source: Sequence[Message]) -> str:
    for message in source:
        if message.role != "user":
            continue
        if message.origin == "compaction" and (found := _GOAL.search(message.text)):
            return found[1].strip()
        words = next((block.text for block in message.blocks if isinstance(block, Text)), "")
        if message.origin == "user" and not message.hidden and words:
            return words if len(words) <= LONGEST else f"{words[: LONGEST // 2]} … {words[-LONGEST // 2 :]}"
    return ""


def drafted(parts: Split, messages: Sequence[Message]) -> tuple[str, ...] | None:
    """The ids of those of ``messages`` that stand for ``parts.source``; None when the rest is not all there."""
    place = _begin(parts, messages)
    return None if place is None else tuple(message.id for message in messages[:place])


def placed(draft: Draft, messages: Sequence[Message]) -> Sequence[Message] | None:
    """What stays of ``messages`` behind the summary; None when they no longer open with what it was to replace."""
    place = _begin(draft.parts, messages)
    if place is None or tuple(message.id for message in messages[:place]) != draft.stands:
        return None
    return messages[place:]


def _begin(parts: Split, messages: Sequence[Message]) -> int | None:
    first = base_id(parts.rest[0]) if parts.rest else ""
    return next((place for place, message in enumerate(messages) if base_id(message) == first), None)
