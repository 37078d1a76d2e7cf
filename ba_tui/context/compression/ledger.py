"""Exact strings of a conversation that later steps may need: paths, names and figures, ranked by how they were used.

A string that the model wrote again after it was first seen (read, edited, cited) is likely to be needed again; one of
hundreds in a printed table is not. No list of words is needed, so this works for any language and any tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log2
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from ba_tui.context.compression.facts import changes, paths
from ba_tui.context.compression.user_text import size
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, is_reminder
from ba_tui.core.text.patterns import regex

StringKind: TypeAlias = Literal["changed", "path", "name", "figure", "error"]
"""``changed``: a path that a call of the model wrote to; ``error``: a line that names an error."""
LONGEST = 160
"""Bytes of one string."""
SCANNED, LOG = 20_000, 50_000
"""Characters of a text that are searched, half from either end: for strings, and for lines that name an error."""
WROTE, READ, AWAY, AMONG, SIZE = 1.0, -0.4, -0.25, -0.75, -0.35
"""What each doubling adds: of the messages in which the model wrote a string, of those in which it only read it, of the
messages since then, of the strings beside it, and of its bytes. Measured on runs of agents: the logarithm of the odds
that a string is used again, less that of the room it takes."""
KINDS: Mapping[StringKind, float] = {"changed": 2.4, "path": 0.0, "name": 0.3, "figure": 0.5, "error": 1.0}
"""What the kind of a string adds."""
ERRORS, ERRORS_LEAST = 0.5, 160
"""The part of the room that lines that name an error may take; the bytes that they may take however little there is."""
READ_AGAIN = 3
"""A string of earlier notes counts as if the model had written it in so many messages."""
_WORD = regex(r"[A-Za-z0-9_./\\~@+$%:\-\u00c0-\u024f\u0370-\u052f]{3,}")
_URL = regex(r"\bhttps?://[^\s<>\"'`)\]}，。；、）】]{4,120}")
_UNIT = (
    r"(?:\s?(?:%|‰|[kKMGT]i?B\b|[kMG]?Hz\b|[mµn]?s\b|min\b|h\b|EUR\b|USD\b"
    r"|(?:seconds|minutes|hours|days|rows|lines|files|tokens|tests|items|errors|passed|failed|requests)\b"
    r"|[万亿]?(?:元|个|条|行|次|天|秒|分钟|小时)))?(?![\w/-])"
)
_FIGURE = regex(
    r"[$€£¥\d](?<![\w.,/:-].)(?:(?<=\d)\d{3}-\d{2}-\d{2}(?![\w-])"
    rf"|(?<=\d)\d*(?:,\d{{3}})*(?:\.\d+)*{_UNIT}|(?<!\d)\d+(?:,\d{{3}})*(?:\.\d+)*{_UNIT})"
)
"""Begins with a set of characters, not with a condition: the search then skips to the next of them."""
_EXTENSION = regex(
    r"\.(?:py|pyi|md|rst|ya?ml|jsonl?|csv|tsv|toml|txt|sql|sh|[cm]?[jt]sx?|go|rs|rb|java|kt|cs?|cc|cpp|h|hpp|html?|css|xml"
    r"|ipynb|parquet|xlsx?|pdf|docx?|ini|cfg|lock|log|conf|env|diff|patch|db|png|svg|jpe?g|gz|zip)",
    re.IGNORECASE,
)
_CAMEL = regex(r"[A-Za-z]*[a-z\d][A-Z]\w*|[A-Z][a-z]+\d\w*")
_CODE = regex(
    r"(?=\w*[A-Z])(?=\w*\d)[A-Z\d]{5,}|(?=[a-f\d]*\d)(?=[a-f\d]*[a-f])[a-f\d]{7,64}|[\w.]+(?:-[\w.]+)*-\w*\d\w*"
)
_ERROR = regex(r"rror\b|rror:|xception\b|\bFAILED\b|atal:|anic:|raceback|失败|错误|异常")
_MARKS = ("rror", "xception", "FAILED", "atal:", "anic:", "raceback", "失败", "错误", "异常")
"""What each line has that ``_ERROR`` finds: to search for it takes less time."""
_FILE, _NAME = regex(r"[\w-]+(?:\.[\w-]+)+"), regex(r"\w+")
LINE, SHORT = 220, 12
"""Characters of a line that names an error: at most, and more than."""
_SPEAKING = regex(r"[^\W\d_]{2}")


class Named(NamedTuple):
    """A string; the higher ``worth``, the likelier it is used again, for the room it takes."""

    kind: StringKind
    text: str
    worth: float


@dataclass(slots=True)
class _Uses:
    """Of one string: in how many texts the model wrote it or only read it, beside how many others at the fewest, and
    the place of the last message that has it."""

    kind: StringKind
    wrote: int = 0
    read: int = 0
    among: int = 1_000_000
    last: int = 0


class StringUses:
    """How often and where ``messages`` have each string. ``earlier``: the strings of earlier notes."""

    def __init__(self, messages: Sequence[Message], earlier: Sequence[Named] = ()) -> None:
        self._messages = messages
        self._found: dict[str, _Uses] = {}
        self._held: list[list[str]] = []
        """The strings of each message."""
        for named in earlier:
            self._found[named.text] = _Uses(named.kind, wrote=READ_AGAIN, among=8)
        for place, message in enumerate(messages):
            self._held.append([])
            if message.origin != "compaction":
                self._message(place, message)

    def _message(self, place: int, message: Message) -> None:
        wrote = message.role == "assistant"
        for text in _texts(message):
            for here in (_strings(_searched(text, SCANNED)), _errors(_searched(text, LOG))):
                self._add(place, here, wrote=wrote)
        for call in message.calls:
            for path in paths(call):
                uses = self._found.setdefault(path, _Uses("path", wrote=1, among=1, last=place))
                self._held[place].append(path)
                if uses.kind != "changed":
                    uses.kind = "changed" if changes(call) else "path"

    def _add(self, place: int, here: Mapping[str, StringKind], *, wrote: bool) -> None:
        found, among = self._found, len(here)
        self._held[place] += here
        for string, kind in here.items():
            uses = found.get(string)
            if uses is None:
                uses = found[string] = _Uses(kind)
            if wrote:
                uses.wrote += 1
            else:
                uses.read += 1
            if among < uses.among:
                uses.among = among
            uses.last = place

    @cached_property
    def _worth(self) -> dict[str, float]:
        """What each string is worth, the highest first."""
        end = len(self._messages)
        worth = {
            text: _odds(uses.kind, uses.wrote, uses.read, end - uses.last, uses.among) + SIZE * log2(2 + len(text))
            for text, uses in self._found.items()
        }
        return dict(sorted(worth.items(), key=itemgetter(1), reverse=True))

    def ranked(self, shown: Sequence[Message]) -> tuple[Named, ...]:
        """The strings that the messages ``shown`` to the model as they were don't have, those worth most first."""
        whole = set(map(id, shown))
        messages = zip(self._messages, self._held, strict=True)
        there = {string for message, held in messages if id(message) in whole for string in held}
        return tuple(
            Named(self._found[text].kind, text, worth) for text, worth in self._worth.items() if text not in there
        )


