"""Reading JSON of any shape without errors, a missing or wrong value as empty; limits on the size of answers."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ba_tui.core.errors import AnswerTooLarge
from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex

LONGEST_NAME = 64
DEEPEST = 200
"""Levels of JSON. Each recursive step uses some of the stack, which must suffice later too."""
MOST_GROUPS, MOST_ITEMS = 100_000, 300_000
"""Brackets and commas of one JSON text. Ten times as many would block keys for a second."""
SEARCHED = 4_000_000
"""Characters of a text up to which brackets within strings are distinguished from others."""
_STRING = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string of JSON, also one without an end. It never backtracks, so hostile text takes no longer."""


def fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a number of tokens: never negative, 0 for other values."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0


def join_surrogates(text: str) -> str:
    """Return ``text`` with the two halves of split characters joined; a single half is replaced."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(text: str) -> str:
    """Return ``text`` without lone surrogates and NULs."""
    return clean_text(join_surrogates(text))


def call_id(id: str, longest: int) -> str:
    """Return a call's id in the characters and length that every vendor accepts."""
    if len(id) <= longest and id.replace("_", "a").replace("-", "a").isalnum() and id.isascii():
        return id
    return "call_" + hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:24]


def call_name(name: str) -> str:
    """Return a made-up tool name in a form that every vendor accepts: a refused one would end the conversation."""
    if 0 < len(name) <= LONGEST_NAME and name.replace("_", "a").replace("-", "a").isalnum() and name.isascii():
        return name
    return re.sub(r"[^A-Za-z0-9_-]", "_", name[:LONGEST_NAME]) or "nameless"


def encode(value: object) -> bytes:
    """Encode compact JSON in UTF-8, with the same bytes for the same value."""
    return _compact(value).encode("utf-8", "replace")


def decode(text: str | bytes) -> Any:
    """Parse JSON strictly. Raises ValueError for anything else, and for absurdly many values or levels."""
    whole = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
    if _crowded(whole) and (len(whole) > SEARCHED or _crowded(_STRING.sub("", whole))):
        raise ValueError("more values than anybody means")
    try:
        value = _strict(whole)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if _groups(whole) > DEEPEST and _deep(value):
        raise ValueError("nested too deep")
    return value


def _groups(text: str) -> int:
    return text.count("{") + text.count("[")


def _crowded(text: str) -> bool:
    return _groups(text) > MOST_GROUPS or text.count(",") > MOST_ITEMS


def _deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else items(each))]
        if not level:
            return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


# Made once: making it takes as long as encoding something short.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_strict = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode


def arguments(value: object) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of a call as an object, and the text that could not be parsed. Servers send them as a
    string, as a string in a string, or as the object; nothing, or null, means none."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value)), None
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}, None
    text = join_surrogates(value) if isinstance(value, str) else json.dumps(value)
    try:
        parsed = decode(text)
        if isinstance(parsed, str):
            parsed = decode(parsed)
    except ValueError:
        return {}, text
    if parsed is None:
        return {}, None
    return (cast("dict[str, Any]", parsed), None) if isinstance(parsed, dict) else ({}, text)


# Limits of one answer, so that a server can't fill the memory: several times the size of any real answer. Beyond a
# limit the answer ends: its text is kept, and the request is not repeated.

log = logging.getLogger(__name__)
MB = 2**20
RESPONSE = 256 * MB
"""Bytes of one response, decompressed: the text of an answer and all that a server writes around it."""
EVENT = 16 * MB
"""Bytes of one event, or of an answer in one JSON object."""
WORDS = 4 * MB
"""Bytes of text, reasoning and arguments in one answer."""
ARGUMENTS = 2 * MB
"""Characters of the arguments of one call."""
KEPT = 32 * MB
"""Bytes of blocks that are kept as they were sent; each bracket and comma in them adds SEPARATOR."""
SEPARATOR = 100
PARTS = 10_000
"""Blocks, citations and the like in one answer."""
CALLS = 200
ERROR = 64 * 2**10
"""Bytes that are read of an error's body."""
SILENCES = 6
"""So many request timeouts may pass while a server sends only comments and pings."""
LOGGED = 5
"""Unknown kinds of events that the log names for one answer."""
CURE = "Ask for less at a time; if it happens again, check the model server."


def too_large(host: str, what: str) -> AnswerTooLarge:
    return AnswerTooLarge(f"{host} sent {what}, so ba stopped reading the answer.", CURE)


class Load:
    """Adds up the parts of one answer of ``host``. Each method raises AnswerTooLarge beyond its limit."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._words = 0
        self._kept = 0
        self._parts = 0
        self._calls = 0
        self._ignored = 0

    def ignored(self, name: object) -> None:
        self._ignored += 1
        if self._ignored <= LOGGED:
            log.info("ignored event %.100r", name)

    def words(self, text: str) -> None:
        self._words += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._words > WORDS:
            raise too_large(self._host, f"more than {WORDS // MB} MB of text")

    def arguments(self, size: int, text: str) -> None:
        """Add ``text`` to the arguments of a call, which then have ``size`` characters."""
        if size > ARGUMENTS:
            raise too_large(self._host, f"arguments of more than {ARGUMENTS // MB} MB for a call")
        self.words(text)

    def call(self, given: object = None) -> None:
        """Add a call; ``given``: its arguments, where they arrive with it."""
        self._calls += 1
        if self._calls > CALLS:
            raise too_large(self._host, f"more than {CALLS} tool calls")
        if given:
            text = encode(given).decode()
            self.arguments(len(text), text)

    def kept(self, value: Any) -> None:
        """Add a value that is kept unchanged: a block, or an addition to one."""
        data = encode(value)
        self._parts += 1
        self._kept += len(data) + SEPARATOR * sum(map(data.count, (b",", b"[", b"{")))
        if self._parts > PARTS:
            raise too_large(self._host, f"more than {PARTS:,} parts")
        if self._kept > KEPT:
            raise too_large(self._host, f"more than {KEPT // MB} MB of data")

    def update(self, held: dict[str, Any], added: Mapping[str, Any]) -> None:
        """Copy new and changed values of ``added`` into ``held``."""
        if fresh := {key: value for key, value in added.items() if key not in held or held[key] != value}:
            self.kept(fresh)
            held.update(fresh)
