"""Compression by rules: old bulky observations become stubs, old rounds become notes. No model is asked.

What the notes hold is said in facts.py and digest.py, how an observation is cut in stubs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ba_tui.context.digest import facts_before, notes
from ba_tui.context.fit import fit
from ba_tui.context.rounds import KEEP, Compression, Count, Keep, Round, rounds_of, turn_start
from ba_tui.context.stubs import Observation, observations, pictures, shapes_of, stub, with_stubs
from ba_tui.core.messages import Block, Message

NOTES_SHARE = 4
"""The notes are given at least this part of the room before the last rounds stay word for word."""
OVERFLOWING = 2
"""The part of the room that the last rounds get when they have to be cut as well."""
LARGEST_STUB = 0.3
"""The share of an observation in the last rounds that its stub keeps at most."""


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
        moved: list[Round] = []
        whole, room, half = tail, self.target - least, self.target // OVERFLOWING
        spared = self.count(_flat(tail[-1:])) <= half
        tail, cut = self._tail_stubbed(whole, room, spared=spared)
        if self.count(_flat(tail)) > room:
            # Cutting results is not enough. Rounds become notes first, so that the current one may stay whole.
            moved, current = self._rounds_folded(whole, half)
            if moved or spared:
                tail, cut = self._tail_stubbed(current, half if moved else room)
            if self.count(_flat(tail)) > room:
                steps, tail = self._steps_folded(tail, half)
                moved += steps
            if self.count(_flat(tail)) > room:
                # One enormous message: it is cut, so that the notes keep their part.
                tail = [Round(tail[-1].number, fit(_flat(tail), room, self.count))]
        size = self.count(_flat(tail))
        facts = facts_before(parts.earlier, [*old, *moved], _flat(tail), self.focus)
        opening = notes(facts, self.target - size, self.count)
        result = (*opening, *_flat(tail))
        if self.count(result) > self.target:
            result = fit(result, self.target, self.count)
        return self._done(result, cut, len(tail), noted=bool(opening))

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
        bulk = self.count([_only(item) for item in found]) if found else 0
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

    def _tail_stubbed(self, tail: list[Round], room: int, *, spared: bool = False) -> tuple[list[Round], list[str]]:
        """The bulkiest and oldest observations of the last rounds cut, one by one, until the rest has room."""
        flat = _flat(tail)
        over = self.count(flat) - room
        if over <= 0:
            return tail, []
        found = [item for item in observations(tail) if item.message < len(flat) - 1]
        # The current round is what the model works on: it is cut last.
        current = len(flat) - len(tail[-1].messages)
        found = [item for item in found if not spared or item.message < current]
        found.sort(key=lambda item: (item.message >= current, -item.size * (1.5 - item.message / len(flat))))
        if spared and self.count([_only(item) for item in found]) < over:
            return tail, []
        shapes = shapes_of(found)
        cut: dict[tuple[int, int], Block] = {}
        titles: list[str] = []
        for item in found:
            if over <= 0:
                break
            smaller = stub(item, min(1_500, int(item.size * LARGEST_STUB)), shapes)
            over -= self.count([_only(item)]) - self.count([_only(replace(item, output=smaller))])
            cut[item.message, item.block] = smaller
            titles.append(item.title)
        return _again(tail, with_stubs(flat, cut)), titles

    def _rounds_folded(self, tail: list[Round], room: int) -> tuple[list[Round], list[Round]]:
        """The last rounds that must become notes as well, and those that stay: at least the current one."""
        sizes = [self.count(item.messages) for item in tail]
        first, left = 0, sum(sizes)
        while first < len(tail) - 1 and left > room:
            left -= sizes[first]
            first += 1
        return tail[:first], tail[first:]

    def _steps_folded(self, tail: list[Round], room: int) -> tuple[list[Round], list[Round]]:
        """The first steps of the current round that must become notes as well, and what stays of it."""
        if len(tail) != 1:
            return [], tail
        moved: list[Round] = []
        current = tail[0].messages
        steps = [self.count([message]) for message in current]
        left, first = sum(steps), 1
        # Pairs of an answer and its results; the last pair stays.
        while left > room and first + 2 < len(current):
            left -= steps[first] + steps[first + 1]
            first += 2
        if first > 1:
            moved.append(Round(tail[0].number, current[1:first]))
            tail = [Round(tail[0].number, (current[0], *current[first:]))]
        return moved, tail


def _only(item: Observation) -> Message:
    return Message("user", (item.output,), origin="tool", id="")


def _flat(rounds: Sequence[Round]) -> list[Message]:
    return [message for item in rounds for message in item.messages]


def _length(rounds: Sequence[Round]) -> int:
    return sum(len(item.messages) for item in rounds)


def _again(rounds: Sequence[Round], messages: Sequence[Message]) -> list[Round]:
    """``messages``, which stand for those of ``rounds``, in the same rounds."""
    found: list[Round] = []
    place = 0
    for item in rounds:
        found.append(Round(item.number, tuple(messages[place : place + len(item.messages)])))
        place += len(item.messages)
    return found
