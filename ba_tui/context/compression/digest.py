"""What the notes that stand for old rounds hold: the person's texts first, and facts for the room that is left.

What a fact is stands in facts.py, how a text is cut in words.py, and what notes look like in notes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ba_tui.context.compression.facts import ConversationFacts, Fact, FactKind, newest, open_todos, spoken
from ba_tui.context.compression.keywords import code
from ba_tui.context.compression.ledger import picked
from ba_tui.context.compression.notes import PREFIX, LeftOut, Notes, read, written
from ba_tui.context.compression.rounds import Count, Round, opening
from ba_tui.context.compression.user_text import AROUND, allotted
from ba_tui.core.messages import Message, Text

WORDS_SHARE = 0.25
"""The part of all messages that texts of the person in earlier rounds have before one of them is cut."""
FACTS_SHARE = 0.3
"""The part of the notes that is left to facts, however much the person wrote."""
FACTS_LEAST, SMALL_SHARE = 300, 0.6
"""Tokens that facts have at least, where that is no more than this part of the notes."""
LEDGER, LEDGER_LEAST, SMALL_LEDGER = 0.25, 5_000, 0.7
"""The part of what texts leave that exact strings get at least; the bytes they get where other facts keep so many, as
in a small window they say most for their size."""
CODE = 600
"""Bytes that lines of code may have beyond their share: in short conversations they are most of what there is."""
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
"""How much of the room each section may take, and lines of code, so that none crowds out the rest."""


def notes_before(
    earlier: Sequence[Message],
    rounds: Sequence[Round],
    later: Sequence[Message],
    lost: Sequence[tuple[int, str]] = (),
    focus: str = "",
) -> Notes:
    """All that is to be known of ``rounds`` and of the notes ``earlier`` than them, where ``later`` stays as it is but
    for what is ``lost`` of the person's texts in it."""
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
    """The best of ``all_`` as opening messages of at most ``room`` tokens, of which the person's texts have at most
    ``words``; nothing when not even a line fits."""
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
    """Tokens of all texts of the person, with the lines that announce them."""
    blocks = [block for text in notes.texts for block in text.blocks]
    return count([Message("user", tuple(blocks), id="")]) + len(notes.texts) * AROUND // 4 if blocks else 0


def within(notes: Notes, target: int, count: Count) -> Sequence[Text]:
    """``notes`` as blocks, with no more of the person's texts than messages of ``target`` tokens may hold."""
    return written(_with_texts(notes, int(target * WORDS_SHARE), count))


def _with_texts(all_: Notes, room: int, count: Count) -> Notes:
    """``all_`` with the texts in ``room`` tokens, and with facts of what is cut or left out of them."""
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
    """Those first that are worth most for the room they take."""
    return sorted(facts, key=lambda fact: -fact.score * _URGENCY.get(fact.kind, 1.0) / (fact.cost + 20) ** 0.6)


def pick(facts: Sequence[Fact], room: int) -> list[Fact]:
    """The first of ``facts`` within ``room`` bytes, in the order of the conversation."""
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
