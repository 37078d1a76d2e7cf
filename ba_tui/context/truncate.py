"""Compression by leaving out the oldest rounds. Costs nothing and keeps least."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.context.fit import fit
from ba_tui.context.rounds import KEEP, Compression, Count, Keep, opening, rounds_of, turn_start
from ba_tui.core.messages import Message


def truncate(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP) -> Compression:
    """``messages`` without the oldest rounds, in at most ``target`` tokens. The notes they open with stay."""
    if count(messages) <= target:
        return Compression(tuple(messages), turn_start(messages, keep.starts), "everything: it was small enough")
    parts = rounds_of(messages, keep.starts)
    rounds = parts.rounds
    first = 0
    while first < len(rounds) - 1:
        first += 1
        note = f"Rounds 1 to {rounds[first].number - 1} are not shown. recall(round=N) gives one whole."
        left = (*(parts.earlier or opening(note)), *(item for kept in rounds[first:] for item in kept.messages))
        if count(left) <= target:
            break
    else:
        left = tuple(messages)
    fitted = fit(left, target, count)
    return Compression(fitted, turn_start(fitted, keep.starts), f"the last {len(rounds) - first} rounds")
