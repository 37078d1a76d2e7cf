"""Memories with questions and the evidence for each: handwritten dialogues and facts, JSON lines, and public facts.

A dialogue names its speakers (``D = Devon``), begins a session with a date (``# 2023-03-04 12:10``) and has a line for
each turn (``A5: …``, with a number where a question refers to it). Questions follow: ``Q kind 5 9: …``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ba_tui.core.ports.memory import Entry

HERE = Path(__file__).parent
_NAME = re.compile(r"(\w+) = (.*)")
_SESSION = re.compile(r"# (\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?")
_TURN = re.compile(r"([A-Z])(\d*): (.*)")
_QUESTION = re.compile(r"Q (\w+) ([\d ]+): (.*)")


@dataclass
class Asked:
    """A question; ``evidence`` are ids of entries, all of which should be found."""

    text: str
    evidence: tuple[str, ...]
    kind: str = ""
    today: date | None = None


@dataclass
class Case:
    id: str
    entries: list[Entry] = field(default_factory=list[Entry])
    questions: list[Asked] = field(default_factory=list[Asked])


def handwritten() -> list[Case]:
    """The dialogues and facts beside this file."""
    return [written(path) for path in sorted((*HERE.glob("dialogues/*.txt"), *HERE.glob("facts/*.txt")))]


def written(path: Path) -> Case:
    case, names, session, at, numbers = Case(path.stem), dict[str, str](), 0, 0.0, dict[str, str]()
    for line in path.read_text("utf-8").splitlines():
        if found := _NAME.fullmatch(line):
            names[found[1]] = found[2]
        elif found := _SESSION.fullmatch(line):
            session += 1
            at = datetime.fromisoformat(f"{found[1]} {found[2] or '12:00'}").replace(tzinfo=UTC).timestamp()
        elif found := _QUESTION.fullmatch(line):
            today = datetime.fromtimestamp(at, UTC).date() if at else None
            case.questions.append(Asked(found[3], tuple(numbers[each] for each in found[2].split()), found[1], today))
        elif found := _TURN.fullmatch(line):
            speaker, id = names.get(found[1], ""), f"{path.stem}-{len(case.entries)}"
            if found[2]:
                numbers[found[2]] = id
            entry = Entry(id, found[3], at=at)
            if speaker:
                place = len(case.entries)
                entry = replace(entry, kind="turn", session=f"s{session}", sequence=place, speaker=speaker)
            case.entries.append(entry)
    return case


def loaded(path: Path) -> list[Case]:
    """JSON lines ``{id, memories, questions}``, or the public facts in one object."""
    text = path.read_text("utf-8")
    if text.lstrip().startswith('{"documents"'):
        return list(_public(json.loads(text)))
    return [_case(json.loads(line)) for line in text.splitlines() if line.strip()]


def _case(value: dict[str, Any]) -> Case:
    case = Case(str(value["id"]))
    for number, each in enumerate(value["memories"]):
        turn = bool(each.get("speaker") or each.get("session"))
        case.entries.append(
            Entry(
                str(each["id"]), each["text"], "turn" if turn else "fact", session=str(each.get("session") or "s"),
                sequence=number, speaker=each.get("speaker") or "", at=_seconds(each.get("time")),
            )
        )  # fmt: skip
    last = max((each.at for each in case.entries), default=0.0)
    today = datetime.fromtimestamp(last, UTC).date() if last else None
    for each in value["questions"]:
        case.questions.append(Asked(each["text"], tuple(map(str, each["evidence"])), each.get("kind", ""), today))
    return case


def _seconds(time: Any) -> float:
    if not isinstance(time, str):
        return float(time or 0)
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return 0.0
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()


def _public(value: dict[str, Any]) -> Iterator[Case]:
    for name, documents in value["documents"].items():
        case = Case(name, [Entry(each["id"], each["text"]) for each in documents])
        for each in value["questions"]:
            if each["scenario"] == name and each["evidence"]:
                case.questions.append(Asked(each["question"], tuple(each["evidence"]), "fact"))
        yield case
