"""Exact strings that later steps may need: paths, names and figures, ranked by their use in the conversation.

A string that the model wrote again after it appeared (read, edited, cited) is likely to be needed; one of hundreds in a
printed table is not. Without a list of words this works for any language and any tool.
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
from ba_tui.context.compression.user_text import both_ends, size
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, is_reminder
from ba_tui.core.text.patterns import regex

StringKind: TypeAlias = Literal["changed", "path", "name", "figure", "error"]
"""``changed``: a path that a call of the model wrote to; ``error``: a line with the name of an error."""
LONGEST = 160
"""Bytes of one string."""
SCANNED, LOG = 20_000, 50_000
"""Characters of a text that are searched, half from either end: for strings, and for lines with errors."""
WROTE, READ, AWAY, AMONG, SIZE = 1.0, -0.4, -0.25, -0.75, -0.35
"""Added for each doubling: of the messages in which the model wrote a string, of those in which it only read it, of the
messages since then, of the strings beside it, and of its bytes. Measured on runs of agents: the logarithm of the odds
of another use, minus that of the room."""
KINDS: Mapping[StringKind, float] = {"changed": 2.4, "path": 0.0, "name": 0.3, "figure": 0.5, "error": 1.0}
"""Added for the kind of a string."""
ERRORS, ERRORS_LEAST = 0.5, 160
"""The share of the room for lines with errors, and the least bytes for them."""
READ_AGAIN = 3
"""A string of earlier notes is treated as written by the model in so many messages."""
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
"""Begins with a set of characters, not with a condition, so that the search can skip to the next of them."""
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
"""Every match of ``_ERROR`` has one of these; searching for them is faster."""
_FILE, _NAME = regex(r"[\w-]+(?:\.[\w-]+)+"), regex(r"\w+")
LINE, SHORT = 220, 12
"""Length of a line with an error: at most, and more than."""
_SPEAKING = regex(r"[^\W\d_]{2}")


class RankedString(NamedTuple):
    """A string; the higher ``worth``, the more likely it is used again, in relation to its size."""

    kind: StringKind
    text: str
    worth: float


@dataclass(slots=True)
class _Uses:
    """Uses of a string: texts in which the model wrote or read it, the fewest beside it, its last message."""

    kind: StringKind
    wrote: int = 0
    read: int = 0
    among: int = 1_000_000
    last: int = 0


class StringUses:
    """Counts the uses of each string in ``messages``. ``earlier``: the strings of earlier notes."""

    def __init__(self, messages: Sequence[Message], earlier: Sequence[RankedString] = ()) -> None:
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
            for here in (_strings(both_ends(text, SCANNED)), _errors(both_ends(text, LOG))):
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
        """Return the worth of each string, the highest first."""
        end = len(self._messages)
        worth = {
            text: _odds(uses.kind, uses.wrote, uses.read, end - uses.last, uses.among) + SIZE * log2(2 + len(text))
            for text, uses in self._found.items()
        }
        return dict(sorted(worth.items(), key=itemgetter(1), reverse=True))

    def ranked(self, shown: Sequence[Message]) -> tuple[RankedString, ...]:
        """Return the strings that are not in ``shown``, the messages that the model still has, the worthiest first."""
        whole = set(map(id, shown))
        messages = zip(self._messages, self._held, strict=True)
        there = {string for message, held in messages if id(message) in whole for string in held}
        return tuple(
            RankedString(self._found[text].kind, text, worth)
            for text, worth in self._worth.items()
            if text not in there
        )


@lru_cache(maxsize=4_096)
def _odds(kind: StringKind, wrote: int, read: int, away: int, among: int) -> float:
    worth = WROTE * log2(1 + wrote) + READ * log2(1 + read) + AWAY * log2(1 + away) + AMONG * log2(1 + among)
    return worth + KINDS[kind]


def _texts(message: Message) -> Iterator[str]:
    """Return the texts of ``message``: words and calls, and results."""
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
    """Return the strings in ``text`` that belong into a ledger."""
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
    """Return False for a number of one or two digits with an uninformative sign."""
    digits = sum(map(str.isdigit, figure))
    return digits > 2 or "." in figure or not figure[-1:].isdigit() or figure[0] in "$€£¥"


@lru_cache(maxsize=32_768)
def _kinds(word: str) -> tuple[tuple[str, StringKind], ...]:
    """Return the strings in characters without spaces: ``src/a.py:12:`` has a path."""
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
    """Return the lines of ``text`` with an error, without the space around them."""
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


def picked(strings: Sequence[RankedString], room: int, held: str) -> list[RankedString]:
    """Return the first of ``strings`` in ``room`` bytes, without those in ``held`` or in a string before them."""
    chosen: list[RankedString] = []
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
    """Return parts of longer strings too: names, and files without their folders."""
    for pattern in (_WORD, _FILE, _NAME):
        yield from pattern.findall(text)
