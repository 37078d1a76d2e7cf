"""JSON with comments and trailing commas, as editors and other assistants write their settings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from ba_tui.core.text.patterns import regex

_TOKEN = regex(
    # Possessive throughout: a line of slashes can be taken apart into comments in too many ways.
    r'"(?:\\.|[^"\\])*+"|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|,(?=(?>\s++|//[^\n]*+|/\*(?>.*?\*/))*+[}\]])',
    re.DOTALL,
)
_SYNTAX = regex(r'"(?:\\.|[^"\\\n])*+"?|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|[{}\[\]:,]|[^\s{}\[\]:,"/]++', re.DOTALL)


def read_jsonc(text: str) -> Any:
    """Parse ``text``. Raises ValueError, whose line and column are those of ``text``; RecursionError when too deep."""
    return json.loads(_TOKEN.sub(lambda found: _plain(found[0]), text.removeprefix("\ufeff")))


def _plain(token: str) -> str:
    """A string as it is; blanks for a comment or a comma, so that lines and columns stay."""
    if token.startswith('"'):
        return token
    return "".join("\n" if char == "\n" else " " for char in token)


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of every key and list item in ``text``, by its path; as far as the text is sound, never raising."""
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
    """Go on to the next item when ``path`` leads into a list."""
    if path and isinstance(path[-1], int):
        path[-1] += 1


def strings_after(text: str, keys: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """Each string in a list behind one of ``keys``, with that key and its line, also where ``text`` is no sound JSON.

    A list ends at its bracket, or at the next key.
    """
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