@lru_cache(maxsize=4_096)
def _odds(kind: StringKind, wrote: int, read: int, away: int, among: int) -> float:
    worth = WROTE * log2(1 + wrote) + READ * log2(1 + read) + AWAY * log2(1 + away) + AMONG * log2(1 + among)
    return worth + KINDS[kind]


def _texts(message: Message) -> Iterator[str]:
    """What ``message`` says in words and calls, and results."""
    for block in message.blocks:
        match block:
            case Text(text=text) if message.role == "assistant" or not is_reminder(text):
                yield text
            case ToolUse(input=given):
                yield "\n".join(_values(given))
            case ToolOutput(content=text):
                yield text
            case _:
                pass


def _searched(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"


def _values(given: Any) -> Iterator[str]:
    match given:
        case str():
            yield given
        case dict():
            for value in cast("dict[str, Any]", given).values():
                yield from _values(value)
        case list():
            for value in cast("list[Any]", given):
                yield from _values(value)
        case int() | float() if not isinstance(given, bool):
            yield str(given)
        case _:
            pass


def _strings(text: str) -> dict[str, StringKind]:
    """The strings in ``text`` that are worth a place in a ledger."""
    found: dict[str, StringKind] = {}
    if "://" in text:
        found = {url.rstrip(".,:;"): "path" for url in _URL.findall(text)}
    for word in dict.fromkeys(_WORD.findall(text)):
        found.update(_kinds(word))
    for figure in dict.fromkeys(_FIGURE.findall(text)):
        if len(figure) > 2 if figure.isdigit() else _telling(figure):
            found[figure] = "figure"
    return found


def _telling(figure: str) -> bool:
    """False for a number of one or two digits with a sign that says nothing."""
    digits = sum(map(str.isdigit, figure))
    return digits > 2 or "." in figure or not figure[-1:].isdigit() or figure[0] in "$€£¥"


@lru_cache(maxsize=32_768)
def _kinds(word: str) -> tuple[tuple[str, StringKind], ...]:
    """The strings in a run of characters without spaces: ``src/a.py:12:`` holds a path."""
    if "://" in word:
        return ()
    found: list[tuple[str, StringKind]] = []
    for part in word.split(":"):
        part = part.rstrip(".-+$%\\").lstrip("+%$")
        if 4 <= len(part) <= LONGEST and _SPEAKING.search(part) and (kind := _kind(part)):
            found.append((part, kind))
    return tuple(found)


def _kind(part: str) -> StringKind | None:
    last = part.rsplit("/", 1)[-1]
    if "/" in part.strip("/") or _EXTENSION.fullmatch(last[last.rfind(".") :] if "." in last else ""):
        return "path"
    if "@" in part[1:] or part.startswith("--") or "_" in part.strip("_"):
        return "name"
    if _CAMEL.fullmatch(part) or _CODE.fullmatch(part):
        return "name"
    return "name" if "." in part and all(map(str.isidentifier, part.split("."))) else None


def _errors(text: str) -> dict[str, StringKind]:
    """The lines of ``text`` that name an error, without the space around them."""
    found: dict[str, StringKind] = {}
    for mark in _MARKS:
        place = text.find(mark)
        while place >= 0:
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            start = text.rfind("\n", 0, place) + 1
            if end - start <= LINE and len(line := text[start:end].strip()) > SHORT and _ERROR.search(line):
                found[line] = "error"
            place = text.find(mark, end)
    return found


def picked(strings: Sequence[Named], room: int, held: str) -> list[Named]:
    """The first of ``strings`` in ``room`` bytes, without those that ``held`` or a string before them has."""
    chosen: list[Named] = []
    words, paths_ = set(_words(held)), ""
    left, errors = room, max(ERRORS_LEAST, room * ERRORS)
    for named in strings:
        if left < 8:
            break
        text = named.text
        if len(text) + 2 > left or text in words or (cost := size(text) + 2) > left:
            continue
        if named.kind == "error" and cost > errors:
            continue
        if ("/" in text or " " in text) and (text in held or text in paths_):
            continue
        errors -= cost if named.kind == "error" else 0
        chosen.append(named)
        words.update(_words(text))
        paths_ += f"\n{text}" if "/" in text else ""
        left -= cost
    return chosen


def _words(text: str) -> Iterator[str]:
    """What is within longer strings of ``text`` too: names, and files without their folders."""
    for pattern in (_WORD, _FILE, _NAME):
        yield from pattern.findall(text)
