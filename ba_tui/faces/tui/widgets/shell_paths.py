"""Paths that complete the last word of a shell command.

Reads one folder; call it off the loop. How the popup looks, and when it opens, is the composer's business.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.faces.tui.widgets.completion import Candidate

MOST = 200
_SPECIAL = regex(r"([^\w@%+=:,./~-])")


@frozen
class LastWord:
    """The word at the end of a command: where it begins, as it is meant, and the quote that it stands in."""

    column: int
    text: str
    quote: str = ""
    first: bool = False
    """Whether it is the program, not an argument."""


def last_word(line: str) -> LastWord:
    """The word that ends at the end of ``line``, a command that begins with ``!`` or ``!!``."""
    begin = len(line) - len(line.lstrip("!"))
    start, text, quote, words, at = begin, "", "", 0, begin
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'" and at + 1 < len(line):
            at += 1
            text += line[at]
        elif quote:
            text, quote = (text, "") if char == quote else (text + char, quote)
        elif char in "\"'":
            quote = char
        elif char in " \t|&;<>(=":
            # After an operator another program begins; after "<", ">" and "=" a path does.
            words = 0 if char in "|&;(" else words + (bool(text) or char in "<>=")
            start, text = at + 1, ""
        else:
            text += char
        at += 1
    return LastWord(start, text, quote, words == 0)


def argument_word(line: str) -> LastWord:
    """The word that ends at the end of ``line``, behind the name of a slash command."""
    return replace(last_word(line), first=False)


def paths(word: LastWord, folder: Path) -> list[Candidate]:
    """The files and folders that ``word`` begins, as they are to be typed; none for the bare name of a program."""
    head, _, name = word.text.rpartition("/")
    above = f"{head}/" if "/" in word.text else ""
    if not word.text or (word.first and not above):
        return []
    place = folder / os.path.expanduser(above)  # noqa: PTH111 - of a name that does not exist it makes no error
    try:
        with os.scandir(place) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries if _fits(entry.name, name)]
    except OSError:
        return []
    found.sort(key=lambda each: (not each[0].startswith(name), each[0].casefold()))
    return [_candidate(above, entry, word.quote, is_folder=is_folder) for entry, is_folder in found[:MOST]]


def _fits(entry: str, typed: str) -> bool:
    if entry.startswith(".") and not typed.startswith("."):
        return False
    return entry.isprintable() and entry.casefold().startswith(typed.casefold())


def _candidate(above: str, entry: str, quote: str, *, is_folder: bool) -> Candidate:
    path = above + entry
    typed = f"{quote}{path}" if quote else _SPECIAL.sub(r"\\\1", path)
    end = "/" if is_folder else f"{quote} "
    return Candidate(typed + end, entry + ("/" if is_folder else ""), "folder" if is_folder else "file", sure=False)
