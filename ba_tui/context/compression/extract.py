"""Compression by rules: old bulky observations become stubs, old rounds become notes. No model is asked.

What the notes hold is said in facts.py and digest.py, what becomes of the last rounds in tail.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ba_tui.context.compression.digest import WORDS_SHARE, chosen, notes_before, size_of_texts
from ba_tui.context.compression.fit import fit
from ba_tui.context.compression.ledger import StringUses
from ba_tui.context.compression.notes import Notes, read
from ba_tui.context.compression.rounds import KEEP, Compression, Count, Keep, Round, rounds_of, turn_start
from ba_tui.context.compression.stubs import CutResult, blocks_of, known_of, observations, pictures, stub, with_stubs
from ba_tui.context.compression.tail import RecentTail, TailShortening
from ba_tui.core.messages import Message

ROOMY = 2_000
"""Tokens up to which the last steps come before what the person wrote in earlier rounds: nobody can go on without."""
REFERENCE = 120
"""Tokens of notes that say no more than what is missing."""
SPARE = 0.1
"""The part of the room that may stay empty."""
NOTES_SHARE, FACTS_SHARE = 4, 10
"""The notes are given at least this part of the room before the last rounds stay as they are; facts in them, this."""


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
    uses: StringUses = field(default_factory=lambda: StringUses(()))

    def run(self, total: int) -> Compression:
        parts = rounds_of(self.messages, self.keep.starts)
        split = max(0, len(parts.rounds) - 1 - self.keep.rounds)
        old, tail = list(parts.rounds[:split]), list(parts.rounds[split:])
        if (stubbed := self._old_stubbed(old, len(parts.earlier), total)) is not None:
            return stubbed
        self.uses = StringUses(self.messages, read(parts.earlier).strings)
        words = int(self.target * WORDS_SHARE)
        least = min(self.target // NOTES_SHARE, self.count(self.messages[: len(self.messages) - _length(tail)]))
        shortening = TailShortening(tuple(tail), self.target, self.target / total, self.target - least, self.count)
        kept = shortening.run()
        notes = self._notes(parts.earlier, old, kept)
        needed = min(words, size_of_texts(notes, self.count)) + self.target // FACTS_SHARE
        if notes.texts and self.target > ROOMY and self.count(kept.messages) + needed > self.target:
            # What the person wrote comes before results, and before the oldest of steps that can't all stay anyway.
            kept = shortening.lighter(kept, self.target - needed)
            notes = self._notes(parts.earlier, old, kept)
        opening = chosen(notes, self.target - self.count(kept.messages), words, self.count)
        if not opening and (notes.texts or notes.left_out.texts):
            # That something is missing is said at the least.
            kept = replace(shortening, room=max(self.target // 2, self.target - REFERENCE)).run()
            notes = self._notes(parts.earlier, old, kept)
            opening = chosen(notes, self.target - self.count(kept.messages), words, self.count)
        spare = self.target - self.count(kept.messages) - self.count(opening)
        if opening and kept.moved and spare > self.target * SPARE:
            # There is less to note than room for it: more of the last steps stay.
            kept = replace(shortening, room=self.count(kept.messages) + spare, share=1.0).run()
            notes = self._notes(parts.earlier, old, kept)
            opening = chosen(notes, self.target - self.count(kept.messages), words, self.count)
        kept = shortening.widened(kept, self.target - self.count(opening))
        result = (*opening, *kept.messages)
        if self.count(result) > self.target:
            result = fit(result, self.target, self.count, self.keep.starts)
        return self._done(result, kept.cut, len(kept.rounds), noted=bool(opening))

    def _notes(self, earlier: Sequence[Message], old: Sequence[Round], kept: RecentTail) -> Notes:
        notes = notes_before(earlier, [*old, *kept.moved], kept.messages, kept.lost, self.focus)
        return replace(notes, strings=self.uses.ranked(kept.messages))

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
        lines = known_of(found)
        for part in (share * 0.9, share * 0.6, share * 0.2):
            cut = pictures(old, offset)
            for item in found:
                cut[item.message, item.block] = CutResult(blocks_of(stub(item, int(item.size * part), lines)))
            result = with_stubs(self.messages, cut)
            if self.count(result) <= self.target:
                titles = [item.title for item in found]
                return self._done(result, titles, len(self._all(result)), noted=False)
        return None

    def _all(self, messages: Sequence[Message]) -> Sequence[Round]:
        return rounds_of(messages, self.keep.starts).rounds


def _length(rounds: Sequence[Round]) -> int:
    return sum(len(item.messages) for item in rounds)
