"""The popup above the prompt with completions and earlier prompts; and paths for shell commands.

The composer fills the popup and moves its cursor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.text.cells import clip
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen

ROWS = 8
Kind = Literal["command", "argument", "mention", "history", "path"]
_ARGUMENT = regex(r"/[\w-]+ +(\S*)$")
_AT = regex(r"(?<![A-Za-z0-9_@/.:\\-])@(\"[^\"]*|[^\s\"@]*)$")


@frozen
class CompletionRequest:
    """What the text before the cursor asks to be completed, and the column where that begins."""

    kind: Kind
    query: str
    column: int


@frozen
class CompletionItem:
    """``insert`` replaces the typed text; ``label`` and ``detail`` are the two columns of its row. ``sure``: Enter
    takes it; an item that only has the same letters must be chosen first.
    """

    insert: str
    label: str
    detail: str = ""
    sure: bool = True


def wanted(before: str, row: int) -> CompletionRequest | None:
    """Return what to complete for the line ``before`` the cursor, in line ``row`` of the prompt."""
    if row == 0 and before.startswith("/") and not re.search(r"\s", before) and "/" not in before[1:]:
        return CompletionRequest("command", before[1:], 0)
    if found := _AT.search(before):
        return CompletionRequest("mention", found[1].lstrip('"'), found.start())
    if row == 0 and (found := _ARGUMENT.match(before)):
        return CompletionRequest("argument", before[1:], found.start(1))
    return None


class Completion(Static):
    """Hidden while it has no candidates."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.candidates: Sequence[CompletionItem] = ()
        self.chosen = 0
        self.moved = False
        """Whether the user went to a row."""
        self.display = False
        self._rows = ROWS

    @property
    def choice(self) -> CompletionItem | None:
        return self.candidates[self.chosen] if self.candidates else None

    def offer(self, candidates: Sequence[CompletionItem]) -> None:
        """Show ``candidates``, best first; none hides the popup."""
        if not (candidates or self.candidates):
            # This runs for nearly every key, and a new layout of the screen would be most of the cost.
            return
        self.candidates = candidates
        self.chosen, self.moved = 0, False
        self.display = bool(candidates)
        self._rows = min(len(candidates), max(2, min(ROWS, self.screen.size.height // 2 - 3)))
        self.styles.height = self._rows + (self._rows < len(candidates)) or None
        self._draw()

    def move(self, step: int) -> None:
        if self.candidates:
            self.chosen = (self.chosen + step) % len(self.candidates)
            self.moved = True
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if not self.candidates:
            self.update("")
            return
        width = max(10, self.size.width - 2)
        first = max(0, min(self.chosen - self._rows // 2, len(self.candidates) - self._rows))
        shown = self.candidates[first : first + self._rows]
        labels = [paintable(candidate.label, newlines=False) for candidate in self.candidates]
        column = min(max(map(cell_len, labels)), width * 3 // 5)
        lines: list[Content] = []
        for index, candidate in enumerate(shown, first):
            label = _fitting(labels[index], column)
            detail = _fitting(f"  {paintable(candidate.detail, newlines=False)}", max(0, width - column))
            here = index == self.chosen
            mark = "› " if here else "  "
            style = "$accent" if here else "$foreground"
            lines.append(Content.assemble((mark + label, style), (detail, "$text-muted")))
        hidden = (first, "above"), (len(self.candidates) - first - len(shown), "below")
        if words := ", ".join(f"{count} more {where}" for count, where in hidden if count):
            lines.append(Content.styled(f"  … {words}", "$text-muted"))
        self.update(Content("\n").join(lines))


def _fitting(text: str, width: int) -> str:
    return set_cell_size(clip(text, width), width)


# Completion of paths in shell commands. Reads one folder; call it off the loop.

MOST = 200
_SPECIAL = regex(r"([^\w@%+=:,./~-])")


@frozen
class LastWord:
    """Return the word at the end of a command: where it begins, its meaning, and its open quote."""

    column: int
    text: str
    quote: str = ""
    first: bool = False
    """Whether it is the program, not an argument."""


def last_word(line: str) -> LastWord:
    """Return the word that ends at the end of ``line``, a command that begins with ``!`` or ``!!``."""
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
    """Return the word that ends at the end of ``line``, behind the name of a slash command."""
    return replace(last_word(line), first=False)


def paths(word: LastWord, folder: Path) -> list[CompletionItem]:
    """Return the files and folders that begin with ``word``, quoted as typed; none for the bare name of a program."""
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


def _candidate(above: str, entry: str, quote: str, *, is_folder: bool) -> CompletionItem:
    path = above + entry
    typed = f"{quote}{path}" if quote else _SPECIAL.sub(r"\\\1", path)
    end = "/" if is_folder else f"{quote} "
    return CompletionItem(
        typed + end, entry + ("/" if is_folder else ""), "folder" if is_folder else "file", sure=False
    )
