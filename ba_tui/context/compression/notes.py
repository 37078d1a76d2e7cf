"""The notes that replace old rounds: which texts and facts they get, how they are written, and how they are parsed
again. Facts that a summary lacks.

Each line of ours shows its kind by its beginning. Each user text is in separate blocks after a line that announces it:
no text of the user can be taken for a line of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf

from ba_tui.context.compression.facts import (
    BADLY,
    UNTOLD,
    WELL,
    ConversationFacts,
    Fact,
    FactKind,
    newest,
    open_todos,
    spoken,
)
from ba_tui.context.compression.keywords import code, line_score, prose_score
from ba_tui.context.compression.ledger import RankedString, StringKind, picked
from ba_tui.context.compression.rounds import Count, Round, opening, rounds_of
from ba_tui.context.compression.user_text import AROUND, UserText, allotted, both_ends, from_blocks, lines_in, texts_of
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

HEAD = "Notes on the earlier rounds of this conversation"
_HOW = ": recall(round=N) shows one whole, recall(query=…) finds words."
_BACK = "Nothing is lost: recall("
"""The beginning of a line with the same meaning in earlier versions."""
PREFIX: dict[FactKind, str] = {"said": "- ", "step": "", "seen": "  · "}
"""The beginnings of a round's lines."""
TELLING: dict[FactKind, tuple[str, float, float]] = {"seen": ("  • ", 2.6, 2.5), "said": ("* ", 5.0, 6.0)}
"""The beginnings of more informative lines: from which score on, and their score when they are parsed."""
_AGAIN: tuple[tuple[FactKind, float, Callable[[str], float]], ...] = (
    ("seen", 0.8, line_score),
    ("said", 2.5, prose_score),
)
"""The base score of a round's line when it is parsed, and the score of its words."""
_SECTIONS: dict[FactKind, str] = {
    "person": "From texts of the user that are cut or left out",
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
"""The beginning of a line with an error."""
_VERBATIM = "Exact strings"
"""Earlier versions add words to it."""
_FILE = regex(r"^- \[round \d+\] (.*) \((changed|read)\)$")
"""A file in the notes of an earlier version."""
_SUMMARY = "Summary so far"
_KINDS: dict[str, FactKind] = {
    **{title: kind for kind, title in _SECTIONS.items()},
    # Their names in earlier versions.
    "Standing instructions": "person",
    "The first request": "person",
    _SUMMARY: "note",
}
_QUOTED = "> "
"""A line of the user's in the notes of an earlier version."""
_NUMBERED = regex(r"^- \[round (\d+)\] (.*)$")
_ROUND = regex(r"^## Round (\d+)$")
_ANNOUNCED = regex(r"^The (?:user|person) (?:wrote|answered: (?P<question>.*?))(?P<cut> \(cut\))?:$")
_LEFT_OUT = regex(r"^(\d+) texts? of the (?:user|person) \((\d+) lines?\) ")
_WORTH: dict[FactKind, float] = {"decision": 7, "todo": 6, "trouble": 5, "note": 7, "person": 6}
"""The score of a section's line."""


@frozen
class LeftOut:
    """How many user texts the notes leave out, and how many lines those have."""

    texts: int = 0
    lines: int = 0

    @staticmethod
    def of(texts: Sequence[UserText]) -> LeftOut:
        return LeftOut(len(texts), sum(text.lines for text in texts))

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(self.texts + other.texts, self.lines + other.lines)

    def __str__(self) -> str:
        texts, lines = f"text{'s' * (self.texts != 1)}", f"line{'s' * (self.lines != 1)}"
        where = "left out here: recall(round=N, person=true) shows those of a round."
        return f"{self.texts} {texts} of the user ({self.lines} {lines}) {where}"


@frozen
class Notes:
    """``texts`` of the user and ``facts`` in order; the number of ``left_out`` texts; a model's ``summary``."""

    texts: tuple[UserText, ...] = ()
    facts: tuple[Fact, ...] = ()
    left_out: LeftOut = field(default_factory=LeftOut)
    summary: str = ""
    strings: tuple[RankedString, ...] = ()
    """Exact strings that the texts and facts lack, the likeliest to be used first."""


def written(notes: Notes) -> tuple[Text, ...]:
    """Return ``notes`` as the blocks of a message."""
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
        if isinstance(runs, UserText):
            blocks += (Text("\n".join([*lines, _announced(runs), ""])), *runs.blocks)
            lines = [""]
        else:
            lines += _runs(runs)
    blocks.append(Text("\n".join(lines)))
    found = [fact.text for fact in notes.facts if fact.kind == "note"]
    if summary := notes.summary or "\n".join(found):
        blocks.append(Text(f"\n\n## {_SUMMARY}\n{summary}"))
    return tuple(block for block in blocks if block.text.strip())


def _listed(strings: Sequence[RankedString]) -> Iterator[str]:
    for kind, title in _STRINGS.items():
        if of_kind := [named.text for named in strings if named.kind == kind]:
            yield title + _BETWEEN.join(of_kind)
    yield from (f"{_WRONG}{named.text}" for named in strings if named.kind == "error")


def _course(notes: Notes) -> Iterator[tuple[int, UserText | list[Fact]]]:
    """Return texts and actions round by round in their order: texts one by one, facts together."""
    items = [*notes.texts, *(fact for fact in notes.facts if fact.kind in PREFIX)]
    ordered = sorted(items, key=lambda item: (item.round, item.place))
    for _, group in groupby(ordered, key=lambda item: (item.round, id(item) if isinstance(item, UserText) else 0)):
        found = list(group)
        if isinstance(found[0], UserText):
            yield found[0].round, found[0]
        else:
            yield found[0].round, [item for item in found if isinstance(item, Fact)]


def _announced(text: UserText) -> str:
    how = f"answered: {text.question}" if text.question else "wrote"
    return f"The user {how}{' (cut)' if text.gap else ''}:"


def _runs(items: Iterable[Fact]) -> Iterator[str]:
    """Return the lines of a round; the same call several times in a row is one."""
    for line, same in groupby(map(_line, items)):
        times = len(list(same))
        yield line if times == 1 else f"{line} (×{times})"


def _line(fact: Fact) -> str:
    prefix, least, _ = TELLING.get(fact.kind, ("", inf, 0.0))
    return f"{prefix if fact.score >= least else PREFIX[fact.kind]}{fact.text}"


def read(messages: Sequence[Message]) -> Notes:
    """Parse the notes of an earlier compression; text in another form is taken as a summary."""
    reader = _Reader()
    for message in messages:
        if message.role == "user":
            reader.message(message)
    # All of it precedes the facts of the rounds.
    by = reader.place + 1
    texts = [replace(text, place=text.place - by) for text in reader.texts]
    facts = [replace(fact, place=fact.place - by, step=fact.step - by) for fact in reader.facts]
    return Notes(tuple(texts), tuple(facts), reader.left_out, strings=tuple(reader.strings))


@dataclass(slots=True)
class _Reader:
    """Parses notes. ``step``: the position of the call whose lines are being parsed."""

    texts: list[UserText] = field(default_factory=list[UserText])
    facts: list[Fact] = field(default_factory=list[Fact])
    left_out: LeftOut = field(default_factory=LeftOut)
    strings: list[RankedString] = field(default_factory=list[RankedString])
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
        # Each was chosen for its content before, and is scored for it again.
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


def _strings(line: str) -> Iterator[RankedString]:
    """Return the strings of a line, as this version or an earlier one lists them."""
    if (file := _FILE.match(line)) is not None:
        yield RankedString("changed" if file[2] == "changed" else "path", file[1], 0.0)
    if line.startswith(_WRONG):
        yield RankedString("error", line.removeprefix(_WRONG), 0.0)
    for kind, title in _STRINGS.items():
        if line.startswith(title):
            yield from (RankedString(kind, text, 0.0) for text in line.removeprefix(title).split(_BETWEEN) if text)


# The content of notes: the user's texts first, and facts in the rest of the room.

WORDS_SHARE = 0.25
"""The share of all messages for user texts of earlier rounds before one of them is cut."""
FACTS_SHARE = 0.3
"""The share of the notes for facts, however much the user wrote."""
FACTS_LEAST, SMALL_SHARE = 300, 0.6
"""The least tokens for facts, where that is no more than this share of the notes."""
LEDGER, LEDGER_LEAST, SMALL_LEDGER = 0.25, 5_000, 0.7
"""The least share of the room after texts for exact strings; the least bytes for them where other facts keep as many,
since in a small window they are the most useful for their size."""
CODE = 600
"""Bytes that lines of code may have beyond their share: short conversations consist mostly of them."""
_HEADING = 14
_URGENCY: Mapping[FactKind, float] = {"decision": 2.0, "todo": 12.0, "trouble": 2.0, "note": 3.0, "person": 1.5}
_SHARES: Mapping[str, float] = {
    "code": 0.2,
    "person": 0.15,
    "decision": 0.3,
    "todo": 0.2,
    "trouble": 0.25,
    "note": 0.8,
}
"""The share of the room of each section, and of lines of code, so that none displaces the others."""


def notes_before(
    earlier: Sequence[Message],
    rounds: Sequence[Round],
    later: Sequence[Message],
    lost: Sequence[tuple[int, str]] = (),
    focus: str = "",
) -> Notes:
    """Return all texts and facts of ``rounds`` and of the ``earlier`` notes; ``later`` stays unchanged but for the
    parts of user texts in ``lost``."""
    before = read(earlier)
    gathered = ConversationFacts(rounds, focus, later, before.facts).gather()
    facts = list(gathered.facts)
    facts += [fact for number, text in lost for fact in spoken(number, text, 0)]
    listed = open_todos(message for item in rounds for message in item.messages)
    if open_todos(later) is not None:
        listed = []
    if listed is not None:
        last = rounds[-1].number if rounds else 0
        facts = [fact for fact in facts if fact.kind != "todo"]
        facts += [Fact("todo", last, -1, text, 8.0) for text in listed]
    return Notes((*before.texts, *gathered.texts), tuple(newest(facts)), before.left_out)


def chosen(all_: Notes, room: int, words: int, count: Count) -> tuple[Message, ...]:
    """Return the best of ``all_`` as opening messages of at most ``room`` tokens, with at most ``words`` for user
    texts; nothing when not even a line fits."""
    facts_least = (
        max(int(room * FACTS_SHARE), min(int(room * SMALL_SHARE), FACTS_LEAST)) if all_.facts or all_.strings else 0
    )
    most = min(words, room - facts_least)
    kept, best, spoken_for = all_, tuple[Message, ...](), 0
    for share in (most, most * 6 // 10, most * 3 // 10, -1) if all_.texts or all_.left_out.texts else ():
        kept = _with_texts(all_, share, count)
        bare = opening(written(replace(kept, facts=(), strings=())))
        spoken_for = count(bare)
        if spoken_for <= room:
            best = bare
            break
    bytes_ = max(0, room - spoken_for) * 3
    ranked = by_worth(kept.facts)
    for _ in range(5):
        least = min(bytes_ * SMALL_LEDGER, LEDGER_LEAST)
        strings_room = int(max(bytes_ * LEDGER, least)) if kept.strings else 0
        facts = pick(ranked, bytes_ - strings_room)
        spare = bytes_ - strings_room - sum(fact.cost for fact in facts)
        held = "\n".join([*(fact.text for fact in facts), *(text.head + text.tail for text in kept.texts)])
        strings = picked(kept.strings, strings_room + max(0, spare), held)
        if not facts and not strings:
            break
        made = opening(written(replace(kept, facts=tuple(facts), strings=tuple(strings))))
        size = count(made)
        if size <= room:
            best = made
            everything = len(facts) == len(kept.facts) and len(strings) == len(kept.strings)
            if everything or size > room * 0.93:
                break
        left, used = max(1, room - spoken_for), max(1, size - spoken_for)
        bytes_ = int(bytes_ * max(0.4, min(1.8, left * 0.965 / used)))
    return best


def size_of_texts(notes: Notes, count: Count) -> int:
    """Return the tokens of all user texts, with the lines that announce them."""
    blocks = [block for text in notes.texts for block in text.blocks]
    return count([Message("user", tuple(blocks), id="")]) + len(notes.texts) * AROUND // 4 if blocks else 0


def within(notes: Notes, target: int, count: Count) -> Sequence[Text]:
    """Return ``notes`` as blocks, with no more of the user's texts than messages of ``target`` tokens may have."""
    return written(_with_texts(notes, int(target * WORDS_SHARE), count))


def _with_texts(all_: Notes, room: int, count: Count) -> Notes:
    """Return ``all_`` with the texts in ``room`` tokens, and with facts of the parts that are cut or left out."""
    texts, tokens = all_.texts, size_of_texts(all_, count)
    if tokens <= room:
        return all_
    if room < 0:
        return replace(all_, texts=(), left_out=all_.left_out + LeftOut.of(texts))
    bytes_ = sum(text.size + AROUND for text in texts) * room / tokens
    shorter = allotted(texts, int(bytes_))
    left_out = all_.left_out
    said: list[Fact] = []
    for text, short in zip(texts, shorter, strict=True):
        if short is None:
            left_out += LeftOut(1, text.lines)
        said += spoken(text.round, text.lost(short or replace(text, head="", tail="")), text.place)
    texts = tuple(short for short in shorter if short)
    return replace(all_, texts=texts, facts=tuple(newest([*said, *all_.facts])), left_out=left_out)


def by_worth(facts: Sequence[Fact]) -> list[Fact]:
    """Sort facts by their worth in relation to their size."""
    return sorted(facts, key=lambda fact: -fact.score * _URGENCY.get(fact.kind, 1.0) / (fact.cost + 20) ** 0.6)


def pick(facts: Sequence[Fact], room: int) -> list[Fact]:
    """Return the first of ``facts`` within ``room`` bytes, in the order of the conversation."""
    steps = {fact.place: fact for fact in facts if fact.kind == "step"}
    left = room
    taken: dict[int, Fact] = {}
    spent: dict[str, int] = {}
    rounds: set[int] = set()
    for fact in facts:
        if left < 20:
            break
        if id(fact) in taken:
            continue
        wanted = [fact]
        step = steps.get(fact.step)
        if fact.kind == "seen" and step is not None and id(step) not in taken:
            wanted.append(step)
        cost = sum(item.cost for item in wanted)
        if fact.kind in PREFIX and fact.round not in rounds:
            cost += _HEADING
        kind = "code" if fact.kind == "seen" and code(fact.text) else fact.kind
        share = _SHARES.get(kind)
        used = spent.get(kind, 0)
        if cost > left or (share is not None and used + cost > share * room + (CODE if kind == "code" else 0)):
            continue
        left -= cost
        spent[kind] = used + cost
        taken |= {id(item): item for item in wanted}
        if fact.kind in PREFIX:
            rounds.add(fact.round)
    return sorted(taken.values(), key=lambda fact: (fact.round, fact.place))


# What a summary lacks: paths, addresses and figures of its source. By rules only; English and Chinese. User texts are
# not checked: they stay beside the summary.

HEADING = "## Facts that the notes above left out"
LONGEST_FACT = 240
"""Characters of one fact."""
SCANNED = 20_000
"""Characters of one text that are searched, half from either end."""
ARGUMENT = 400
"""Characters of one argument of a call in which paths are looked for."""
_URL = regex(r"\bhttps?://[^\s<>\"'`)\]}，。；、）】]{4,200}")
_PATH = regex(
    r"(?<![\w/.:])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,12}[\w.@+-]{1,80}(?<![.,:])"
    r"|(?<![\w/.])[\w-]{1,60}\.(?:py|md|ya?ml|json|jsonl|csv|tsv|toml|txt|sql|sh|js|ts|tsx|jsx|go|rs|java|c|h|cpp|html|css"
    r"|ipynb|parquet|xlsx|pdf|ini|cfg|lock|log|conf|env)\b"
)
_FIGURE = regex(
    r"(?<![\w.,/:-])[$€£¥]?\d[\d,]*(?:\.\d+)?(?:\s?(?:%|ms|s|min|h|kb|mb|gb|tb|kib|mib|gib|tokens?|rows?|users?|items?|files?"
    r"|requests?|errors?|days?|hours?|minutes?|seconds?|usd|eur|gbp|cny|rps|qps|k|m|bn|million|billion|万|亿|元|行|个|次|秒"
    r"|毫秒|分钟|小时|天|人|倍|条|件)(?![a-zA-Z]))?(?![\w/])",
    re.IGNORECASE,
)
_DATE = regex(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2})?|\d{1,4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日")
_SENTENCE = regex(r"[^\n。！？!?.]*(?:\.(?=\S)[^\n。！？!?.]*)*[。！？!?.]?")


def left_out(source: Sequence[Message], summary: str, room: int, count: Count) -> list[str]:
    """Return the facts of ``source`` that ``summary`` lacks, in at most ``room`` tokens: the most important kind first,
    in each kind the newest first."""
    found: list[str] = []
    held = _normal("\n".join([summary, *_theirs(source)]))
    spent = 0
    for fact, marks in _marked_facts(source):
        if all(_holds(held, _normal(mark)) for mark in marks):
            continue
        cost = count([user(fact)])
        if spent + cost > room:
            continue
        spent += cost
        found.append(fact)
        held += "\n" + _normal(fact)
    return found


def completed(source: Sequence[Message], summary: str, room: int, count: Count) -> tuple[str, int]:
    """Return ``summary`` with a list of missing facts at its end, and their number."""
    facts = left_out(source, summary, room, count)
    if not facts:
        return summary, 0
    return "\n".join([summary.rstrip(), "", HEADING, *(f"- {fact}" for fact in facts)]), len(facts)


def _holds(held: str, mark: str) -> bool:
    """Return whether ``mark`` is in ``held``. Numbers count whole: 12 is not in 4125, nor $12 in $125."""
    before = r"(?<![\d.])" if mark[:1].isdigit() else ""
    behind = r"(?!\d)" if mark[-1:].isdigit() else ""
    return re.search(f"{before}{re.escape(mark)}{behind}", held) is not None


def _marked_facts(source: Sequence[Message]) -> Iterator[tuple[str, Sequence[str]]]:
    """Return facts with the marks that a summary must have; otherwise the fact is added."""
    newest = list(reversed(source))
    spoken = [text for message in newest for text in _agent_texts(message)]
    yield from _named(_URL, spoken)
    yield from _named(_PATH, [*_arguments(newest), *spoken])
    for text in spoken:
        for sentence in _sentences(text):
            marks = [*_DATE.findall(sentence), *(mark for mark in map(_figure, _FIGURE.findall(sentence)) if mark)]
            if marks:
                yield sentence, marks


def _named(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for name in dict.fromkeys(found.rstrip(".,;:!?") for text in texts for found in pattern.findall(text)):
        yield name, (name.rstrip("/"),)


def _figure(found: str) -> str:
    """Return the number if it is informative: a single digit without a unit is not."""
    return re.sub(r"[^\d.,]+$", "", found).strip() if len(found.strip()) > 1 else ""


def _arguments(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                yield from (value[:ARGUMENT] for value in block.input.values() if isinstance(value, str))


def _agent_texts(message: Message) -> Iterator[str]:
    """Return the agent's texts, and those in the notes of an earlier compression."""
    if message.origin == "compaction":
        notes = read([message])
        yield from (fact.text for fact in notes.facts)
        yield from (named.text for named in notes.strings)
    elif message.role == "assistant":
        yield from (both_ends(block.text, SCANNED) for block in message.blocks if isinstance(block, Text))


def _theirs(source: Sequence[Message]) -> Iterator[str]:
    parts = rounds_of(source)
    for text in (*read(parts.earlier).texts, *(text for item in parts.rounds for text in texts_of(item))):
        yield from (both_ends(block.text, SCANNED) for block in text.blocks)


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.findall(text):
        sentence = " ".join(found.split()).strip("-*#> ")
        if len(sentence) > 2:
            yield clipped(sentence, LONGEST_FACT)


def _normal(text: str) -> str:
    return " ".join(text.replace(",", "").casefold().split())
