"""Shortens the text of a result by its kind (JSON, table, listing …) to the level brief or standard. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from ba_tui.core.results import Kind, OutputLevel
from ba_tui.core.text.wording import clipped, count
from ba_tui.processes.terminal_text import cut_away
from ba_tui.sessions.artifact_contents import LOOK, WHOLE, outline, parse_json

ROOM: Mapping[OutputLevel, int] = {"brief": 200, "standard": 30_000, "full": 60_000}
"""Characters of a result that is not shortened."""
BRIEF_FACTS = 240
BRIEF_WORDS = 100
BRIEF_ERROR = 1_000
NOTE = 80
"""Characters of the longest note on omitted text, without its reference."""

Format: TypeAlias = Callable[[str, OutputLevel, int, str], str]
"""Shortens ``text``, which exceeds ``room``; ``rest`` names the place of the whole (``; whole: …``) or is empty."""


def shortened(text: str, kind: Kind, level: OutputLevel, rest: str) -> str:
    """Return ``text`` shortened for ``level``; unchanged if it fits."""
    room = ROOM[level]
    return text if len(text) <= room else FORMATS[kind](text, level, room, rest)


def head_and_tail(text: str, room: int, rest: str = "", *, noun: str = "line", share: float = 0.5) -> str:
    """Return the beginning (``share`` of the room) and the end of ``text`` within ``room`` characters, cut at line
    ends.

    A line is split only if it is longer than half of its part.
    """
    if len(text) <= room:
        return text
    inner = room - NOTE - len(rest)
    if inner <= 0:
        return f"[… {len(text):,} characters …]"[: max(0, room)]
    first = int(inner * share)
    head, tail = text[:first], text[len(text) - (inner - first) :] if inner > first else ""
    if (end := head.rfind("\n") + 1) > len(head) // 2:
        head = head[:end]
    if not tail or text[len(text) - len(tail) - 1] != "\n":
        tail = tail[start:] if 0 < (start := tail.find("\n") + 1) <= len(tail) // 2 else tail
    left = text[len(head) : len(text) - len(tail)]
    whole = head.endswith("\n") and (left.endswith("\n") or not tail)
    lines, size = cut_away(left)
    words = f"{count(lines + (not left.endswith(chr(10))), noun)}, " if whole else ""
    note = f"[… {words}{count(size, 'character')} left out{rest} …]"
    return f"{head}{'' if head.endswith(chr(10)) or not head else chr(10)}{note}\n{tail}"


def _text(text: str, level: OutputLevel, room: int, rest: str) -> str:
    if level != "brief":
        return head_and_tail(text, room, rest)
    first = " ".join(text[:LOOK].strip().split("\n", 1)[0][: BRIEF_WORDS // 2].split())
    *_, before, last = "", *text[-LOOK:].strip().rsplit("\n", 2)
    # A note such as [exit code 1] is clearer with the line before it.
    ending = f"{before} {last}" if last.startswith("[") else last
    last = " ".join(ending[-(BRIEF_WORDS - len(first)) :].split())
    lines, size = _size(text)
    return f"{count(lines, 'line')}, {count(size, 'character')}: “{first}” … “{last}”{_noted(rest)}"


def _json(text: str, level: OutputLevel, room: int, rest: str) -> str:
    if level == "brief":
        return _outlined(text, "json", rest) or _text(text, level, room, rest)
    if len(text) > WHOLE:
        return head_and_tail(text, room, rest)
    try:
        shown = _parts(parse_json(text), room - NOTE - len(rest))
    except (ValueError, RecursionError):
        shown = ""
    return f"{shown}{_noted(rest)}" if shown else head_and_tail(text, room, rest)


def _parts(value: Any, room: int) -> str:
    match value:
        case list():
            return _items(cast("list[Any]", value), room)
        case dict():
            return _pairs(cast("dict[str, Any]", value), room)
        case _:
            return ""


def _items(items: list[Any], room: int) -> str:
    """Return the first items that fit, one per line; empty if none fits."""
    shown: list[str] = []
    for item in items:
        line = json.dumps(item, ensure_ascii=False)
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    if not shown:
        return ""
    return "\n".join([f"An array of {count(len(items), 'item')}, the first {len(shown):,}:", *shown])


def _pairs(pairs: Mapping[str, Any], room: int) -> str:
    """Return the keys that fit, each with its value, or with the value's type and size if that is too long."""
    share = max(200, room // max(1, len(pairs)))
    shown: list[str] = []
    for key, value in pairs.items():
        line = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        if len(line) > share:
            line = f"{line[: share - 80]}… ({_made_of(value)})"
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    left = f", the first {len(shown):,}" if len(shown) < len(pairs) else ""
    return "\n".join([f"An object of {count(len(pairs), 'key')}{left}:", *shown]) if shown else ""


def _made_of(value: Any) -> str:
    match value:
        case list():
            return f"array of {count(len(cast('list[Any]', value)), 'item')}"
        case dict():
            return f"object of {count(len(cast('dict[str, Any]', value)), 'key')}"
        case _:
            return f"{count(len(str(value)), 'character')} in all"


def _rows(kind: Kind, noun: str) -> Format:
    """Return a format for lines of which the first are the most useful."""

    def shorten(text: str, level: OutputLevel, room: int, rest: str) -> str:
        if level == "brief":
            return _outlined(text, kind, rest) or _text(text, level, room, rest)
        return head_and_tail(text, room, rest, noun=noun, share=0.9)

    return shorten


def _outlined(text: str, kind: Kind, rest: str) -> str:
    """Return the key facts of structured text; empty if there are none."""
    part = text[: WHOLE if kind in {"json", "table"} and len(text) <= WHOLE else LOOK]
    lines, size = _size(text)
    facts = outline(part, kind, lines, whole=len(part) == size)
    if facts is None:
        return ""
    facts = clipped(facts, BRIEF_FACTS)
    return f"Found {facts}{_noted(rest)}"


def _size(text: str) -> tuple[int, int]:
    """Return the number of lines and characters that ``text`` had before parts were left out."""
    lines, size = cut_away(text)
    return lines + (not text.endswith("\n")), size


def _noted(rest: str) -> str:
    return f"\n[{rest.removeprefix('; ')}]" if rest else ""


FORMATS: Mapping[Kind, Format] = {
    "text": _text,
    "json": _json,
    "table": _rows("table", "row"),
    "listing": _rows("listing", "entry"),
    "hits": _rows("hits", "line"),
}


def failed(text: str, level: OutputLevel, rest: str, wording: str) -> str:
    """Return the text of a failed call: ``wording``, the failure's own text, unchanged, and the printed output
    shortened."""
    room = ROOM[level]
    if len(text) <= room:
        return text
    if level != "brief":
        return head_and_tail(text, room, rest)
    before, _, printed = text.partition(f"{wording}\n")
    if not printed:
        return head_and_tail(text, BRIEF_ERROR, rest)
    after = printed if len(printed) <= ROOM["brief"] else _text(printed, "brief", 0, rest)
    return f"{head_and_tail(before + wording, BRIEF_ERROR)}\n{after}"
