"""Compression by leaving out the oldest rounds. Costs next to nothing and keeps least: what must never be lost."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.context.digest import facts_before, notes
from ba_tui.context.facts import Kind
from ba_tui.context.fit import fit
from ba_tui.context.rounds import KEEP, Compression, Count, Keep, opening, rounds_of, turn_start
from ba_tui.core.messages import Message

NOTES_SHARE = 6
"""The notes on what must not be lost get this part of the room."""
LEFT_OUT: frozenset[Kind] = frozenset({"step", "seen"})


def truncate(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP) -> Compression:
    """``messages`` without the oldest rounds, in at most ``target`` tokens."""
    if count(messages) <= target:
        return Compression(tuple(messages), turn_start(messages, keep.starts), "everything: it was small enough")
    parts = rounds_of(messages, keep.starts)
    rounds = parts.rounds
    sizes = [count(item.messages) for item in rounds]
    room = target // NOTES_SHARE
    first, rest = 0, sum(sizes)
    while first < len(rounds) - 1 and rest > target - room:
        rest -= sizes[first]
        first += 1
    kept = tuple(message for item in rounds[first:] for message in item.messages)
    facts = [fact for fact in facts_before(parts.earlier, rounds[:first], kept) if fact.kind not in LEFT_OUT]
    said = notes(facts, room, count)
    if first and not said:
        said = opening(f"Rounds 1 to {rounds[first - 1].number} are not shown. recall(round=N) gives one whole.")
    fitted = fit((*said, *kept), target, count)
    last = f"the last {len(rounds) - first} rounds" if len(rounds) - first > 1 else "the current round"
    return Compression(fitted, turn_start(fitted, keep.starts), last)
