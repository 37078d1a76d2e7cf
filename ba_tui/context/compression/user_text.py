"""The user's texts, byte for byte: their positions in messages, and how a text that is too long is cut.

A cut text has up to three blocks: its beginning, a mark that says what is missing and how to read it, and its end.
Marks are recognised only in messages that a compression changed, and only as separate blocks.
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

ASKING = "ask_user"
"""The tool that asks the user."""
_ANSWER = regex(r"The (?:user|person) answered: ")
"""How its result begins (tools/builtin/small_tools.py); sessions saved before December 2026 say "person"."""
HEAD = 0.6
"""The share of the beginning in a cut text."""
LEAST = 240
"""Bytes below which no text is cut: other texts are left out instead."""
FIRST = 3
"""The share of the first request as a multiple of another text's."""
PASTED, PASTE = 30, 0.4
"""Lines from which on a text was probably pasted, and its share as a multiple of another text's: its most informative
lines are worth more than its beginning and end."""
AROUND = 40
"""Bytes of the line that introduces a text."""
QUESTION = 100
"""Characters of a question that are repeated with its answer."""
CUE = 4_000
"""Characters of a text that are searched for a standing instruction."""
_MARK = regex(
    r"\[… (?:\d+ lines \((\d+) to (\d+) of (\d+), (\d+) characters\)|(\d+) characters) left out (here|before|after):"
    r" recall\(round=\d+, person=true\) …\]\n"
)


@frozen
class Gap:
    """The missing part of a text: lines ``first`` to ``last`` of ``lines``, counted from 1, completely or in part."""

    first: int
    last: int
    lines: int
    characters: int

    def mark(self, round_: int, where: str) -> str:
        """Return the mark of the gap. ``where``: ``here``, or ``before`` or ``after`` the part that is left."""
        missing, size = self.last - self.first + 1, f"{self.characters} characters"
        lines = f"{missing} lines ({self.first} to {self.last} of {self.lines}, {size})" if self.lines > 1 else size
        return f"[… {lines} left out {where}: recall(round={round_}, person=true) …]\n"


MARK = len(Gap(10_000, 90_000, 100_000, 10_000_000).mark(1_000, "before").encode())
"""Bytes of a long mark."""


@frozen
class UserText:
    """A text of the user in ``round``: ``head`` is the whole text, unless a ``gap`` is between ``head`` and ``tail``.
    ``question``: the answered question on one line; empty for a prompt."""

    round: int
    head: str
    gap: Gap | None = None
    tail: str = ""
    question: str = ""
    place: int = 0
    """Orders it among the facts of a conversation."""

    @property
    def blocks(self) -> tuple[Text, ...]:
        """Return its blocks in a message."""
        if self.gap is None:
            return (Text(self.head),)
        where = "after" if not self.tail else "here" if self.head else "before"
        return tuple(Text(text) for text in (self.head, self.gap.mark(self.round, where), self.tail) if text)

    @property
    def size(self) -> int:
        """Return bytes, mark included."""
        return size(self.head) + (MARK + size(self.tail) if self.gap else 0)

    @property
    def lines(self) -> int:
        """Return the lines of the whole text."""
        return self.gap.lines if self.gap else lines_in(self.head)

    def within(self, room: int) -> UserText:
        """Return beginning and end in about ``room`` bytes; never less than a mark and a character."""
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

    def lost(self, shorter: UserText) -> str:
        """Return the part of this text that its shortened form ``shorter`` lost; not what was missing before."""
        if self.gap is None:
            return self.head[len(shorter.head) : len(self.head) - len(shorter.tail)]
        return self.head[len(shorter.head) :] + self.tail[: len(self.tail) - len(shorter.tail)]


def size(text: str) -> int:
    """Return the bytes of ``text``: a fair measure of tokens in every script."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def lines_in(text: str) -> int:
    """Return the number of lines; only line feeds separate them."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def both_ends(text: str, most: int) -> str:
    """Return ``text``, or ``most`` of its characters, half from either end."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"


def beginning(text: str, room: int) -> str:
    """Return the beginning of ``text`` in ``room`` bytes, in whole lines where they fill half of it; never blank."""
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
    """Return how many characters of ``text`` fit in ``room`` bytes."""
    count = min(len(text), max(0, room))
    while count and size(text[len(text) - count :] if from_end else text[:count]) > room:
        over = size(text[len(text) - count :] if from_end else text[:count]) - room
        # No character has more than four bytes.
        count -= max(1, over // 4)
    return count


@frozen
class WordPlace:
    """The position of a text in its message: from block ``index`` on, ``span`` blocks long."""

    index: int
    span: int
    written: UserText


def written_in(message: Message, number: int, *, begins: bool, calls: Mapping[str, ToolUse]) -> Iterator[WordPlace]:
    """Return the user's texts in a message of round ``number``: prompts, words that joined a turn, and answers to the
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
            yield WordPlace(index, 1, UserText(number, split_answer(block.content)[1], question=question))
        index += span


