"""Compression by rules: old bulky observations become stubs, old rounds become notes. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import Any

from ba_tui.context.compression.keywords import KnownWords
from ba_tui.context.compression.ledger import StringUses
from ba_tui.context.compression.notes import WORDS_SHARE, Notes, chosen, notes_before, read, size_of_texts
from ba_tui.context.compression.rounds import KEEP, Compression, Count, Keep, Round, base_id, rounds_of, turn_start
from ba_tui.context.compression.stubs import (
    CutResult,
    Observation,
    blocks_of,
    fit,
    known_of,
    observations,
    output_message,
    pictures,
    stub,
    with_stubs,
)
from ba_tui.context.compression.user_text import UserText
from ba_tui.core.messages import Message, ToolOutput
from ba_tui.core.values import frozen

WHOLE, NEWEST = 0.7, 0.3
"""The current round stays whole up to the first share of the target; its last step may have up to the second."""
USUAL, EASED = 0.1, 0.5
"""The share of the room for the last steps when older ones become notes, and how much it grows with the part of the
conversation that fits: the less is removed, the less there is to note."""
# The last rounds in their room: some stay whole, some are shortened, some become notes. The newest have priority.

MOST = 0.75
"""The largest share of the room for them."""
REACH, NEAR = 1.4, 2_500
"""How far back steps stay without their bulk: their original size as a multiple of their room, or so many tokens."""
LARGEST_STUB, LONGEST_STUB = 0.3, 1_500
"""The largest stub: a share of the original, and a number of bytes."""
OF_THE_ROOM, OF_A_TEXT = 0.5, 0.6
"""Most bytes of a stub for each token of the room, and of a user's text for each token of the target."""
TOLD = 480
"""Bytes of a user's text that suffice to show the request: in small rooms at most one for each token of the target."""


@frozen
class RecentTail:
    """``rounds`` stay, those in ``moved`` must become notes; ``cut`` names the shortened items of ``whole``."""

    rounds: tuple[Round, ...]
    moved: tuple[Round, ...] = ()
    cut: tuple[str, ...] = ()
    whole: tuple[Round, ...] = ()
    lost: tuple[tuple[int, str], ...] = ()
    """Missing parts of user texts, with the number of their round."""

    @property
    def messages(self) -> list[Message]:
        return flat(self.rounds)


@dataclass(slots=True)
class TailShortening:
    """Shortens ``rounds`` of a conversation that gets ``target`` tokens, ``share`` of its size; at most ``room`` of
    them are for ``rounds``."""

    rounds: tuple[Round, ...]
    target: int
    share: float
    room: int
    count: Count
    spared: bool = False
    """The current round is so small that nothing of it is cut."""
    long: bool = False
    """Its request alone is too long."""
    lines: KnownWords | None = None
    known: dict[int, tuple[ToolOutput | UserText, int]] = field(default_factory=dict[int, Any])
    """The smallest form of each long text and the tokens that it saves, by the text's identity."""

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
        for part in (room, 0):
            moved, kept = self._parted(part)
            tail = self._cut(kept, room) or RecentTail(tuple(kept))
            if self.count(tail.messages) <= min(self.room, most):
                return replace(tail, moved=tuple(moved), whole=tuple(kept))
        # A single enormous message: it is cut, so that the notes keep their share.
        starts = {base_id(item.messages[0]): item.number for item in kept}
        fitted = fit(tail.messages, min(self.room, most), self.count, starts)
        return RecentTail((Round(kept[-1].number, fitted),), tuple(moved), tail.cut)

    def lighter(self, tail: RecentTail, room: int) -> RecentTail:
        """Return ``tail`` in ``room`` tokens if that needs no fewer rounds and no shorter user texts."""
        if not tail.whole:
            return self._cut(self.rounds, room, words=False) or tail
        return replace(self, room=room).run()

    def widened(self, tail: RecentTail, room: int) -> RecentTail:
        """Return ``tail`` with less cut, since ``room`` is left for it."""
        again = self._cut(tail.whole, room) if tail.cut and tail.whole else None
        return replace(again, moved=tail.moved) if again else tail

    def _cut(self, rounds: Sequence[Round], room: int, *, words: bool = True) -> RecentTail | None:
        """Cut the oldest bulky items one by one until the rest fits; return None when it never does."""
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
            if isinstance(smaller, UserText) and isinstance(item.output, UserText):
                lost.append((item.round, item.output.lost(smaller)))
        if over > 0:
            return None
        return RecentTail(_again(rounds, with_stubs(messages, cut)), cut=tuple(titles), lost=tuple(lost))

    def _bulky(self, rounds: Sequence[Round], *, words: bool = True) -> list[Observation]:
        """Return what may be cut: results before user texts, but an oversized request before the results of its round;
        the current round last, and its last message never."""
        size = len(flat(rounds))
        current = size - len(rounds[-1].messages)

        def allowed(item: Observation) -> bool:
            if item.message < current:
                return True
            if item.message == current and isinstance(item.output, UserText):
                return self.long
            return not self.spared and item.message < size - 1

        def order(item: Observation) -> tuple[bool, int]:
            return isinstance(item.output, UserText) and item.message != current, item.message

        return sorted(filter(allowed, observations(rounds, words=words)), key=order)

    def _just(self, item: Observation, over: int) -> tuple[ToolOutput | UserText, int]:
        """Return ``item`` cut as little as possible, and the tokens that it saves."""
        smallest, saved = self._smallest(item)
        for bytes_ in (3, 1.5):
            if saved <= over:
                break
            larger = stub(item, self._longest(item) + int((saved - over) * bytes_), self.lines)
            if (less := self._less(item, larger)) >= over:
                return larger, less
        return smallest, saved

    def _smallest(self, item: Observation) -> tuple[ToolOutput | UserText, int]:
        key = _key(item)
        if key not in self.known:
            self.lines = self.lines or known_of(observations(self.rounds))
            smaller = stub(item, self._longest(item), self.lines)
            self.known[key] = smaller, self._less(item, smaller)
        return self.known[key]

    def _longest(self, item: Observation) -> int:
        """Return the bytes of its stub."""
        if isinstance(item.output, UserText):
            return max(int(self.target * OF_A_TEXT), min(TOLD, self.target))
        return min(LONGEST_STUB, int(self.room * OF_THE_ROOM), int(item.size * LARGEST_STUB))

    def _hoped(self, item: Observation) -> int:
        """Return the most tokens that cutting ``item`` can save: of repeated lines hardly anything stays."""
        known = self.known.get(_key(item))
        return known[1] if known else self.count([item.alone])

    def _less(self, item: Observation, smaller: ToolOutput | UserText) -> int:
        return self.count([item.alone]) - self.count([output_message(smaller)])

    def _parted(self, room: int) -> tuple[list[Round], list[Round]]:
        """Return which rounds must become notes, and which stay: the last steps that fit without their bulk."""
        messages = flat(self.rounds)
        sizes = [self.count([message]) for message in messages]
        left = _Left(room, max(NEAR, int(room * REACH)))
        light = list(sizes)
        behind = list(accumulate(reversed(sizes), initial=0))[-2::-1]
        for item in self._bulky(self.rounds):
            if behind[item.message] <= left.reach or isinstance(item.output, UserText):
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


