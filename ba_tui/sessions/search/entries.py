"""What can be searched for in a line of a session: prompts, answers, what tools were called with, what they gave.

Pure. Long texts count by their beginning, those of tools also by their end, where errors stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ba_tui.core.messages import is_note
from ba_tui.core.values import frozen
from ba_tui.sessions.migrations import Record

SAID = 20_000
CALLED = 1_000
HEAD, TAIL = 2_000, 500
LONGEST_LINE = 8_000_000
_READ = tuple(f'"type":"{kind}"'.encode() for kind in ("turn_started", "steered", "message_done", "tool_finished"))


def searched(line: bytes) -> bool:
    """False for lines without words of their own, among them those that repeat what was said."""
    return len(line) <= LONGEST_LINE and any(kind in line[-64:] for kind in _READ)


@frozen
class SessionEntry:
    """``who`` is ``you``, ``ba`` or ``tool``."""

    who: str
    text: str


def entry(record: Record) -> SessionEntry | None:
    """None for a record that holds no words."""
    match record:
        case {"type": "turn_started", "prompt": {"blocks": [*blocks]}}:
            return _entry("you", _words(blocks))
        case {"type": "steered", "message": {"hidden": False, "blocks": [*blocks]}}:
            return _entry("you", _words(blocks))
        case {"type": "message_done", "message": {"blocks": [*blocks]}}:
            return _entry("ba", _words(blocks))
        case {"type": "tool_finished", "result": {"text": str(text)}}:
            short = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n…\n{text[-TAIL:]}"
            return _entry("tool", short)
        case _:
            return None


def _entry(who: str, text: str) -> SessionEntry | None:
    return SessionEntry(who, text) if text.strip() else None


def _words(blocks: list[Any]) -> str:
    return "\n".join(_texts(blocks))[:SAID]


def _texts(blocks: list[Any]) -> Iterator[str]:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if not is_note(text):
                yield text
            case {"type": "tool_use", "name": str(name), "input": given}:
                yield f"{name} {' '.join(_strings(given))[:CALLED]}"
            case _:
                pass


def _strings(given: Any) -> Iterator[str]:
    """The texts in a call's arguments."""
    if isinstance(given, str):
        yield given[:CALLED]
    elif isinstance(given, dict):
        for value in cast("dict[str, Any]", given).values():
            yield from _strings(value)
    elif isinstance(given, list):
        for value in cast("list[Any]", given):
            yield from _strings(value)
