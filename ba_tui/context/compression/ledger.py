"""Exact strings of a conversation that later steps may need: paths, names and figures, ranked by how they were used.

A string that the model wrote again after it was first seen (read, edited, cited) is likely to be needed again; one of
hundreds in a printed table is not. No list of words is needed, so this works for any language and any tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from typing import Any, Literal, TypeAlias, cast

from ba_tui.context.compression.facts import changes, paths
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, is_reminder
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

StringKind: TypeAlias = Literal["changed", "path", "name", "figure"]
"""``changed``: a path that a call of the model wrote to."""
LONGEST = 160
"""Bytes of one string."""
SCANNED = 40_000
"""Characters of a text that are searched, half from either end."""
RESULT = 8_000
"""Characters of a result that is searched for strings nobody mentioned; longer ones hold too many to choose from."""
WROTE, ASKED, SEEN, AWAY, AMONG = 0.75, 0.1, 0.12, 0.32, 0.33
"""What each doubling counts: of the messages in which the model wrote a string, of those of the user and of the results
that have it; and, against it, of the messages since then, and of the strings that stood beside it. Measured on runs of
agents: the logarithm of the odds that a string is used again."""
CHANGED = 1.5
FIGURE, NAME = -0.4, -0.2
"""What a changed file counts more, and figures and names less than paths."""
READ_AGAIN = 3
"""A string of earlier notes counts as if the model had written it in so many messages."""
_WORD = regex(r"[A-Za-z0-9_./\\~@+$%:\-\u00c0-\u024f\u0370-\u052f]{3,}")
_URL = regex(r"\bhttps?://[^\s<>\"'`)\]}，。；、）】]{4,120}")
_FIGURE = regex(
    r"(?<![\w.,/:-])\d{4}-\d{2}-\d{2}(?![\w-])|(?<![\w.,/:-])[$€£¥]?\d+(?:,\d{3})*(?:\.\d+)?(?:\s?(?:%|‰|[kKMGT]i?B\b|[kMG]?Hz\b|[mµn]?s\b|min\b|h\b|EUR\b|USD\b"
    r"|(?:seconds|minutes|hours|days|rows|lines|files|tokens|tests|items|errors|passed|failed|requests)\b"
    r"|[万亿]?(?:元|个|条|行|次|天|秒|分钟|小时)))?(?![\w/-])"
)
_EXTENSION = regex(
    r"\.(?:py|pyi|md|rst|ya?ml|jsonl?|csv|tsv|toml|txt|sql|sh|[cm]?[jt]sx?|go|rs|rb|java|kt|cs?|cc|cpp|h|hpp|html?|css|xml"
    r"|ipynb|parquet|xlsx?|pdf|docx?|ini|cfg|lock|log|conf|env|diff|patch|db|png|svg|jpe?g|gz|zip)",
    re.IGNORECASE,
)
_CAMEL = regex(r"[A-Za-z]*[a-z\d][A-Z]\w*|[A-Z][a-z]+\d\w*")
_CODE = regex(r"(?=\w*[A-Z])(?=\w*\d)[A-Z\d]{5,}|(?=[a-f\d]*\d)(?=[a-f\d]*[a-f])[a-f\d]{7,64}|[\w.]+(?:-[\w.]+)*-\w*\d\w*")
_SPEAKING = regex(r"[^\W\d_]{2}")


@frozen
class Named:
    """A string; the higher ``worth``, the likelier it is used again."""

    kind: StringKind
    text: str
    worth: float

    @property
    def cost(self) -> int:
        """Bytes, the separator included."""
        return len(self.text.encode("utf-8", "replace")) + 2


@dataclass(slots=True)
class _Uses:
    """Of one string: in how many messages each party had it, in which, and beside how many others at the fewest."""

    kind: StringKind
    wrote: int = 0
    asked: int = 0
    seen: int = 0
    among: int = 1_000_000
    places: list[int] = field(default_factory=list[int])


class StringUses:
    """How often and where ``messages`` have each string. ``earlier``: the strings of earlier notes."""

    def __init__(self, messages: Sequence[Message], earlier: Sequence[Named] = ()) -> None:
        self._messages = messages
        self._found: dict[str, _Uses] = {}
        for named in earlier:
            self._found[named.text] = _Uses(named.kind, wrote=READ_AGAIN, among=8)
        for place, message in enumerate(messages):
            if message.origin != "compaction":
                self._message(place, message)

    def _message(self, place: int, message: Message) -> None:
        for text, party in _texts(message):
            here = _strings(text)
            for string, kind in here.items():
                uses = self._found.setdefault(string, _Uses(kind))
                uses.wrote += party == "wrote"
                uses.asked += party == "asked"
                uses.seen += party == "seen"
                uses.among = min(uses.among, len(here))
                uses.places.append(place)
        for call in message.calls:
            for path in paths(call):
                uses = self._found.setdefault(path, _Uses("path", wrote=1, among=1, places=[place]))
                if uses.kind != "changed":
                    uses.kind = "changed" if changes(call) else "path"

    def ranked(self, shown: Sequence[Message]) -> tuple[Named, ...]:
        """The strings that the messages ``shown`` to the model as they were don't have, likeliest first."""
        whole = set(map(id, shown))
        there = {place for place, message in enumerate(self._messages) if id(message) in whole}
        end = len(self._messages)
        left = ((text, uses) for text, uses in self._found.items() if there.isdisjoint(uses.places))
        return tuple(sorted((Named(uses.kind, text, _worth(uses, end)) for text, uses in left), key=lambda it: -it.worth))


