"""A canvas of cells, each a character with a role, with dots inside cells; and the axes around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ba_tui.core.text.cells import fit, width_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.plotting.scales import Scale

Role: TypeAlias = Literal["text", "dim", "title", "1", "2", "3", "4", "5", "6", "7", "8"]
"""The role of a run, for the choice of colours; numbers are series."""
SERIES: tuple[Role, ...] = ("1", "2", "3", "4", "5", "6", "7", "8")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a Braille character by row and column."""
_WHOLE = (0x47, 0xB8)
"""Bits of its left and right column."""


class Run(NamedTuple):
    """Text in one role."""

    text: str
    role: Role = "text"


Line: TypeAlias = tuple[Run, ...]


class Signs(NamedTuple):
    """Characters of one cell each. ``fills`` and ``marks`` distinguish series without colour."""

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
    """Whether Braille characters draw dots inside cells."""


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
class DrawingArea:
    """The area of a drawing: ``width`` and ``height`` in cells. ``grow``: allow more lines than ``height`` for charts
    with more bars. ``bare``: without title and notes, for small areas."""

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
        """Dots of a cell, horizontally and vertically."""
        self._bits = [[0] * width for _ in range(height)] if signs.dots else []

    def put(self, x: int, y: int, sign: str, role: Role = "text") -> None:
        """Put a character into a cell; ignored outside the canvas."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self._texts[y][x], self._roles[y][x] = sign, role

    def dot(self, x: int, y: int, series: int) -> None:
        """Put a dot of a series, in dot coordinates from the upper left."""
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
        """Put a vertical line of dots, both ends included."""
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
        """Put a line of dots between two points, column by column."""
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
        """Fill the free cells of a row."""
        for x in range(self.width):
            if self._texts[y][x] == " ":
                self.put(x, y, sign, "dim")

    def lines(self) -> list[Line]:
        """Return the lines, with adjacent cells of one role joined."""
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
    """Return characters with roles as runs."""
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


def safe(text: str) -> str:
    """Return a name or value from data as one line that is safe to paint."""
    text = " ".join(text.split())
    return text if text.isascii() and text.isprintable() else paintable(text, newlines=False)


LEAST_WIDTH = 8
LABEL_WIDTH = 14


def label_width(scale: Scale) -> int:
    """Return the width of the value labels in cells."""
    return min(LABEL_WIDTH, max(map(width_of, scale.labels), default=1))


def row_of(scale: Scale, value: float, height: int) -> int:
    """Return the row, from the top, of ``value``."""
    return height - 1 - round(max(0.0, min(1.0, scale.share(value))) * (height - 1))


def canvas_for(area: DrawingArea, scale: Scale, height: int) -> Canvas:
    """Return a canvas that leaves area for the labels of ``scale``."""
    return Canvas(max(LEAST_WIDTH, area.width - label_width(scale) - 2), height, area.signs)


def framed(canvas: Canvas, scale: Scale, below: Sequence[tuple[int, str]]) -> list[Line]:
    """Return the canvas with its axes; ``below``: columns with labels, without those that overlap."""
    size, signs = label_width(scale), canvas.signs
    rows: dict[int, str] = {}
    for tick, label in zip(scale.ticks, scale.labels, strict=True):
        rows.setdefault(row_of(scale, tick, canvas.height), label)
    lines: list[Line] = []
    for at, line in enumerate(canvas.lines()):
        label = fit(rows.get(at, ""), size, right=True, more=signs.more)
        lines.append((Run(f"{label} {signs.tick if at in rows else signs.upright}", "dim"), *line))
    shown, columns = placed(below, canvas.width)
    rule = "".join(signs.mark if at in columns else signs.flat for at in range(canvas.width))
    lines.append((Run(f"{' ' * size} {signs.corner}{rule}", "dim"),))
    lines.append((Run(f"{' ' * (size + 2)}{shown}", "dim"),))
    return lines


def placed(labels: Sequence[tuple[int, str]], width: int) -> tuple[str, set[int]]:
    """Return labels centred below their columns, and the columns that have one."""
    text, used, columns = "", 0, set[int]()
    for column, label in labels:
        size = width_of(label)
        start = max(0, min(width - size, column - size // 2))
        if size > width or (columns and start < used + 1):
            continue
        text += " " * (start - used) + label
        used = start + size
        columns.add(column)
    return text.rstrip(), columns
