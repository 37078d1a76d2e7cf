"""Reading JSON of any shape without tripping: what is missing or of another type reads as empty.

Nothing of a vendor's format is known here.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex

LONGEST_NAME = 64
DEEPEST = 200
"""Levels of JSON. Each step that goes through a value takes some of the stack, and none may run out of it later."""
MOST_GROUPS, MOST_ITEMS = 100_000, 300_000
"""Brackets and commas of one JSON text. Ten times as many would take a second, in which no key counts."""
SEARCHED = 4_000_000
"""Characters of a text up to which those in its strings are told from those between them."""
_STRING = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string of JSON, also one without an end. It never goes back, so it takes no longer for hostile text."""


def fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """A number of tokens: never negative, 0 when it is none."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0


def joined(text: str) -> str:
    """``text`` with the halves of a character that came in two pieces joined; a half alone is replaced."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(text: str) -> str:
    """``text`` without lone surrogates and NULs."""
    return clean_text(joined(text))


def call_id(id: str, longest: int) -> str:
    """A call's id as every vendor takes it: another vendor's may hold characters or a length this one refuses."""
    if len(id) <= longest and id.replace("_", "a").replace("-", "a").isalnum() and id.isascii():
        return id
    return "call_" + hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:24]


def call_name(name: str) -> str:
    """A name that a model made up, as every vendor takes it back: one that is refused would end the conversation."""
    if 0 < len(name) <= LONGEST_NAME and name.replace("_", "a").replace("-", "a").isalnum() and name.isascii():
        return name
    return re.sub(r"[^A-Za-z0-9_-]", "_", name[:LONGEST_NAME]) or "nameless"


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8, the same bytes for the same value."""
    return _compact(value).encode("utf-8", "replace")


def decode(text: str | bytes) -> Any:
    """JSON, strictly. Raises ValueError for anything else, also for more values or levels than anybody means."""
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


# Made once: it takes as long as reading or writing something short.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_strict = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode


def arguments(value: object) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call as an object, and the text that was none.

    Servers send them as a string, as a string in a string, or as the object itself; nothing, or null, means none.
    """
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value)), None
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}, None
    text = joined(value) if isinstance(value, str) else json.dumps(value)
    try:
        parsed = decode(text)
        if isinstance(parsed, str):
            parsed = decode(parsed)
    except ValueError:
        return {}, text
    if parsed is None:
        return {}, None
    return (cast("dict[str, Any]", parsed), None) if isinstance(parsed, dict) else ({}, text)
