"""The notes that stand for old rounds: choosing facts for the room there is, writing them down, reading them again.

Every line says by its beginning what it is, so that a second compression finds the facts of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ba_tui.context.cues import code, line_score, prose_score
from ba_tui.context.facts import OPENING, OPENS, Fact, Facts, Kind, newest, open_todos
from ba_tui.context.rounds import Count, Round, opening
from ba_tui.core.messages import Message
from ba_tui.core.patterns import regex

HEAD = "Notes on the earlier rounds of this conversation, taken because it grew too long."
_HOW = "Nothing is lost: recall(round=N) gives a round whole, recall(query=…) finds words in all of them."
_SECTIONS: dict[Kind, str] = {
    "standing": "Standing instructions",
    "goal": "The first request",
    "todo": "Open todos",
    "decision": "Decisions",
    "trouble": "Errors not resolved",
    "note": "Summary so far",
    "file": "Files",
}
_KINDS: dict[str, Kind] = {title: kind for kind, title in _SECTIONS.items()}
_PREFIX: dict[Kind, str] = {"person": "> ", "said": "- ", "step": "", "seen": "  · "}
_URGENCY: dict[Kind, float] = {
    "standing": 12.0,
    "decision": 2.0,
    "todo": 12.0,
    "goal": 4.0,
    "trouble": 2.0,
    "note": 3.0,
    "person": 1.5,
}
_SHARES: dict[Kind, float] = {
    "standing": 0.4,
    "decision": 0.3,
    "todo": 0.2,
    "goal": 0.45,
    "trouble": 0.25,
    "file": 0.15,
    "note": 0.8,
}
"""How much of the room each section may take, so that none crowds out the rest."""
_HEADING = 14
_NUMBERED = regex(r"^- \[round (\d+)\] (.*)$")
_ROUND = regex(r"^## Round (\d+)$")
_BEFORE: dict[Kind, float] = {
    "standing": 9,
    "decision": 7,
    "goal": 8,
    "todo": 6,
    "trouble": 5,
    "note": 7,
    "person": 6,
    "file": 5,
}


def facts_before(
    earlier: Sequence[Message], rounds: Sequence[Round], later: Sequence[Message], focus: str = ""
) -> list[Fact]:
    """What is to be known of ``rounds`` and of the notes ``earlier`` than them, where ``later`` stays as it is."""
    facts = [*read(earlier), *Facts(rounds, focus, later).gather()]
    listed = open_todos(message for item in rounds for message in item.messages)
    if open_todos(later) is not None:
        listed = []
    if listed is not None:
        last = rounds[-1].number if rounds else 0
        facts = [fact for fact in facts if fact.kind != "todo"]
        facts += [Fact("todo", last, -1, text, 8.0) for text in listed]
    return newest(facts)


def pick(facts: Sequence[Fact], room: int) -> list[Fact]:
    """The facts that are worth most within ``room`` bytes, in their order."""
    steps = {fact.place: fact for fact in facts if fact.kind == "step"}
    ranked = sorted(facts, key=lambda fact: -fact.score * _URGENCY.get(fact.kind, 1.0) / (fact.cost + 20) ** 0.6)
    left = room
    taken: dict[int, Fact] = {}
    spent: dict[Kind, int] = {}
    rounds: set[int] = set()
    for fact in ranked:
        if left < 20:
            break
        if id(fact) in taken:
            continue
        wanted = [fact]
        step = steps.get(fact.step)
        if fact.kind == "seen" and step is not None and id(step) not in taken:
            wanted.append(step)
        cost = sum(item.cost for item in wanted)
        if fact.kind in _PREFIX and fact.round not in rounds:
            cost += _HEADING
        share = _SHARES.get(fact.kind)
        used = spent.get(fact.kind, 0)
        if cost > left or (share is not None and used + cost > share * room):
            continue
        left -= cost
        spent[fact.kind] = used + cost
        taken |= {id(item): item for item in wanted}
        if fact.kind in _PREFIX:
            rounds.add(fact.round)
    return sorted(taken.values(), key=lambda fact: (fact.round, fact.place))


def written(chosen: Sequence[Fact]) -> str:
    """``chosen`` as notes."""
    parts = [f"{HEAD}\n{_HOW}"]
    for kind, title in _SECTIONS.items():
        of_kind = [fact for fact in chosen if fact.kind == kind]
        if of_kind:
            parts.append("\n".join([f"## {title}", *(_section_line(fact) for fact in of_kind)]))
    rounds: dict[int, list[Fact]] = {}
    for fact in chosen:
        if fact.kind in _PREFIX:
            rounds.setdefault(fact.round, []).append(fact)
    parts += ["\n".join([f"## Round {number}", *_runs(items)]) for number, items in rounds.items()]
    return "\n\n".join(parts)


def _section_line(fact: Fact) -> str:
    return fact.text if fact.kind in ("goal", "note") else f"- [round {fact.round}] {fact.text}"


def _runs(items: Iterable[Fact]) -> Iterator[str]:
    """The lines of a round; the same call several times in a row is one."""
    last, times = "", 0
    for fact in items:
        line = f"{_PREFIX[fact.kind]}{fact.text}"
        if line == last:
            times += 1
            continue
        if last:
            yield last if times == 1 else f"{last} (×{times})"
        last, times = line, 1
    if last:
        yield last if times == 1 else f"{last} (×{times})"


def read(messages: Sequence[Message]) -> list[Fact]:
    """The facts in the notes that an earlier compression left; what it did not write itself reads as a summary."""
    facts: list[Fact] = []
    for message in messages:
        if message.role == "user" and message.text.strip():
            before = len(facts)
            facts += [_moved(fact, before) for fact in _read(message.text)]
    # They come before anything that the rounds hold.
    return [_moved(fact, -len(facts)) for fact in facts]


def _moved(fact: Fact, by: int) -> Fact:
    return replace(fact, place=fact.place + by, step=fact.step + by if fact.kind == "seen" else -1)


def _read(text: str) -> Iterator[Fact]:
    own = text.startswith(HEAD)
    kind: Kind | None = None if own else "note"
    number = step = opened = 0
    place = -1
    for line in text.splitlines()[2 if own else 0 :]:
        if not line.strip():
            continue
        if own and line.startswith("## "):
            heading = _ROUND.match(line)
            number = int(heading[1]) if heading else 0
            kind = None if heading else _KINDS.get(line[3:], "note")
            continue
        if not own and line.startswith("## "):
            # What stands before a model's summary, because no summary may lose it.
            kind = _KINDS.get(line[3:], "note")
            if kind in ("goal", "todo"):
                continue
            kind = "note"
        place += 1
        if kind is not None:
            numbered = _NUMBERED.match(line) if kind not in ("goal", "note") else None
            round_ = int(numbered[1]) if numbered else 1
            opens = kind == "goal" and opened < OPENING
            opened += opens
            text = numbered[2] if numbered else line
            yield Fact(kind, round_, place, text, _BEFORE[kind] + (OPENS if opens else 0.0))
        elif line.startswith(("✓", "✗")):
            step = place
            yield Fact("step", number, place, line, 2.0)
        else:
            yield _word(line, number, place, step)


def _word(line: str, number: int, place: int, step: int) -> Fact:
    """A line of a round. It was chosen once for what it says, and counts for that again."""
    if line.startswith(_PREFIX["seen"]):
        text = line.removeprefix(_PREFIX["seen"])
        return Fact("seen", number, place, text, 0.8 + min(1.0 if code(text) else 9.0, line_score(text)), step)
    if line.startswith(_PREFIX["person"]):
        return Fact("person", number, place, line.removeprefix(_PREFIX["person"]), _BEFORE["person"])
    text = line.removeprefix(_PREFIX["said"])
    return Fact("said", number, place, text, 1.5 + prose_score(text))


def notes(facts: Sequence[Fact], room: int, count: Count) -> tuple[Message, ...]:
    """The best of ``facts`` as opening messages of at most ``room`` tokens; nothing when not even a line fits."""
    if not facts:
        return ()
    bytes_ = room * 3
    best: tuple[Message, ...] = ()
    for _ in range(5):
        chosen = pick(facts, bytes_)
        if not chosen:
            break
        made = opening(written(chosen))
        size = count(made)
        if size <= room:
            best = made
            if len(chosen) == len(facts) or size > room * 0.93:
                break
        bytes_ = int(bytes_ * max(0.4, min(1.8, room * 0.965 / max(1, size))))
    return best