def texts_in(item: Round) -> Iterator[tuple[Message, UserText]]:
    """Return the user's texts in a round, each with its message."""
    calls: dict[str, ToolUse] = {}
    for place, message in enumerate(item.messages):
        calls |= {call.id: call for call in message.calls}
        for found in written_in(message, item.number, begins=place == 0, calls=calls):
            yield message, found.written


def texts_of(item: Round) -> list[UserText]:
    return [text for _, text in texts_in(item)]


def is_answer(call: ToolUse, output: ToolOutput) -> bool:
    """Return True for the result of a question that the user answered."""
    announced, said = split_answer(output.content)
    return call.name == ASKING and not output.is_error and bool(announced) and not said.isspace()


def split_answer(content: str) -> tuple[str, str]:
    """Return how a question's result announces the user's words, and the words; the first is empty if it has none."""
    found = _ANSWER.match(content)
    return (found[0], content[found.end() :]) if found else ("", content)


def _joined(message: Message, index: int, number: int) -> tuple[UserText, int]:
    """Return the text that begins at a block, with its mark and its end if it was cut; and its number of blocks."""
    texts = [block.text if isinstance(block, Text) else "" for block in message.blocks[index : index + 3]]
    return from_blocks(texts, number, cut=is_changed(message))


def from_blocks(texts: Sequence[str], number: int, question: str = "", *, cut: bool) -> tuple[UserText, int]:
    """Return the text with which ``texts``, successive blocks of a message, begin, and its number of blocks. Only if it
    may be ``cut`` can a block be a mark."""
    for index, text in enumerate(texts[:2] if cut else ()):
        found = _MARK.fullmatch(text)
        if found is None or (index and found[6] == "before"):
            continue
        first, last, total, some, all_, where = found.groups()
        gap = Gap(int(first or 1), int(last or 1), int(total or 1), int(some or all_))
        head = texts[0] if index else ""
        tail = texts[index + 1] if where != "after" and len(texts) > index + 1 else ""
        return UserText(number, head, gap, tail, question), 1 + bool(head) + bool(tail)
    return UserText(number, texts[0], question=question), 1


def allotted(texts: Sequence[UserText], room: int) -> list[UserText | None]:
    """Return each of ``texts`` in its share of ``room`` bytes: whole, cut, or None for left out.

    Short ones stay whole, so that only the longest are cut. The first request gets most; if there are too many, those
    with instructions and the newest stay.
    """
    costs = [text.size + AROUND for text in texts]
    if sum(costs) <= room:
        return list(texts)
    chosen = _chosen(texts, costs, room)
    shares = _shares([costs[place] for place in chosen], [_weight(texts[place]) for place in chosen], room)
    result: list[UserText | None] = [None] * len(texts)
    for place, share in zip(chosen, shares, strict=True):
        result[place] = texts[place].within(share - AROUND)
    return result


def _weight(text: UserText) -> float:
    return FIRST if text.round == 1 else PASTE if text.lines > PASTED else 1.0


def _chosen(texts: Sequence[UserText], costs: Sequence[int], room: int) -> list[int]:
    """Return the positions of those that stay, at least with a few words."""
    chosen: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: _rank(texts[place], place)):
        least = min(costs[place], _least(_weight(texts[place])))
        if least <= room or not chosen:
            room -= least
            chosen.append(place)
        if room < AROUND:
            break
    return chosen


def _rank(text: UserText, place: int) -> tuple[int, int]:
    first = 0 if text.round == 1 else 1 if is_instruction(f"{text.head[:CUE]}\n{text.tail[-CUE:]}") else 2
    return first, -place if first else place


def _least(weight: float) -> int:
    return int(LEAST * max(1.0, weight / 1.5))


def _shares(costs: Sequence[int], weights: Sequence[float], room: int) -> list[int]:
    """Return the share of each: its full cost, or by its weight the rest that cheaper ones leave."""

    def shares(level: float) -> list[int]:
        return [
            min(cost, max(_least(weight), int(level * weight))) for cost, weight in zip(costs, weights, strict=True)
        ]

    low, high = 0.0, float(max(costs, default=0)) / PASTE
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shares(middle)) <= room else (low, middle)
    return shares(low)
