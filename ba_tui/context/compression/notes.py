"""How the notes of a compression are written down, and read again by the next one. What they hold is digest.py's.

Each line of ours says by its beginning what it is. Each text of the person is blocks of its own, behind a line that
announces it: nothing that the person wrote can be taken for a line of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from ba_tui.context.compression.facts import BADLY, UNTOLD, WELL, Fact, FactKind
from ba_tui.context.compression.keywords import line_score, prose_score
from ba_tui.context.compression.ledger import Named, StringKind
from ba_tui.context.compression.user_text import Written, from_blocks, lines_in
from ba_tui.core.messages import Message, Text
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

HEAD = "Notes on the earlier rounds of this conversation"
_HOW = ": recall(round=N) shows one whole, recall(query=…) finds words."
_BACK = "Nothing is lost: recall("
"""How a line of earlier versions began that said the same."""
PREFIX: dict[FactKind, str] = {"said": "- ", "step": "", "seen": "  · "}
"""How the lines of a round begin."""
TELLING: dict[FactKind, tuple[str, float, float]] = {"seen": ("  • ", 2.6, 2.5), "said": ("* ", 5.0, 6.0)}
"""How those begin that tell more: from which score on, and what they count when they are read again."""
_AGAIN: tuple[tuple[FactKind, float, Callable[[str], float]], ...] = (
    ("seen", 0.8, line_score),
    ("said", 2.5, prose_score),
)
"""What a line of a round counts when it is read again, and how its words do."""
_SECTIONS: dict[FactKind, str] = {
    "person": "From texts of the person that are cut or left out",
    "todo": "Open todos",
    "decision": "Decisions",
    "trouble": "Errors not resolved",
}
_STRINGS: dict[StringKind, str] = {
    "changed": "Files changed: ",
    "path": "Files and addresses: ",
    "name": "Names: ",
    "figure": "Figures: ",
}
_BETWEEN = "; "
_WRONG = "! "
"""How a line that names an error begins."""
_VERBATIM = "Exact strings"
"""Earlier versions add words to it."""
_FILE = regex(r"^- \[round \d+\] (.*) \((changed|read)\)$")
"""A file in the notes of an earlier version."""
_SUMMARY = "Summary so far"
_KINDS: dict[str, FactKind] = {
    **{title: kind for kind, title in _SECTIONS.items()},
    # As earlier versions named them.
    "Standing instructions": "person",
    "The first request": "person",
    _SUMMARY: "note",
}
_QUOTED = "> "
"""A line of the person in the notes of an earlier version."""
_NUMBERED = regex(r"^- \[round (\d+)\] (.*)$")
_ROUND = regex(r"^## Round (\d+)$")
_ANNOUNCED = regex(r"^The person (?:wrote|answered: (?P<question>.*?))(?P<cut> \(cut\))?:$")
_LEFT_OUT = regex(r"^(\d+) texts? of the person \((\d+) lines?\) ")
_WORTH: dict[FactKind, float] = {"decision": 7, "todo": 6, "trouble": 5, "note": 7, "person": 6}
"""The same for a line of a section."""


@frozen
class LeftOut:
    """How many texts of the person the notes do not hold, and how many lines those have."""

    texts: int = 0
    lines: int = 0

    @staticmethod
    def of(texts: Sequence[Written]) -> LeftOut:
        return LeftOut(len(texts), sum(text.lines for text in texts))

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(self.texts + other.texts, self.lines + other.lines)

    def __str__(self) -> str:
        texts, lines = f"text{'s' * (self.texts != 1)}", f"line{'s' * (self.lines != 1)}"
        where = "left out here: recall(round=N, person=true) shows those of a round."
        return f"{self.texts} {texts} of the person ({self.lines} {lines}) {where}"


@frozen
class Notes:
    """``texts`` of the person and ``facts``, each in their order; what of the texts was ``left_out``; and the
    ``summary`` that a model wrote."""

    texts: tuple[Written, ...] = ()
    facts: tuple[Fact, ...] = ()
    left_out: LeftOut = field(default_factory=LeftOut)
    summary: str = ""
    strings: tuple[Named, ...] = ()
    """Exact strings that the texts and facts lack, likeliest to be used first."""


def written(notes: Notes) -> tuple[Text, ...]:
    """``notes`` as the blocks of a message."""
    said = str(notes.left_out) if notes.left_out.texts else ""
    short = said and not (notes.texts or notes.facts or notes.summary or notes.strings)
    parts = [HEAD + ("." if short else _HOW) + (f"\n{said}" if said else "")]
    for kind, title in _SECTIONS.items():
        if of_kind := [fact for fact in notes.facts if fact.kind == kind]:
            parts.append("\n".join([f"## {title}", *(f"- [round {fact.round}] {fact.text}" for fact in of_kind)]))
    if notes.strings:
        parts.append("\n".join([f"## {_VERBATIM}", *_listed(notes.strings)]))
    blocks: list[Text] = []
    lines = ["\n\n".join(parts)]
    number = None
    for round_, runs in _course(notes):
        if round_ != number:
            lines.append(f"\n## Round {round_}")
            number = round_
        if isinstance(runs, Written):
            blocks += (Text("\n".join([*lines, _announced(runs), ""])), *runs.blocks)
            lines = [""]
        else:
            lines += _runs(runs)
    blocks.append(Text("\n".join(lines)))
    found = [fact.text for fact in notes.facts if fact.kind == "note"]
    if summary := notes.summary or "\n".join(found):
        blocks.append(Text(f"\n\n## {_SUMMARY}\n{summary}"))
    return tuple(block for block in blocks if block.text.strip())


def _listed(strings: Sequence[Named]) -> Iterator[str]:
    for kind, title in _STRINGS.items():
        if of_kind := [named.text for named in strings if named.kind == kind]:
            yield title + _BETWEEN.join(of_kind)
    yield from (f"{_WRONG}{named.text}" for named in strings if named.kind == "error")


def _course(notes: Notes) -> Iterator[tuple[int, Written | list[Fact]]]:
    """What was written and done, round by round, in its order: texts one by one, facts together."""
    items = [*notes.texts, *(fact for fact in notes.facts if fact.kind in PREFIX)]
    together: list[Fact] = []
    for item in sorted(items, key=lambda item: (item.round, item.place)):
        if together and (isinstance(item, Written) or item.round != together[0].round):
            yield together[0].round, together
            together = []
        if isinstance(item, Written):
            yield item.round, item
        else:
            together.append(item)
    if together:
        yield together[0].round, together


def _announced(text: Written) -> str:
    how = f"answered: {text.question}" if text.question else "wrote"
    return f"The person {how}{' (cut)' if text.gap else ''}:"


def _runs(items: Iterable[Fact]) -> Iterator[str]:
    """The lines of a round; the same call several times in a row is one."""
    last, times = "", 0
    for fact in items:
        prefix, least, _ = TELLING.get(fact.kind, ("", inf, 0.0))
        line = f"{prefix if fact.score >= least else PREFIX[fact.kind]}{fact.text}"
        if line == last:
            times += 1
            continue
        if last:
            yield last if times == 1 else f"{last} (×{times})"
        last, times = line, 1
    if last:
        yield last if times == 1 else f"{last} (×{times})"


def read(messages: Sequence[Message]) -> Notes:
    """The notes that an earlier compression left; what it did not write itself reads as a summary."""
    reader = _Reader()
    for message in messages:
        if message.role == "user":
            reader.message(message)
    # All of it comes before anything that the rounds hold.
    by = reader.place + 1
    texts = [replace(text, place=text.place - by) for text in reader.texts]
    facts = [replace(fact, place=fact.place - by, step=fact.step - by) for fact in reader.facts]
    return Notes(tuple(texts), tuple(facts), reader.left_out, strings=tuple(reader.strings))


@dataclass(slots=True)
class _Reader:
    """``step``: the place of the call whose lines are being read."""

    texts: list[Written] = field(default_factory=list[Written])
    facts: list[Fact] = field(default_factory=list[Fact])
    left_out: LeftOut = field(default_factory=LeftOut)
    strings: list[Named] = field(default_factory=list[Named])
    place: int = -1
    step: int = -1
    kind: FactKind | None = None
    round: int = 1
    verbatim: bool = False

    def message(self, message: Message) -> None:
        blocks = [block.text if isinstance(block, Text) else "" for block in message.blocks]
        own = bool(blocks) and blocks[0].startswith(HEAD)
        index = 0
        while index < len(blocks):
            lines = blocks[index].rstrip("\n").split("\n")
            last = _ANNOUNCED.match(lines[-1]) if own else None
            index += 1
            if last is None or index == len(blocks):
                self._lines(lines, own=own)
                continue
            self._lines(lines[:-1], own=own)
            span = 3 if last["cut"] else 1
            text, taken = from_blocks(blocks[index : index + span], self.round, last["question"] or "", cut=span > 1)
            index += taken
            self.place += 1
            self.texts.append(replace(text, place=self.place))
            self.place += lines_in(text.head) + lines_in(text.tail)

    def _lines(self, lines: Sequence[str], *, own: bool) -> None:
        self.kind, self.verbatim = None if own else "note", False
        for line in lines:
            if not line.strip() or line.startswith((HEAD, _BACK)):
                continue
            if own and (left := _LEFT_OUT.match(line)):
                self.left_out += LeftOut(int(left[1]), int(left[2]))
            elif line.startswith("## ") and self.kind != "note":
                heading = _ROUND.match(line)
                self.round = int(heading[1]) if heading else self.round
                self.verbatim = line[3:].startswith((_VERBATIM, "Files"))
                self.kind = None if heading else _KINDS.get(line[3:], "note")
            elif self.verbatim and own:
                self.strings += _strings(line)
            else:
                self.place += 1
                self.facts.append(self._fact(line))

    def _fact(self, line: str) -> Fact:
        kind, place = self.kind, self.place
        if kind is not None:
            numbered = _NUMBERED.match(line) if kind != "note" else None
            round_, text = (int(numbered[1]), numbered[2]) if numbered else (1, line)
            return Fact(kind, round_, place, text, _WORTH[kind])
        if line.startswith((WELL, BADLY, UNTOLD)):
            self.step = place
            return Fact("step", self.round, place, line, 2.0)
        # Each was chosen once for what it says, and counts for that again.
        if line.startswith(_QUOTED):
            return Fact("person", self.round, place, line.removeprefix(_QUOTED), _WORTH["person"])
        for kind, worth, score in _AGAIN:
            telling, _, more = TELLING[kind]
            if line.startswith((telling, PREFIX[kind])):
                text = line.removeprefix(telling).removeprefix(PREFIX[kind])
                least = more if line.startswith(telling) else 0.0
                step = self.step if kind == "seen" else -1
                return Fact(kind, self.round, place, text, max(least, worth + score(text)), step)
        return Fact("said", self.round, place, line, 1.5)


def _strings(line: str) -> Iterator[Named]:
    """The strings of a line, as this version or an earlier one lists them."""
    if (file := _FILE.match(line)) is not None:
        yield Named("changed" if file[2] == "changed" else "path", file[1], 0.0)
    if line.startswith(_WRONG):
        yield Named("error", line.removeprefix(_WRONG), 0.0)
    for kind, title in _STRINGS.items():
        if line.startswith(title):
            yield from (Named(kind, text, 0.0) for text in line.removeprefix(title).split(_BETWEEN) if text)
