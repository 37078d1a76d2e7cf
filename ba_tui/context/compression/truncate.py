"""Compression by leaving out the oldest rounds. Costs next to nothing and keeps least: what must never be lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.context.compression.digest import WORDS_SHARE, chosen, notes_before, size_of_texts
from ba_tui.context.compression.facts import FactKind
from ba_tui.context.compression.fit import fit
from ba_tui.context.compression.ledger import StringUses
from ba_tui.context.compression.notes import read
from ba_tui.context.compression.rounds import KEEP, Compression, Count, Keep, Round, opening, rounds_of, turn_start
from ba_tui.core.messages import Message, Text

NOTES_SHARE, FACTS_SHARE = 6, 12
"""The notes on what must not be lost get this part of the room; facts in them, this."""
LEFT_OUT: frozenset[FactKind] = frozenset({"step", "seen"})


def truncate(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP) -> Compression:
    """``messages`` without the oldest rounds, in at most ``target`` tokens."""
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
        # What the person wrote comes before whole rounds.
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
    """What is left out, from which round on the rest stays, and its messages: the newest rounds in ``room`` tokens, or
    the last one without its oldest steps."""
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