def _worth(uses: _Uses, end: int) -> float:
    worth = WROTE * log2(1 + uses.wrote) + ASKED * log2(1 + uses.asked) + SEEN * log2(1 + uses.seen)
    worth -= AWAY * log2(1 + end - (uses.places[-1] if uses.places else 0)) + AMONG * log2(1 + uses.among)
    return worth + {"changed": CHANGED, "path": 0.0, "name": NAME, "figure": FIGURE}[uses.kind]


def _texts(message: Message) -> Iterator[tuple[str, Literal["wrote", "asked", "seen"]]]:
    for block in message.blocks:
        match block:
            case Text(text=text) if message.role == "assistant":
                yield text, "wrote"
            case Text(text=text) if not is_reminder(text):
                yield text, "asked"
            case ToolUse(input=given):
                yield "\n".join(_values(given)), "wrote"
            case ToolOutput(content=text) if len(text) <= RESULT:
                yield text, "seen"
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
    """The strings in ``text`` that are worth a place in a ledger."""
    if len(text) > SCANNED:
        text = f"{text[: SCANNED // 2]}\n{text[-SCANNED // 2 :]}"
    found: dict[str, StringKind] = {}
    if "://" in text:
        found = {url.rstrip(".,:;"): "path" for url in _URL.findall(text)}
    for word in set(_WORD.findall(text)):
        for string, kind in _kinds(word):
            found[string] = kind
    for figure in set(_FIGURE.findall(text)):
        if _telling(figure):
            found[figure] = "figure"
    return found


def _telling(figure: str) -> bool:
    """A lone number of one or two digits says nothing."""
    digits = sum(map(str.isdigit, figure))
    return digits > 2 or (not figure.isdigit() and ("." in figure or not figure[-1:].isdigit() or figure[0] in "$€£¥"))


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
    if _EXTENSION.fullmatch(last[last.rfind(".") :] if "." in last else ""):
        return "path"
    if "/" in part.strip("/"):
        return "path" if part.startswith(("/", "~", ".")) or part.count("/") > 1 or "_" in part or "." in last else None
    if "@" in part[1:] or part.startswith("--"):
        return "name"
    if "_" in part.strip("_") or _CAMEL.fullmatch(part) or _CODE.fullmatch(part):
        return "name"
    return "name" if "." in part and all(map(str.isidentifier, part.split("."))) else None


def picked(strings: Sequence[Named], room: int, held: str) -> list[Named]:
    """The likeliest of ``strings`` in ``room`` bytes, without those that ``held`` or a string before them has."""
    chosen: list[Named] = []
    for named in strings:
        if room < 8:
            break
        if named.cost <= room and named.text not in held:
            chosen.append(named)
            held = f"{held}\n{named.text}"
            room -= named.cost
    return chosen
