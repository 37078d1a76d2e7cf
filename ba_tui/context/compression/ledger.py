"""Exact strings of a conversation that later steps may need: paths, names and figures, ranked by how they were used.

A string that the model wrote again after it was first seen (read, edited, cited) is likely to be needed again; one of
hundreds in a printed table is not. No list of words is needed, so this works for any language and any tool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from typing import Any, Literal, TypeAlias, cast

from ba_tui.context.compression.facts import changes, paths
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, is_reminder
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

StringKind: TypeAlias = Literal["changed", "path", "name", "figure", "error"]
"""``changed``: a path that a call of the model wrote to; ``error``: a line that names an error."""
Party: TypeAlias = Literal["wrote", "asked", "seen"]
"""Who had a string: the model, the user, or a tool."""
LONGEST = 160
"""Bytes of one string."""
SCANNED, LOG = 20_000, 50_000
"""Characters of a text that are searched, half from either end: for strings, and for lines that name an error."""
WROTE, ASKED, SEEN, AWAY, AMONG = 0.75, 0.1, 0.12, 0.32, 0.33
"""What each doubling counts: of the messages in which the model wrote a string, of those of the user and of the results
that have it; and, against it, of the messages since then, and of the strings that stood beside it. Measured on runs of
agents: the logarithm of the odds that a string is used again."""
CHANGED = 1.5
FIGURE, NAME, ERROR = -1.0, -0.8, 1.0
"""What a changed file counts more, and figures and names less than paths."""
SHARES: Mapping[StringKind, float] = {"path": 0.65, "name": 0.35, "figure": 0.35, "error": 0.5}
"""How much of the room each kind may take."""
LEAST = 160
"""Bytes that each kind may take however little room there is."""
SIZE = 0.5
"""What each doubling of its bytes counts against a string."""
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
_CODE = regex(
    r"(?=\w*[A-Z])(?=\w*\d)[A-Z\d]{5,}|(?=[a-f\d]*\d)(?=[a-f\d]*[a-f])[a-f\d]{7,64}|[\w.]+(?:-[\w.]+)*-\w*\d\w*"
)
_ERROR = regex(r"rror\b|rror:|xception\b|\bFAILED\b|atal:|anic:|raceback|失败|错误|异常")
LINE, SHORT = 220, 12
"""Characters of a line that names an error: at most, and more than."""
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
            self._add(place, party, _strings(_searched(text, SCANNED)))
            self._add(place, party, _errors(_searched(text, LOG)))
        for call in message.calls:
            for path in paths(call):
                uses = self._found.setdefault(path, _Uses("path", wrote=1, among=1, places=[place]))
                if uses.kind != "changed":
                    uses.kind = "changed" if changes(call) else "path"

    def _add(self, place: int, party: Party, here: Mapping[str, StringKind]) -> None:
        for string, kind in here.items():
            uses = self._found.setdefault(string, _Uses(kind))
            uses.wrote += party == "wrote"
            uses.asked += party == "asked"
            uses.seen += party == "seen"
            uses.among = min(uses.among, len(here))
            uses.places.append(place)

    def ranked(self, shown: Sequence[Message]) -> tuple[Named, ...]:
        """The strings that the messages ``shown`` to the model as they were don't have, likeliest first."""
        whole = set(map(id, shown))
        there = {place for place, message in enumerate(self._messages) if id(message) in whole}
        end = len(self._messages)
        left = ((text, uses) for text, uses in self._found.items() if there.isdisjoint(uses.places))
        named = (Named(uses.kind, text, _worth(uses, end)) for text, uses in left)
        return tuple(sorted(named, key=lambda string: (-string.worth, string.text)))


def _worth(uses: _Uses, end: int) -> float:
    worth = WROTE * log2(1 + uses.wrote) + ASKED * log2(1 + uses.asked) + SEEN * log2(1 + uses.seen)
    worth -= AWAY * log2(1 + end - (uses.places[-1] if uses.places else 0)) + AMONG * log2(1 + uses.among)
    return worth + {"changed": CHANGED, "path": 0.0, "name": NAME, "figure": FIGURE, "error": ERROR}[uses.kind]


def _texts(message: Message) -> Iterator[tuple[str, Party]]:
    for block in message.blocks:
        match block:
            case Text(text=text) if message.role == "assistant":
                yield text, "wrote"
            case Text(text=text) if not is_reminder(text):
                yield text, "asked"
            case ToolUse(input=given):
                yield "\n".join(_values(given)), "wrote"
            case ToolOutput(content=text):
                yield text, "seen"
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


def _errors(text: str) -> dict[str, StringKind]:
    """The lines of ``text`` that name an error, without the space around them."""
    found: dict[str, StringKind] = {}
    end = 0
    for mark in _ERROR.finditer(text):
        if mark.start() < end:
            continue
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        start = text.rfind("\n", 0, mark.start()) + 1
        if end - start <= LINE and len(line := text[start:end].strip()) > SHORT:
            found[line] = "error"
    return found


def picked(
    strings: Sequence[Named], room: int, held: str, known: Callable[[str], bool] = "".__contains__
) -> list[Named]:
    """Return the likeliest of ``strings`` in ``room`` bytes, without those that are ``known``, and those that ``held``
    or a string before them has."""
    chosen: list[Named] = []
    said = ""
    spent: Counter[StringKind] = Counter()
    left = room
    for named in sorted(strings, key=lambda named: SIZE * log2(named.cost) - named.worth):
        if left < 8:
            break
        cost, most = named.cost, max(LEAST, room * SHARES.get(named.kind, 1.0))
        if cost > left or spent[named.kind] + cost > most:
            continue
        if named.text in said or named.text in held or known(named.text):
            continue
        chosen.append(named)
        said += f"\n{named.text}"
        spent[named.kind] += cost
        left -= cost
    return sorted(chosen, key=lambda named: -named.worth)
