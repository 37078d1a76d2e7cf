"""Cells of a drawing, each a character and a role, and dots within cells. What is drawn is not known here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size

from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen

Role: TypeAlias = Literal["text", "dim", "title", "1", "2", "3", "4", "5", "6", "7", "8"]
"""What a run is, for whoever chooses colours; numbers are series."""
SERIES: tuple[Role, ...] = ("1", "2", "3", "4", "5", "6", "7", "8")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character, by row and column."""
_WHOLE = (0x47, 0xB8)
"""The bits of its left and its right column."""


class Run(NamedTuple):
    """Text in one role."""

    text: str
    role: Role = "text"


Line: TypeAlias = tuple[Run, ...]


class Signs(NamedTuple):
    """Characters of one cell each. ``fills`` and ``marks`` tell series apart without colour."""

    fills: str = "█░▓▒╳▪═∙"
    marks: str = "●▲■◆○△□◇"
    shades: str = "·░▒▓█"
    rising: str = " ▁▂▃▄▅▆▇█"
    growing: str = " ▏▎▍▌▋▊▉█"
    upright: str = "│"
    flat: str = "─"
    tick: str = "┤"
    corner: str = "└"
    mark: str = "┬"
    whiskers: tuple[str, str] = ("├", "┤")
    box: tuple[str, str, str, str] = ("▐", "█", "┃", "▌")
    more: str = "…"
    dots: bool = True
    """Whether Braille characters draw dots within cells."""


UNICODE = Signs()
ASCII = Signs(
    fills="#.=+x%-o",
    marks="*+ox#@%&",
    shades=".:+*#",
    rising=" _#",
    growing=" #",
    upright="|",
    flat="-",
    tick="+",
    corner="+",
    mark="+",
    whiskers=("|", "|"),
    box=("[", "=", "|", "]"),
    more="...",
    dots=False,
)


@frozen
class Room:
    """``width`` and ``height`` in cells. ``grow``: more lines than ``height`` may come, where a chart has more bars.
    ``bare``: neither title nor notes, for a few lines."""

    width: int
    height: int
    signs: Signs = UNICODE
    grow: bool = False
    bare: bool = False


class Canvas:
    """``width`` times ``height`` cells from the upper left."""

    def __init__(self, width: int, height: int, signs: Signs) -> None:
        self.width, self.height = width, height
        self._texts = [[" "] * width for _ in range(height)]
        self._roles: list[list[Role]] = [["text"] * width for _ in range(height)]
        self.signs = signs
        self.fine = (2, 4) if signs.dots else (1, 1)
        """Dots of a cell, across and down."""
        self._bits = [[0] * width for _ in range(height)] if signs.dots else []

    def put(self, x: int, y: int, sign: str, role: Role = "text") -> None:
        """Put one character of one cell; nothing outside of the canvas."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self._texts[y][x], self._roles[y][x] = sign, role

    def dot(self, x: int, y: int, series: int) -> None:
        """Put a dot of a series, in dots from the upper left."""
        across, down = self.fine
        column, row = x // across, y // down
        if not (0 <= column < self.width and 0 <= row < self.height):
            return
        if self._bits:
            self._bits[row][column] |= _DOTS[y % down][x % across]
            self._roles[row][column] = SERIES[series % len(SERIES)]
        else:
            marks = self.signs.marks
            self.put(column, row, marks[series % len(marks)], SERIES[series % len(SERIES)])

    def upright(self, x: int, top: int, bottom: int, series: int) -> None:
        """Put dots below each other, both ends included."""
        across, down = self.fine
        column, top, bottom = x // across, max(0, top), min(bottom, self.height * down - 1)
        if not self._bits or bottom - top < down:
            for y in range(top, bottom + 1):
                self.dot(x, y, series)
            return
        if not 0 <= column < self.width:
            return
        role, whole = SERIES[series % len(SERIES)], _WHOLE[x % across]
        first, last = top // down, bottom // down
        for row in range(first + (top % down > 0), last + (bottom % down == down - 1)):
            self._bits[row][column] |= whole
            self._roles[row][column] = role
        for y in (*range(top, min(bottom, first * down + down - 1) + 1), *range(max(top, last * down), bottom + 1)):
            self.dot(x, y, series)

    def segment(self, start: tuple[int, int], end: tuple[int, int], series: int) -> None:
        """Put dots from one place to another, column by column."""
        (x, y), (to_x, to_y) = sorted((start, end))
        low, high = min(y, to_y), max(y, to_y)
        slope = (to_y - y) / (to_x - x) if to_x > x else 0.0
        if not slope and to_x == x:
            self.upright(x, low, high, series)
            return
        for column in range(x, to_x + 1):
            ends = (y + slope * (column - x - 0.5), y + slope * (column - x + 0.5))
            top, bottom = max(low, round(min(ends))), min(high, round(max(ends)))
            self.upright(column, min(top, bottom), max(top, bottom), series)

    def underline(self, y: int, sign: str) -> None:
        """Draw a line in the cells of a row that are free."""
        for x in range(self.width):
            if self._texts[y][x] == " ":
                self.put(x, y, sign, "dim")

    def lines(self) -> list[Line]:
        """What was drawn, cells of one role joined."""
        found: list[Line] = []
        for y in range(self.height):
            texts = self._texts[y]
            if self._bits:
                texts = [
                    chr(0x2800 + bits) if bits and text == " " else text
                    for text, bits in zip(texts, self._bits[y], strict=True)
                ]
            found.append(joined(zip(texts, self._roles[y], strict=True)))
        return found


def joined(cells: Iterable[tuple[str, Role]]) -> Line:
    """Characters with roles as runs."""
    runs: list[Run] = []
    texts: list[str] = []
    before: Role = "text"
    for text, role in cells:
        if role != before and texts and text != " ":
            runs.append(Run("".join(texts), before))
            texts = []
        texts.append(text)
        before = role if text != " " else before
    if texts:
        runs.append(Run("".join(texts), before))
    return tuple(runs)


def width_of(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def safe(text: str) -> str:
    """A name or value from data as one line that can be painted."""
    text = " ".join(text.split())
    return text if text.isascii() and text.isprintable() else paintable(text, newlines=False)


def fitted(text: str, width: int, *, right: bool = False, more: str = "…") -> str:
    """``text`` in exactly ``width`` cells; what is cut off is marked."""
    size = width_of(text)
    if size > width:
        kept = width - len(more)
        return set_cell_size(text, kept) + more if kept > 0 else set_cell_size(text, max(0, width))
    return " " * (width - size) + text if right else text + " " * (width - size)
