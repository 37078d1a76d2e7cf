"""Compression by rules: old bulky observations become stubs, old rounds become notes. No model is asked.

What the notes hold is said in facts.py and digest.py, what becomes of the last rounds in tail.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from ba_tui.context.compression.digest import WORDS_SHARE, chosen, notes_before, size_of_texts
from ba_tui.context.compression.fit import fit
from ba_tui.context.compression.ledger import StringUses
from ba_tui.context.compression.notes import Notes, read
from ba_tui.context.compression.novelty import KnownWords
from ba_tui.context.compression.rounds import KEEP, Compression, Count, Keep, Round, base_id, rounds_of, turn_start
from ba_tui.context.compression.stubs import (
    CutResult,
    Observation,
    blocks_of,
    known_of,
    observations,
    output_message,
    pictures,
    stub,
    with_stubs,
)
from ba_tui.context.compression.user_text import Written
from ba_tui.core.messages import Message, ToolOutput
from ba_tui.core.values import frozen

WHOLE, NEWEST = 0.7, 0.3
"""The current round stays whole when it has no more than this part of the target; its last step has up to the other."""
USUAL, EASED = 0.1, 0.5
"""The share of the room that the last steps get when older ones become notes, and how much it grows with the part of
the conversation that has room: the less must go, the less there is to note."""
# The last rounds in their room: some stay whole, some are shortened, some become notes. The newest weigh most.

MOST = 0.75
"""The share of the room that they have at most."""
REACH, NEAR = 1.4, 2_500
"""How far back steps stay, without their bulk: what they had whole, as a multiple of their room; or so many tokens."""
LARGEST_STUB, LONGEST_STUB = 0.3, 1_500
"""What a stub keeps at most: so much of what it stands for, and so many bytes."""
OF_THE_ROOM, OF_A_TEXT = 0.5, 0.6
"""Its bytes for each token of the room, at most; and those of a text of the person for each token of the target."""
TOLD = 480
"""Bytes of a text of the person that are enough to tell what was asked: where there is little room, it has up to one
for each token of the target."""


@frozen
class RecentTail:
    """``rounds`` stay, those in ``moved`` must become notes; ``cut`` names what was cut of ``whole``."""

    rounds: tuple[Round, ...]
    moved: tuple[Round, ...] = ()
    cut: tuple[str, ...] = ()
    whole: tuple[Round, ...] = ()
    lost: tuple[tuple[int, str], ...] = ()
    """What is missing of texts of the person, with the number of its round."""

    @property
    def messages(self) -> list[Message]:
        return flat(self.rounds)


@dataclass(slots=True)
class TailShortening:
    """Of ``rounds`` of a conversation that gets ``target`` tokens, ``share`` of what it has; at most ``room`` of them
    are for ``rounds``."""

    rounds: tuple[Round, ...]
    target: int
    share: float
    room: int
    count: Count
    spared: bool = False
    """The current round has so little that nothing of it is cut."""
    long: bool = False
    """Its request alone takes too much."""
    lines: KnownWords | None = None
    known: dict[int, tuple[ToolOutput | Written, int]] = field(default_factory=dict[int, Any])
    """The smallest that each long text can be, and the tokens that saves, by what identifies the text."""

    def run(self) -> RecentTail:
        whole = RecentTail(self.rounds)
        if self.count(whole.messages) <= self.room:
            return whole
        whole_room = int(self.target * WHOLE)
        current = self.count(flat(self.rounds[-1:]))
        self.spared = current <= whole_room
        self.long = self.count(self.rounds[-1].messages[:1]) > whole_room
        if not self.long and (cut := self._cut(self.rounds, self.room, words=False)) is not None:
            return cut
        # Cutting results is not enough: the oldest become notes.
        most = int(self.target * MOST)
        usual = int(self.target * (USUAL + EASED * self.share))
        newest = min(int(self.target * NEWEST), self.count(self.rounds[-1].messages[-2:]))
        room = min(self.room, most, max(usual, newest))
        if self.spared:
            room = max(room, current)
        moved, kept, tail = list[Round](), list(self.rounds), whole
        for part in (room, int(room * 0.6), 0):
            moved, kept = self._parted(part)
            tail = self._cut(kept, room) or RecentTail(tuple(kept))
            if self.count(tail.messages) <= min(self.room, most):
                return replace(tail, moved=tuple(moved), whole=tuple(kept))
        # One enormous message: it is cut, so that the notes keep their part.
        starts = {base_id(item.messages[0]): item.number for item in kept}
        fitted = fit(tail.messages, min(self.room, most), self.count, starts)
        return RecentTail((Round(kept[-1].number, fitted),), tuple(moved), tail.cut)

    def lighter(self, tail: RecentTail, room: int) -> RecentTail:
        """``tail`` in ``room`` tokens if that is possible without fewer rounds or shorter texts of the person."""
        if not tail.whole:
            return self._cut(self.rounds, room, words=False) or tail
        return replace(self, room=room).run()

    def widened(self, tail: RecentTail, room: int) -> RecentTail:
        """``tail`` with less cut, as there turned out to be ``room`` for it."""
        again = self._cut(tail.whole, room) if tail.cut and tail.whole else None
        return replace(again, moved=tail.moved) if again else tail

    def _cut(self, rounds: Sequence[Round], room: int, *, words: bool = True) -> RecentTail | None:
        """The oldest of what is bulky cut, one by one, until the rest has room; None when it never has."""
        messages = flat(rounds)
        over = self.count(messages) - room
        cut: dict[tuple[int, int], CutResult] = {}
        titles: list[str] = []
        lost: list[tuple[int, str]] = []
        found = self._bulky(rounds, words=words)
        if sum(map(self._hoped, found)) < over:
            return None
        for item in found:
            if over <= 0:
                break
            smaller, saved = self._just(item, over)
            over -= saved
            cut[item.message, item.block] = CutResult(blocks_of(smaller), item.span)
            titles.append(item.title)
            if isinstance(smaller, Written) and isinstance(item.output, Written):
                lost.append((item.round, item.output.lost(smaller)))
        if over > 0:
            return None
        return RecentTail(_again(rounds, with_stubs(messages, cut)), cut=tuple(titles), lost=tuple(lost))

    def _bulky(self, rounds: Sequence[Round], *, words: bool = True) -> list[Observation]:
        """What may be cut: results before texts of the person, but a request that takes too much comes before the
        results of its round; that round last, and its last message never."""
        size = len(flat(rounds))
        current = size - len(rounds[-1].messages)

        def allowed(item: Observation) -> bool:
            if item.message < current:
                return True
            if item.message == current and isinstance(item.output, Written):
                return self.long
            return not self.spared and item.message < size - 1

        def order(item: Observation) -> tuple[bool, bool, int]:
            late = isinstance(item.output, Written) and item.message != current
            return late, item.message >= current, item.message

        return sorted(filter(allowed, observations(rounds, words=words)), key=order)

    def _just(self, item: Observation, over: int) -> tuple[ToolOutput | Written, int]:
        """``item`` cut, but by no more than must be, and the tokens that saves."""
        smallest, saved = self._smallest(item)
        for bytes_ in (3, 1.5):
            if saved <= over:
                break
            larger = stub(item, self._longest(item) + int((saved - over) * bytes_), self.lines)
            if (less := self._less(item, larger)) >= over:
                return larger, less
        return smallest, saved

    def _smallest(self, item: Observation) -> tuple[ToolOutput | Written, int]:
        key = id(item.output) if isinstance(item.output, ToolOutput) else hash(item.output)
        if key not in self.known:
            self.lines = self.lines or known_of(observations(self.rounds))
            smaller = stub(item, self._longest(item), self.lines)
            self.known[key] = smaller, self._less(item, smaller)
        return self.known[key]

    def _longest(self, item: Observation) -> int:
        """Bytes of its stub."""
        if isinstance(item.output, Written):
            return max(int(self.target * OF_A_TEXT), min(TOLD, self.target))
        return min(LONGEST_STUB, int(self.room * OF_THE_ROOM), int(item.size * LARGEST_STUB))

    def _hoped(self, item: Observation) -> float:
        """The tokens that cutting ``item`` saves at most, before it is tried."""
        return self.count([item.alone]) * (1 - 0.8 * self._longest(item) / item.size)

    def _less(self, item: Observation, smaller: ToolOutput | Written) -> int:
        return self.count([item.alone]) - self.count([output_message(smaller)])

    def _parted(self, room: int) -> tuple[list[Round], list[Round]]:
        """What must become notes, and what stays: as many of the last steps as have room without their bulk."""
        messages = flat(self.rounds)
        sizes = [self.count([message]) for message in messages]
        left = _Left(room, max(NEAR, int(room * REACH)))
        light = list(sizes)
        behind = list(accumulate(reversed(sizes), initial=0))[-2::-1]
        for item in self._bulky(self.rounds):
            if behind[item.message] <= left.reach or isinstance(item.output, Written):
                light[item.message] -= self._smallest(item)[1]
        moved: list[Round] = []
        kept: list[Round] = []
        end = len(messages)
        for item in reversed(self.rounds):
            start = end - len(item.messages)
            first = None if moved else left.first(sizes[start:end], light[start:end], last=not kept)
            if first is None:
                moved.insert(0, item)
            else:
                kept.insert(0, Round(item.number, (item.messages[0], *item.messages[first:])))
                if first > 1:
                    moved = [Round(item.number, item.messages[1:first])]
            end = start
        return moved, kept


@dataclass(slots=True)
class _Left:
    """What is left for older messages: ``room`` as they would be cut, ``reach`` as they are."""

    room: int
    reach: int

    def first(self, sizes: Sequence[int], light: Sequence[int], *, last: bool) -> int | None:
        """From which message of a round on it stays, beside its prompt; None when all of it must go."""
        room, reach = self.room - light[0], self.reach - sizes[0]
        first = len(sizes)
        while first > 1:
            # An answer and the results of its calls belong together.
            step = 1 if first == len(sizes) and len(sizes) % 2 == 0 else 2
            here = slice(first - step, first)
            if sum(light[here]) > room or reach < 0:
                break
            room, reach, first = room - sum(light[here]), reach - sum(sizes[here]), first - step
        if first == len(sizes) > 1 or room < 0:
            if not last:
                return None
            first = min(first, max(1, len(sizes) - (1 if len(sizes) % 2 == 0 else 2)))
        self.room, self.reach = room, reach
        return first


def flat(rounds: Sequence[Round]) -> list[Message]:
    return [message for item in rounds for message in item.messages]


def _again(rounds: Sequence[Round], messages: Sequence[Message]) -> tuple[Round, ...]:
    """``messages``, which stand for those of ``rounds``, in the same rounds."""
    found: list[Round] = []
    place = 0
    for item in rounds:
        found.append(Round(item.number, tuple(messages[place : place + len(item.messages)])))
        place += len(item.messages)
    return tuple(found)


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
