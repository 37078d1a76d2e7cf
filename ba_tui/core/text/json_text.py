"""JSON texts: values that may be malformed, lines and hashes for the journal, and JSON with comments. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from ba_tui.core.text.patterns import regex

_TOKEN = regex(
    # Possessive quantifiers: a line of slashes can be split into comments in exponentially many ways.
    r'"(?:\\.|[^"\\])*+"|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|,(?=(?>\s++|//[^\n]*+|/\*(?>.*?\*/))*+[}\]])',
    re.DOTALL,
)
_SYNTAX = regex(r'"(?:\\.|[^"\\\n])*+"?|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|[{}\[\]:,]|[^\s{}\[\]:,"/]++', re.DOTALL)


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; None for any other text, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that a text or a line is; None for anything else."""
    value = read_json(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_jsonc(text: str) -> Any:
    """Parse JSON with comments and trailing commas. Raises ValueError with the line and column in ``text``,
    RecursionError if nested too deeply."""
    return json.loads(_TOKEN.sub(lambda found: _plain(found[0]), text.removeprefix("\ufeff")))


def _plain(token: str) -> str:
    """Return strings unchanged, and blanks for comments and commas, so that lines and columns stay the same."""
    if token.startswith('"'):
        return token
    return "".join("\n" if char == "\n" else " " for char in token)


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """Return the line number of each key and list item by its path. Never raises; stops where the text is malformed."""
    lines: dict[tuple[str | int, ...], int] = {}
    path: list[str | int] = []
    key, line, last = "", 1, 0
    for found in _SYNTAX.finditer(text):
        what = found[0]
        line, last = line + text.count("\n", last, found.start()), found.start()
        if what == "," or what.startswith(("//", "/*")):
            continue
        if what in {"}", "]"}:
            del path[-1:]
            _next(path)
        elif what == ":" and path:
            path[-1] = key
            lines.setdefault(tuple(path), line)
        else:
            if path and isinstance(path[-1], int):
                lines[tuple(path)] = line
            if what in {"{", "["}:
                path.append("" if what == "{" else 0)
            else:
                key = _text(what)
                _next(path)
    return lines


def _next(path: list[str | int]) -> None:
    """Advance to the next item if ``path`` ends in a list."""
    if path and isinstance(path[-1], int):
        path[-1] += 1


def strings_after(text: str, keys: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """Yield each string in a list after one of ``keys``, with its key and line, even in malformed JSON. A list ends at
    its bracket or at the next key."""
    words = [found for found in _SYNTAX.finditer(text) if not found[0].startswith(("//", "/*"))]
    key, line, last = "", 1, 0
    for at, found in enumerate(words):
        what = found[0]
        line, last = line + text.count("\n", last, found.start()), found.start()
        if what.startswith('"') and at + 1 < len(words) and words[at + 1][0] == ":":
            key = _text(what) if _text(what) in keys else ""
        elif what == "]":
            key = ""
        elif key and what.startswith('"'):
            yield key, _text(what), line


def _text(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return literal.strip('"')


def plain(value: Any) -> Any:
    """Return a JSON value for objects that ``json`` cannot encode: frozen values, dates, and any other by its
    ``repr``."""
    if isinstance(value, datetime):
        return value.isoformat()
    names = getattr(value, "__dataclass_fields__", None)
    return repr(value) if names is None else {name: getattr(value, name) for name in names}


def args_hash(args: Mapping[str, Any]) -> str:
    """Return a short hash of a call's arguments that does not depend on their order."""
    try:
        text = _sorted(args)
    except (ValueError, TypeError, RecursionError):
        text = repr(args)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


_sorted = json.JSONEncoder(default=plain, sort_keys=True, separators=(",", ":")).encode
json_line = json.JSONEncoder(default=plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""Return a value as one line of JSON without a line end. Raises ValueError for NaN and infinity."""
