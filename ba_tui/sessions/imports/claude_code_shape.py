"""The shape of one of Claude Code's transcripts: which records are the conversation, which a sub-agent's, which gone.

Works on skeletons, so that a transcript of any size fits in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import cast

from ba_tui.sessions.imports.claude_code_blocks import content_blocks, sound
from ba_tui.sessions.imports.values import text_of
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import MAIN

TITLES = ("summary", "ai-title", "custom-title")
"""Kinds of records that hold a title, the least telling first."""
_LATEST = 4e9
"""Seconds: no transcript is of a time after that."""


_BONES = (
    *(
        "type",
        "subtype",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "leafUuid",
        "sessionId",
        "cwd",
        "timestamp",
        "agentId",
    ),
    *("isSidechain", "customTitle", "aiTitle", "summary", "title"),
)


def skeleton(record: Record) -> Record:
    """What the shape of the conversation needs of a record: no words but titles."""
    record = sound(record)
    thin: Record = {key: record[key] for key in _BONES if key in record}
    message = record.get("message")
    if isinstance(message, dict):
        said = cast("Record", message)
        calls = [
            {key: block[key] for key in ("type", "id", "tool_use_id") if key in block}
            for block in content_blocks(record)
            if block.get("type") in ("tool_use", "tool_result")
        ]
        thin["message"] = {**{key: said[key] for key in ("id", "model") if key in said}, "content": calls}
    return thin


def unique(records: Iterable[Record]) -> list[Record]:
    """A resumed session repeats what was said before, under the same ids."""
    found: dict[str, Record] = {}
    for index, record in enumerate(records):
        found.setdefault(text_of(record, "uuid") or f"#{index}", record)
    return list(found.values())


def current_line(talk: Sequence[Record], records: Sequence[Record]) -> list[Record]:
    """Without the branches that were gone back from: what the newest entry goes back to, what belongs to it, and all
    that goes back to nothing: some versions and tools write no parent, or one that the file does not hold."""
    if not talk or not all(record.get("uuid") for record in talk):
        return list(talk)
    parents = {text_of(record, "uuid"): _parent(record) for record in records if record.get("uuid")}
    line = _line([text_of(record, "uuid") for record in talk], parents)
    answers = {message_id(record) for record in talk if record["uuid"] in line} - {""}
    branches = _branches(parents, line)
    kept = [record for record in talk if record["uuid"] not in branches or message_id(record) in answers]
    keep = {record["uuid"] for record in kept}
    calls = {call for record in kept for call in _ids(record, "tool_use", "id")}
    return [record for record in talk if record["uuid"] in keep or calls & _ids(record, "tool_result", "tool_use_id")]


def _parent(record: Record) -> str:
    return text_of(record, "parentUuid") or text_of(record, "logicalParentUuid")


def _line(talk: Sequence[str], parents: Mapping[str, str]) -> set[str]:
    """What the newest of ``talk`` goes back to. Where that breaks off, the line goes on with what stands before."""
    places = {id: place for place, id in enumerate(talk)}
    line: set[str] = set()
    first = len(talk)
    while first:
        at = talk[first - 1]
        first -= 1
        while at in parents and at not in line:
            line.add(at)
            first = min(first, places.get(at, first))
            at = parents[at]
    return line


def _branches(parents: Mapping[str, str], line: Set[str]) -> set[str]:
    """The ids that go back to one on ``line`` without being on it."""
    found: set[str] = set()
    rooted: set[str] = set()
    for start in parents:
        way: list[str] = []
        at = start
        while at in parents and at not in line and at not in found and at not in rooted:
            rooted.add(at)
            way.append(at)
            at = parents[at]
        if way and (at in line or at in found):
            found.update(way)
    return found


def threads_of(aside: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The sub-agents' own conversations, by whom they go back to."""
    roots: dict[str, int] = {}
    threads: dict[int, list[Record]] = {}
    for record in aside:
        parent = text_of(record, "agentId") or text_of(record, "parentUuid")
        place = roots.setdefault(parent, len(threads)) if record.get("agentId") else roots.get(parent, len(threads))
        roots[text_of(record, "uuid")] = place
        threads.setdefault(place, []).append(record)
    return [(f"{MAIN}/task-{place + 1}", thread) for place, thread in threads.items()]


def titled(records: Sequence[Record]) -> str:
    """The latest title of the most telling kind. Summaries of other sessions stand in the same file."""
    known = {text_of(record, "uuid") for record in records}
    for kind in reversed(TITLES):
        for record in reversed(records):
            elsewhere = kind == "summary" and text_of(record, "leafUuid") not in {*known, ""}
            if record.get("type") == kind and (title := _title(record)) and not elsewhere:
                return title
    return ""


def _title(record: Record) -> str:
    return next((text for key in ("customTitle", "aiTitle", "summary", "title") if (text := text_of(record, key))), "")


def message_id(record: Record) -> str:
    return text_of(cast("Record", record["message"]), "id") if record.get("type") == "assistant" else ""


def _ids(record: Record, kind: str, key: str) -> set[str]:
    if "message" not in record:
        return set()
    return {text_of(block, key) for block in content_blocks(record) if block.get("type") == kind}


def seconds_of(record: Record) -> float:
    try:
        found = datetime.fromisoformat(text_of(record, "timestamp")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return found if 0 < found < _LATEST else 0.0
