"""What a person can't see by looking at a call: hidden characters, letters in disguise, addresses that deceive.

Pure. Whether to ask is the policy's business.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in, looks_like, paintable
from ba_tui.permissions.egress.homographs import addresses, deceptions, odd_words

MOST = 8
LONGEST = 200_000
_SHOWN = 60
_DEEPEST = 20
_RUN = ("command", "code")
_SPACES = regex("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")


def warnings_of(args: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say beside the arguments of a call, one line each, at most a few."""
    found: dict[str, None] = {}
    for name, text in _texts(args, ""):
        for line in _about(name, text[:LONGEST]):
            found[paintable(line, newlines=False, reveal=True)] = None
            if len(found) > MOST:
                return (*list(found)[:MOST], "There are more like this.")
    return tuple(found)


def _about(name: str, text: str) -> Iterator[str]:
    if not text.isascii() or not text.isprintable():
        if hidden := hidden_in(text):
            yield f"{name} holds hidden characters: {', '.join(map(_named, hidden[:4]))}"
        if name in _RUN and (space := _SPACES.search(text)):
            yield f"{name} holds {_named(space[0])}, which only looks like a space"
        for word in dict.fromkeys(odd_words(text)):
            yield f"“{word[:_SHOWN]}” in {name} only looks like “{looks_like(word)[:_SHOWN]}”: {_foreign(word)}"
    for address in addresses(text):
        for reason in deceptions(address):
            yield f"{address[:_SHOWN]}{'…' if len(address) > _SHOWN else ''} {reason}"


def _foreign(word: str) -> str:
    odd = next((letter for letter in word if not letter.isascii()), "")
    return _named(odd) if odd else "other letters"


def _named(letter: str) -> str:
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'CONTROL' if ord(letter) < 160 else 'UNNAMED')}"


def _texts(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text in the arguments, also names of fields, with the field it stands in."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in cast("Mapping[Any, Any]", value).items():
            if not str(key).isascii():
                yield "a field's name", str(key)
            yield from _texts(item, str(key)[:40], depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for item in cast("list[Any]", value):
            yield from _texts(item, name, depth + 1)
