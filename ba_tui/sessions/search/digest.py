"""What lists and searches know of a session: a fold over its lines that can go on where it stopped.

Pure but for ``digest``, which reads the file. Keeping the result is the index's business.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import is_note
from ba_tui.core.ports.sessions import title_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.migrations import OURS, SCHEMA_VERSION, Record, Schema
from ba_tui.sessions.records import HEADER, MAIN, Header, emptied, loads, number, read_header, version_of
from ba_tui.sessions.timeline import Timeline

_PREVIEW = 120
_PROMPT = 4_000
_SEARCHED = 200_000
_GUARD = 64
_NEWER = "Written by a newer ba."
EMPTIED = "Its file is empty."
_SKIPPED = tuple(
    f'"type":"{kind}"}}\n'.encode()
    for kind in ("tool_finished", "tool_started", "asked", "answered", "judged", "checkpointed", "skills_changed")
)
"""Ends of lines that hold nothing for a list: most of the bytes of a session."""
AHEAD = 120.0
"""Seconds by which clocks may differ."""


@frozen
class Digest:
    """``read`` bytes of the file are in it, and ``guard`` is what stood before that place."""

    id: str
    schema: int = SCHEMA_VERSION
    cwd: bytes = b""
    """As the file system has it."""
    created: float = 0.0
    updated: float = 0.0
    title: str = ""
    turns: int = 0
    cost: float | None = None
    unpriced: bool = False
    model: str = ""
    preview: str = ""
    unattended: bool = False
    search_text: str = ""
    """Title and prompts, case folded, for searching."""
    timeline: str = ""
    """Which turns stand; see timeline."""
    read: int = 0
    guard: bytes = b""

    def used(self, changed: float, now: float) -> float:
        """When the session was used last. Times in the future come of a wrong clock: then the time at which its file
        was ``changed`` counts, so that it is not the newest session for ever."""
        latest, believed = max(self.updated, self.created), now + AHEAD
        if latest <= believed:
            return latest
        return max((each for each in (changed, self.updated, self.created) if each <= believed), default=0.0)


def digest(path: Path, earlier: Digest | None = None, schema: Schema = OURS) -> Digest:
    """The digest of a session file; reads on from ``earlier`` when the file has only grown since."""
    with open_regular(path) as file:
        known = earlier if earlier and _grown(file.seek, file.read, earlier) else None
        if known is None:
            known = _opened(path, read_header(path))
        if known.schema > schema.version:
            return known
        file.seek(known.read)
        last, read = b"", known.read
        for line in file:
            if not line.endswith(b"\n"):
                break
            last = line
            read += len(line)
            if line.endswith(_SKIPPED):
                continue
            known = _with(known, line, schema)
            if known.schema > schema.version:
                return replace(known, read=0, preview=_NEWER)
    return replace(known, read=read, guard=last[-_GUARD:]) if last else known


def _grown(seek: Any, read: Any, earlier: Digest) -> bool:
    """True when what was read before still stands where it stood."""
    if not earlier.read or earlier.schema > SCHEMA_VERSION:
        return False
    seek(earlier.read - len(earlier.guard))
    return read(len(earlier.guard)) == earlier.guard


def _opened(path: Path, header: Header | None) -> Digest:
    if header is None:
        preview = EMPTIED if emptied(path) else ""
        return Digest(path.parent.name, created=path.stat().st_mtime, preview=preview)
    preview = _NEWER if header.schema_version > SCHEMA_VERSION else ""
    return Digest(
        header.id,
        header.schema_version,
        os.fsencode(header.cwd),
        header.created,
        header.created,
        model=header.model,
        preview=preview,
        unattended=header.unattended,
    )


def _with(known: Digest, line: bytes, schema: Schema) -> Digest:
    record = loads(line)
    if record is None:
        return known
    if record.get("type") == HEADER:
        unattended = bool(record.get("unattended"))
        return replace(known, schema=version_of(record, known.schema), unattended=unattended)
    return _fold(known, schema.migrate(record, known.schema))


def _fold(known: Digest, record: Record) -> Digest:
    """All that a record changes in one go: there are many of them."""
    changed: dict[str, Any] = {}
    match record:
        case {"type": "turn_started", "agent": str(agent), "prompt": {"blocks": [*blocks]}} if agent == MAIN:
            changed = _begun(known, _text(blocks))
        case {"type": "rewound", "agent": str(agent), "turns": int(turn)} if agent == MAIN:
            timeline = Timeline.load(known.timeline)
            timeline.rewind(turn)
            preview = _last_prompt(record.get("messages"))
            changed = {"turns": len(timeline.numbers()), "timeline": timeline.dump(), "preview": preview}
        case {"type": "message_done" | "compressed", "cost": int() | float() as cost}:
            if cost and not known.unpriced:
                changed = {"cost": (known.cost or 0.0) + number(cost)}
            elif known.cost is None and not known.unpriced and record["type"] == "message_done":
                changed = {"cost": 0.0}
        case {"type": "message_done", "cost": None, "message": {"usage": dict()}}:
            changed = {"cost": None, "unpriced": True}
        case {"type": "compressed", "cost": None, "strategy": "summarize"} | {
            "type": "compressed",
            "cost": None,
            "usage": dict(),
        }:
            changed = {"cost": None, "unpriced": True}
        case {"type": "titled", "title": str(title)}:
            search_text = f"{title.casefold()}\n{known.search_text}"[:_SEARCHED]
            return replace(known, title=one_line(title), search_text=search_text)
        case {"type": "model_changed", "model": str(model)}:
            return replace(known, model=model)
        case {"type": "turn_ended" | "message_done"}:
            pass
        case _:
            return known
    return replace(known, updated=number(record.get("at")) or known.updated, **changed)


def _begun(known: Digest, prompt: str) -> dict[str, Any]:
    timeline = Timeline.load(known.timeline)
    timeline.begin()
    return {
        "turns": known.turns + 1,
        "title": known.title or one_line(title_of(prompt)),
        "search_text": f"{known.search_text}\n{prompt[:_PROMPT].casefold()}"[-_SEARCHED:],
        "preview": one_line(prompt, _PREVIEW),
        "timeline": timeline.dump(),
    }


def _last_prompt(messages: object) -> str:
    """The preview after a rewind: what the person said last of what stands."""
    for message in reversed(cast("list[Any]", messages)) if isinstance(messages, list) else ():
        match message:
            case {"role": "user", "origin": "user", "hidden": False, "blocks": [*blocks]}:
                return one_line(_text(blocks), _PREVIEW)
            case _:
                pass
    return ""


def _text(blocks: list[Any]) -> str:
    """The words of the person; notes of ba's own may stand beside them."""
    texts = (cast("Record", block).get("text") for block in blocks if isinstance(block, dict))
    return paintable("\n".join(text for text in texts if isinstance(text, str) and not is_note(text)))