def _key(item: Observation) -> int:
    return id(item.output) if isinstance(item.output, ToolOutput) else hash(item.output)


@dataclass(slots=True)
class _Left:
    """The room for older messages: ``room`` in their cut form, ``reach`` in their original size."""

    room: int
    reach: int

    def first(self, sizes: Sequence[int], light: Sequence[int], *, last: bool) -> int | None:
        """Return the first message of a round that stays beside its prompt; None when all of it must go."""
        room, reach = self.room - light[0], self.reach - sizes[0]
        first = len(sizes)
        while first > 1:
            # An answer and the results of its calls stay together.
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
    """Return ``messages``, which replace those of ``rounds``, in the same rounds."""
    rest = iter(messages)
    return tuple(Round(item.number, tuple(islice(rest, len(item.messages)))) for item in rounds)


ROOMY = 2_000
"""Tokens up to which the last steps have priority over earlier user texts: the work can't continue without them."""
REFERENCE = 120
"""Tokens of notes that only say what is missing."""
SPARE = 0.1
"""The share of the room that may stay empty."""
NOTES_SHARE, FACTS_SHARE = 4, 10
"""Notes get at least one part in this many of the room before the last rounds may stay unchanged; facts in them one in
this many."""


def extract(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP, focus: str = "") -> Compression:
    """Return ``messages`` in at most ``target`` tokens. Items that ``focus`` names get more weight."""
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
        least = min(self.target // NOTES_SHARE, self.count(self.messages[: len(self.messages) - len(flat(tail))]))
        shortening = TailShortening(tuple(tail), self.target, self.target / total, self.target - least, self.count)
        kept = shortening.run()
        notes = self._notes(parts.earlier, old, kept)
        needed = min(words, size_of_texts(notes, self.count)) + self.target // FACTS_SHARE
        if notes.texts and self.target > ROOMY and self.count(kept.messages) + needed > self.target:
            # User texts have priority over results, and over the oldest of steps that don't all fit anyway.
            kept = shortening.lighter(kept, self.target - needed)
            notes = self._notes(parts.earlier, old, kept)
        opening = chosen(notes, self.target - self.count(kept.messages), words, self.count)
        if not opening and (notes.texts or notes.left_out.texts):
            # The notes say at least that something is missing.
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
        result = fit((*opening, *kept.messages), self.target, self.count, self.keep.starts)
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
        """Return the first attempt, which cuts bulky observations of old rounds only; None when that is not enough."""
        found = observations(old, offset)
        if not found:
            return None
        share = 1 - (total - self.target) / self.count([item.alone for item in found])
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
                return self._done(result, titles, len(rounds_of(result, self.keep.starts).rounds), noted=False)
        return None
