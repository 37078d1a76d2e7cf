"""Memories with questions and the evidence for each, read from JSON lines or from the file of public facts.

A case is ``{id, memories: [{id, text, time, speaker?, session?}], questions: [{id, text, evidence: [ids]}]}``. Memories
stand in their order. Everything but texts and evidence may be missing; unknown fields are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import KINDS, Entry
from ba_tui.features.memory.engine.dates import spans
from ba_tui.features.memory.engine.entries import day_of
from ba_tui.features.memory.engine.index import asks

_SLASHES = re.compile(r"\b(\d{4})/(\d\d?)/(\d\d?)\b")
_NUMBER = re.compile(r"\d{9,13}(\.\d+)?")
_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: in seconds they would lie after the year 5138."""
_APART = 6 * 3600
"""Seconds between two memories without sessions from which the later one begins a new conversation."""
_ASKING = 0.02
"""Share of memories that end with a question from which a list without any metadata counts as a conversation."""


class BadCases(ValueError):
    """The file of cases cannot be read. The message is for people."""


@dataclass
class Asked:
    """A question; ``evidence`` are ids of entries, all of which should be found."""

    text: str
    evidence: tuple[str, ...]
    kind: str = ""
    today: date | None = None


@dataclass
class Case:
    """Entries of one memory, and what it is asked."""

    id: str
    entries: list[Entry] = field(default_factory=list[Entry])
    questions: list[Asked] = field(default_factory=list[Asked])


def loaded(path: Path, *, bare: bool = False) -> list[Case]:
    """The cases in ``path``: JSON lines, a JSON list, or the public facts in one object. Raises BadCases."""
    try:
        text = path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise BadCases(f"Cannot read {path}: {error.strerror}.") from error
    return [case_of(value, bare=bare) for value in _values(text)]


def case_of(value: Mapping[str, Any], *, bare: bool = False) -> Case:
    """The case in a JSON object; ``bare``: without the speakers, sessions and times in it."""
    memories = [each for each in _listed(value, "memories") if isinstance(each.get("text"), str)]
    if bare:
        memories = [{name: each[name] for name in ("id", "text", "kind") if name in each} for each in memories]
    case = Case(str(value.get("id", "")), list(_entries(memories)))
    last = day_of(max((each.at for each in case.entries), default=0.0))
    for each in _listed(value, "questions"):
        evidence = each.get("evidence", [])
        ids = cast("list[Any]", evidence) if isinstance(evidence, list) else [evidence]
        if isinstance(text := each.get("text"), str) and ids:
            today = None if bare else day_of(seconds(each.get("time"))) or last
            case.questions.append(
                Asked(text, tuple(clean_text(str(id)) for id in ids), str(each.get("kind", "")), today)
            )
    return case


def seconds(time: Any) -> float:
    """A time as seconds since 1970, 0 when it is unknown: ISO, seconds, milliseconds, or with a date written out."""
    if isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time):
        return time / 1000 if time > _MILLISECONDS else float(time)
    if not isinstance(time, str):
        return 0.0
    if _NUMBER.fullmatch(time.strip()):
        return seconds(float(time))
    try:
        found = datetime.fromisoformat(time.strip())
    except ValueError:
        named = spans(_SLASHES.sub(_with_dashes, time))
        found = datetime.fromordinal(named[0].first) if named else None
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp() if found else 0.0


def _with_dashes(match: re.Match[str]) -> str:
    return f"{match[1]}-{int(match[2]):02}-{int(match[3]):02}"


def _values(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of cases in ``text``."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = [_line(line, number) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if isinstance(whole, dict) and "documents" in whole:
        yield from _public(cast("Mapping[str, Any]", whole))
        return
    for each in cast("list[Any]", whole if isinstance(whole, list) else [whole]):
        if not isinstance(each, dict):
            raise BadCases("Each case must be a JSON object with memories and questions.")
        yield cast("Mapping[str, Any]", each)


def _line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise BadCases(f"Line {number} is not valid JSON: {error}.") from error


def _public(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name, documents in value["documents"].items():
        questions = [
            {"text": each["question"], "evidence": each["evidence"], "kind": "fact"}
            for each in value["questions"]
            if each["scenario"] == name
        ]
        yield {"id": name, "memories": documents, "questions": questions}


def _listed(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name)
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]


def _entries(memories: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    kind = "turn" if _converse(memories) else "fact"
    session, part, before = "", 0, 0.0
    for place, each in enumerate(memories):
        at = seconds(each.get("time"))
        if at and before and abs(at - before) > _APART:
            part += 1
        session, before = str(each.get("session") or session), at or before
        own = each.get("kind") if each.get("kind") in KINDS else kind
        yield Entry(
            clean_text(str(each.get("id", place))),
            clean_text(each["text"]),
            kind=own or "fact",
            session=clean_text(session) or f"part {part}",
            sequence=place,
            speaker=clean_text(str(each.get("speaker") or "")),
            at=at,
        )


def _converse(memories: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the memories are turns of conversations: they have speakers or sessions, or people ask each other."""
    if any(each.get("speaker") or each.get("session") for each in memories):
        return True
    return sum(asks(each["text"]) for each in memories) > _ASKING * len(memories)
