"""Markdown cut into pieces that can be parsed and painted alone, as it streams in.

Knows lines only; what a piece means is markdown.py's business. A piece that is done never changes again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ba_tui.core.text.patterns import regex

FENCE = regex(r"( *)(`{3,}|~{3,})[ \t]*([^\s`{]*)([^`\n]*)$")
HEADING = regex(r"#{1,6}(?:\s|$)")
ITEM = regex(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
DEFINITION = regex(r" {0,3}\[[^\]]+\]:\s*\S")

CODE_LINES = 50
LIST_SIZE = 1_500
PARAGRAPH_SIZE = 8_000
TABLE_SIZE = 16_000


class MarkdownChunk(NamedTuple):
    """A piece of Markdown, or lines within a fence if ``language`` is not None. ``opens`` and ``closes``: the fence's
    own lines if this chunk has them. ``spaced``: whether a blank line precedes it, not if the last chunk was cut for
    its size.
    """

    text: str
    language: str | None = None
    opens: str = ""
    closes: str = ""
    spaced: bool = True


class Chunks:
    """Feed text, read ``done`` and ``open``."""

    def __init__(self) -> None:
        self.done: list[MarkdownChunk] = []
        self.definitions: list[str] = []
        self._lines: list[str] = []
        self._rest = ""
        self._size = 0
        self._spaced = True
        self._blank = False
        self._list = False
        self._fence = ""
        self._language: str | None = None
        self._opens = ""

    @property
    def open(self) -> MarkdownChunk | None:
        """The text that may still change."""
        text = "".join(self._lines) + self._rest
        if self._language is not None:
            return MarkdownChunk(text.removesuffix("\n"), self._language, self._opens, "", self._spaced)
        return MarkdownChunk(text, spaced=self._spaced) if text.strip() else None

    def feed(self, text: str) -> None:
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._line(self._shortened(line.removesuffix("\r")))
        if len(self._rest) > 3 and self._rest[0].isalpha() and not self._fence:
            self._boundary(self._rest)
        self._rest = self._shortened(self._rest)

    def _shortened(self, line: str) -> str:
        """Return the rest of a long line, whose beginning is cut into pieces that are quick to paint."""
        if len(line) <= PARAGRAPH_SIZE:
            return line
        start = 0
        while len(line) - start > PARAGRAPH_SIZE:
            end = line.rfind(" ", start + PARAGRAPH_SIZE // 2, start + PARAGRAPH_SIZE) + 1 or start + PARAGRAPH_SIZE
            self._lines.append(line[start:end])
            self._emit()
            self._opens, self._spaced, start = "", False, end
        return line[start:]

    def finish(self) -> None:
        """Cut the rest, because no text follows."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""
        self._emit()
        self._fence, self._language, self._opens = "", None, ""

    def _line(self, line: str) -> None:
        if self._fence:
            self._within(line)
            return
        if not line.strip():
            self._blank = self._blank or bool(self._lines)
            if self._lines and self._size <= TABLE_SIZE:
                self._add(line)
            return
        self._boundary(line)
        if fence := FENCE.match(line):
            self._enter(line, fence)
            return
        self._blank = False
        self._list = self._list or bool(ITEM.match(line))
        if line.lstrip().startswith("[") and DEFINITION.match(line):
            self.definitions.append(line)
        self._add(line)

    def _add(self, line: str) -> None:
        self._lines.append(line + "\n")
        self._size += len(line) + 1

    def _boundary(self, line: str) -> None:
        """Cut before ``line`` if the text before it can't change any more or is too long."""
        indented = line[0] in " \t"
        if not self._lines or (indented and self._size <= TABLE_SIZE):
            return
        item = bool(ITEM.match(line))
        spaced = True
        if HEADING.match(line) or FENCE.match(line) or (self._blank and not (item and self._list)):
            pass
        elif item and self._list and self._size > LIST_SIZE:
            spaced = self._blank
        elif self._size > (TABLE_SIZE if "|" in line else PARAGRAPH_SIZE):
            spaced = False
        else:
            return
        self._emit()
        self._spaced = spaced

    def _enter(self, line: str, fence: re.Match[str]) -> None:
        self._fence = fence[2]
        if fence[1]:
            self._add(line)
        else:
            self._language, self._opens = fence[3], line

    def _within(self, line: str) -> None:
        closes = line.strip()
        closing = closes.startswith(self._fence) and not closes.strip(self._fence[0])
        if self._language is None:
            self._add(line)
            if closing:
                self._fence = ""
            elif self._size > TABLE_SIZE:
                self._emit()
                self._spaced = False
        elif closing:
            self._emit(closes)
            self._fence, self._language, self._opens = "", None, ""
        else:
            self._add(line)
            if len(self._lines) >= CODE_LINES or self._size > PARAGRAPH_SIZE:
                self._emit()
                self._opens, self._spaced = "", False

    def _emit(self, closes: str = "") -> None:
        text = "".join(self._lines)
        if self._language is not None:
            if text or self._opens or closes:
                self.done.append(
                    MarkdownChunk(text.removesuffix("\n"), self._language, self._opens, closes, self._spaced)
                )
        elif text.strip():
            self.done.append(MarkdownChunk(text, spaced=self._spaced))
        self._lines, self._size = [], 0
        self._blank, self._list, self._spaced = False, False, True
