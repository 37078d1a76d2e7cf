"""What the person wrote, byte for byte: where it stands in messages, and how a text that is too long is cut.

A cut text is up to three blocks: its beginning, a mark that says what is missing and how to read it, and its end.
Marks are looked for only in messages that a compression changed, and only as blocks of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ba_tui.context.compression.keywords import is_instruction
from ba_tui.context.compression.rounds import Round, is_changed
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, is_reminder
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen

ASKING, ANSWER = "ask_user", "The person answered: "
"""The tool that asks the person, and how its result begins (tools/ask_user.py)."""
HEAD = 0.6
"""The part of a cut text that is its beginning."""
LEAST = 240
"""Bytes below which no text is cut: other texts are left out instead."""
FIRST = 3
"""How many times the share of another text the first request may have."""
PASTED, PASTE = 30, 0.4
"""Lines from which a text was hardly typed, and how much of the share of another text it has: the lines in it that
tell most are worth more than how it begins and ends."""
AROUND = 40
"""Bytes of the line that introduces a text."""
QUESTION = 100
"""Characters of a question that are said again with its answer."""
CUE = 4_000
"""Characters of a text that are looked at for a standing instruction."""
_MARK = regex(
    r"\[… (?:\d+ lines \((\d+) to (\d+) of (\d+), (\d+) characters\)|(\d+) characters) left out (here|before|after):"
    r" recall\(round=\d+, person=true\) …\]\n"
)


@frozen
class Gap:
    """The missing part of a text: lines ``first`` to ``last`` of ``lines``, counted from 1, in whole or in part."""

    first: int
    last: int
    lines: int
    characters: int

    def mark(self, round_: int, where: str) -> str:
        """``where``: ``here``, or ``before`` or ``after`` what is left."""
        missing, size = self.last - self.first + 1, f"{self.characters} characters"
        lines = f"{missing} lines ({self.first} to {self.last} of {self.lines}, {size})" if self.lines > 1 else size
        return f"[… {lines} left out {where}: recall(round={round_}, person=true) …]\n"


MARK = len(Gap(10_000, 90_000, 100_000, 10_000_000).mark(1_000, "before").encode())
"""Bytes of a long mark."""


@frozen
class Written:
    """A text of the person in ``round``: all of it is ``head``, unless a ``gap`` lies between ``head`` and ``tail``.
    ``question``: what it answers, on one line; empty for a prompt."""

    round: int
    head: str
    gap: Gap | None = None
    tail: str = ""
    question: str = ""
    place: int = 0
    """Orders it among the facts of a conversation."""

    @property
    def blocks(self) -> tuple[Text, ...]:
        """As it stands in a message."""
        if self.gap is None:
            return (Text(self.head),)
        where = "after" if not self.tail else "here" if self.head else "before"
        return tuple(Text(text) for text in (self.head, self.gap.mark(self.round, where), self.tail) if text)

    @property
    def size(self) -> int:
        """Bytes, mark included."""
        return size(self.head) + (MARK + size(self.tail) if self.gap else 0)

    @property
    def lines(self) -> int:
        """Lines of the whole text."""
        return self.gap.lines if self.gap else lines_in(self.head)

    def within(self, room: int) -> Written:
        """Beginning and end of the text in about ``room`` bytes; never less than a mark and a character."""
        if self.size <= room:
            return self
        left = max(4, room - MARK)
        share = int(left * HEAD)
        if self.gap:
            share = max(share, left - size(self.tail))
        head = beginning(self.head, share)
        rest = self.tail if self.gap else self.head[len(head) :]
        tail = _ending(rest, left - size(head))
        return replace(self, head=head, tail=tail, gap=self._without(head, tail))

    def _without(self, head: str, tail: str) -> Gap:
        total, known = self.lines, self.gap
        characters = len(self.head) + len(self.tail) - len(head) - len(tail) + (known.characters if known else 0)
        if known and tail == self.tail:
            return Gap(head.count("\n") + 1, known.last, total, characters)
        source = self.tail if known else self.head
        parted = bool(tail) and not source.endswith("\n", 0, len(source) - len(tail))
        return Gap(head.count("\n") + 1, total - lines_in(tail) + parted, total, characters)

    def lost(self, shorter: Written) -> str:
        """What of this text ``shorter``, which was made of it, no longer has; not what was missing before."""
        if self.gap is None:
            return self.head[len(shorter.head) : len(self.head) - len(shorter.tail)]
        return self.head[len(shorter.head) :] + self.tail[: len(self.tail) - len(shorter.tail)]


def size(text: str) -> int:
    """Bytes of ``text``: a fair measure of tokens in every script."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def lines_in(text: str) -> int:
    """How many lines ``text`` has; only line feeds part them."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def beginning(text: str, room: int) -> str:
    """As much of the beginning of ``text`` as has ``room`` bytes, whole lines where they fill half of it. Empty when
    that would be blank."""
    kept = text[: _fitting(text, room)]
    if len(kept) < len(text) and (end := kept.rfind("\n") + 1) * 2 >= len(kept):
        kept = kept[:end]
    return "" if kept.isspace() else kept


def _ending(text: str, room: int) -> str:
    start = len(text) - _fitting(text, room, from_end=True)
    line = text.find("\n", start) + 1
    if start and text[start - 1] != "\n" and 0 < line < start + (len(text) - start) / 2:
        start = line
    kept = text[start:]
    return "" if kept.isspace() else kept


def _fitting(text: str, room: int, *, from_end: bool = False) -> int:
    """How many characters of ``text`` have ``room`` bytes."""
    count = min(len(text), max(0, room))
    while count and size(text[len(text) - count :] if from_end else text[:count]) > room:
        over = size(text[len(text) - count :] if from_end else text[:count]) - room
        # No character has more than four bytes.
        count -= max(1, over // 4)
    return count


@frozen
class WordPlace:
    """Where a text stands in its message: at block ``index``, ``span`` blocks long."""

    index: int
    span: int
    written: Written


def written_in(message: Message, number: int, *, begins: bool, calls: Mapping[str, ToolUse]) -> Iterator[WordPlace]:
    """What the person wrote in a message of round ``number``: prompts, words that joined a turn, and answers to the
    questions in ``calls``. ``begins``: the round begins with this message."""
    if message.role != "user" or message.origin == "compaction":
        return
    index = 0
    while index < len(message.blocks):
        block, span = message.blocks[index], 1
        if isinstance(block, Text) and (begins or not message.hidden) and not is_reminder(block.text):
            found, span = _joined(message, index, number)
            yield WordPlace(index, span, found)
        elif isinstance(block, ToolOutput) and (call := calls.get(block.tool_use_id)) and is_answer(call, block):
            question = one_line(str(call.input.get("question", "")), QUESTION)
            yield WordPlace(index, 1, Written(number, block.content.removeprefix(ANSWER), question=question))
        index += span


def texts_in(item: Round) -> Iterator[tuple[Message, Written]]:
    """All that the person wrote in a round, each with the message that holds it."""
    calls: dict[str, ToolUse] = {}
    for place, message in enumerate(item.messages):
        calls |= {call.id: call for call in message.calls}
        for found in written_in(message, item.number, begins=place == 0, calls=calls):
            yield message, found.written


def texts_of(item: Round) -> list[Written]:
    return [text for _, text in texts_in(item)]


def is_answer(call: ToolUse, output: ToolOutput) -> bool:
    """True for the result of a question that the person answered."""
    said = not output.is_error and output.content.startswith(ANSWER)
    return call.name == ASKING and said and not output.content.removeprefix(ANSWER).isspace()


def _joined(message: Message, index: int, number: int) -> tuple[Written, int]:
    """The text that begins at a block, with its mark and its end if it was cut; and how many blocks it has."""
    texts = [block.text if isinstance(block, Text) else "" for block in message.blocks[index : index + 3]]
    return from_blocks(texts, number, cut=is_changed(message))


def from_blocks(texts: Sequence[str], number: int, question: str = "", *, cut: bool) -> tuple[Written, int]:
    """The text that ``texts``, successive blocks of a message, begin with, and how many of them it takes. Only where
    it may be ``cut`` can one of them be a mark."""
    for index, text in enumerate(texts[:2] if cut else ()):
        found = _MARK.fullmatch(text)
        if found is None or (index and found[6] == "before"):
            continue
        first, last, total, some, all_, where = found.groups()
        gap = Gap(int(first or 1), int(last or 1), int(total or 1), int(some or all_))
        head = texts[0] if index else ""
        tail = texts[index + 1] if where != "after" and len(texts) > index + 1 else ""
        return Written(number, head, gap, tail, question), 1 + bool(head) + bool(tail)
    return Written(number, texts[0], question=question), 1


def allotted(texts: Sequence[Written], room: int) -> list[Written | None]:
    """Each of ``texts`` as it fits when all have ``room`` bytes together: whole, cut, or None for left out.

    Short ones stay whole, so that only the longest are cut. The first request counts most; where there are too many,
    those that hold instructions and the newest stay.
    """
    costs = [text.size + AROUND for text in texts]
    if sum(costs) <= room:
        return list(texts)
    chosen = _chosen(texts, costs, room)
    shares = _shares([costs[place] for place in chosen], [_weight(texts[place]) for place in chosen], room)
    result: list[Written | None] = [None] * len(texts)
    for place, share in zip(chosen, shares, strict=True):
        result[place] = texts[place].within(share - AROUND)
    return result


def _weight(text: Written) -> float:
    return FIRST if text.round == 1 else PASTE if text.lines > PASTED else 1.0


def _chosen(texts: Sequence[Written], costs: Sequence[int], room: int) -> list[int]:
    """The places of those that stay, if only with a few words."""
    chosen: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: _rank(texts[place], place)):
        least = min(costs[place], _least(_weight(texts[place])))
        if least <= room or not chosen:
            room -= least
            chosen.append(place)
        if room < AROUND:
            break
    return chosen


def _rank(text: Written, place: int) -> tuple[int, int]:
    first = 0 if text.round == 1 else 1 if is_instruction(f"{text.head[:CUE]}\n{text.tail[-CUE:]}") else 2
    return first, -place if first else place


def _least(weight: float) -> int:
    return int(LEAST * max(1.0, weight / 1.5))


def _shares(costs: Sequence[int], weights: Sequence[float], room: int) -> list[int]:
    """The share of each: what it costs, or by its weight what is left by those that cost less."""

    def shares(level: float) -> list[int]:
        return [
            min(cost, max(_least(weight), int(level * weight))) for cost, weight in zip(costs, weights, strict=True)
        ]

    low, high = 0.0, float(max(costs, default=0)) / PASTE
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shares(middle)) <= room else (low, middle)
    return shares(low)
