"""Compression by rules: old bulky observations become stubs, old rounds become notes. No model is asked.

What the notes hold is said in facts.py and digest.py, what becomes of the last rounds in tail.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ba_tui.context.digest import facts_before, notes
from ba_tui.context.fit import fit
from ba_tui.context.rounds import KEEP, Compression, Count, Keep, Round, rounds_of, turn_start
from ba_tui.context.stubs import observations, pictures, shapes_of, stub, with_stubs
from ba_tui.context.tail import Shortening
from ba_tui.core.messages import Block, Message

NOTES_SHARE = 4
"""The notes are given at least this part of the room before the last rounds stay as they are."""


def extract(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP, focus: str = "") -> Compression:
    """``messages`` in at most ``target`` tokens. What ``focus`` names counts more."""
    total = count(messages)
    if total <= target:
        return Compression(tuple(messages), turn_start(messages, keep.starts), "everything: it was small enough")
    return _Extraction(tuple(messages), target, count, keep, focus).run(total)


@dataclass(slots=True)
class _Extraction:
    messages: tuple[Message, ...]
    target: int
    count: Count
    keep: Keep
    focus: str

    def run(self, total: int) -> Compression:
        parts = rounds_of(self.messages, self.keep.starts)
        split = max(0, len(parts.rounds) - 1 - self.keep.rounds)
        old, tail = list(parts.rounds[:split]), list(parts.rounds[split:])
        if (stubbed := self._old_stubbed(old, len(parts.earlier), total)) is not None:
            return stubbed
        least = min(self.target // NOTES_SHARE, self.count(self.messages[: len(self.messages) - _length(tail)]))
        shortening = Shortening(tuple(tail), self.target, self.target / total, self.target - least, self.count)
        kept = shortening.run()
        facts = facts_before(parts.earlier, [*old, *kept.moved], kept.messages, self.focus)
        opening = notes(facts, self.target - self.count(kept.messages), self.count)
        kept = shortening.widened(kept, self.target - self.count(opening))
        result = (*opening, *kept.messages)
        if self.count(result) > self.target:
            result = fit(result, self.target, self.count)
        return self._done(result, kept.cut, len(kept.rounds), noted=bool(opening))

    def _done(self, result: Sequence[Message], cut: Sequence[str], rounds: int, *, noted: bool) -> Compression:
        said = [f"the last {rounds} rounds" if rounds > 1 else "the current round"]
        if cut:
            said.append(f"{len(cut)} long results cut to their main lines")
        if noted:
            said.append("notes on what was before")
        return Compression(tuple(result), turn_start(result, self.keep.starts), ", ".join(said), tuple(cut))

    def _old_stubbed(self, old: Sequence[Round], offset: int, total: int) -> Compression | None:
        """The first step: only the bulky observations of old rounds are cut; None when that is not enough."""
        found = observations(old, offset)
        bulk = self.count([item.alone for item in found]) if found else 0
        share = 1 - (total - self.target) / max(1, bulk)
        if share < 0.02:
            return None
        shapes = shapes_of(found)
        for part in (share * 0.9, share * 0.6, share * 0.2):
            cut: dict[tuple[int, int], Block] = dict(pictures(old, offset))
            for item in found:
                cut[item.message, item.block] = stub(item, int(item.size * part), shapes)
            result = with_stubs(self.messages, cut)
            if self.count(result) <= self.target:
                titles = [item.title for item in found]
                return self._done(result, titles, len(self._all(result)), noted=False)
        return None

    def _all(self, messages: Sequence[Message]) -> Sequence[Round]:
        return rounds_of(messages, self.keep.starts).rounds


def _length(rounds: Sequence[Round]) -> int:
    return sum(len(item.messages) for item in rounds)
