"""Rows of a RowView and how they fold at a width: plain values, made in any thread. Painting them is the view's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from rich.style import Style

from ba_tui.core.text.cells import width_of
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen

Piece: TypeAlias = tuple[str, str | Style]
"""Text and its role (a component class of the view without its prefix), or a Style."""


@frozen
class GridCell:
    """A gutter that is neither scrolled nor copied, and the text. ``tone`` paints the whole cell. ``hang``: indent of
    folded lines after the first; it is not copied either.
    """

    pieces: tuple[Piece, ...] = ()
    gutter: str = ""
    tone: str = ""
    hang: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


GridRow: TypeAlias = tuple[GridCell, ...]
"""One cell, or two side by side."""

PICTURES = (
    {code: chr(0x2400 + code) for code in range(32)}
    | {code: f"‹U+{code:04X}›" for code in (*range(0x80, 0xA0), 0x2028, 0x2029)}
    | {0x7F: "\u2421"}
)


def line(*pieces: Piece, gutter: str = "", tone: str = "", hang: str = "") -> GridRow:
    """Return a row of one cell."""
    return (GridCell(pieces, gutter, tone, hang),)


def marked(row: GridRow) -> GridRow:
    """Return ``row`` highlighted."""
    return tuple(replace(cell, tone="selected") for cell in row)


def visible(text: str) -> str:
    """Return text that a user judges in one line, with every control and hidden character visible."""
    if text.isascii() and text.isprintable():
        return text
    # Pictures first: a shell reads a terminal sequence as text, so each of its characters must stay visible.
    return paintable(text.expandtabs(8).translate(PICTURES), newlines=False, reveal=True)


def painted(text: str) -> str:
    """Return text that is only read in one line, without terminal sequences."""
    if text.isascii() and text.isprintable():
        return text
    return paintable(text.expandtabs(8), newlines=False)


def text_rows(text: str, *, reveal: bool = False) -> list[GridRow]:
    """Return a row for each line of foreign text; ``reveal`` if a user judges it."""
    show = visible if reveal else painted
    return [line((show(part), "")) for part in text.split("\n")]


def hanging(cell: GridCell, width: int) -> str:
    """Return the indent of folded lines; empty if it takes more than half of the width."""
    return cell.hang if 2 * width_of(cell.hang) <= width else ""


def folds(text: str, width: int, *, word_wrap: bool = False, hang: int = 0) -> tuple[int, ...]:
    """Return where the lines of ``text`` start when it is folded at ``width`` cells, at spaces when ``word_wrap``.

    Lines after the first one have ``hang`` cells less.
    """
    if width < 1 or width_of(text) <= width:
        return (0,)
    if text.isascii() and not word_wrap and not hang:
        return tuple(range(0, len(text), width))
    starts, used, space = [0], 0, 0
    for index, letter in enumerate(text):
        cells = width_of(letter)
        if used + cells > width:
            start = space if word_wrap and space > starts[-1] else index
            starts.append(start)
            used = hang + width_of(text[start:index])
        used += cells
        if letter == " ":
            space = index + 1
    return tuple(starts)


@frozen
class GridLayout:
    """The layout of rows: the row and its folded line for each line of the view."""

    rows: Sequence[GridRow] | Mapping[int, GridRow]
    """All of them, or those on the lines by their number."""
    lines: Sequence[tuple[int, int]]
    starts: dict[tuple[int, int], tuple[int, ...]]
    """(row, column) -> where each folded line starts; absent when the cell is one line."""
    gutters: tuple[int, ...]
    """Width of the gutter, column by column."""
    columns: tuple[int, ...]
    """Width of the text, column by column."""
    longest: int
    """Cells of the longest unfolded text."""

    def slice(self, row: int, column: int, part: int, text: str) -> tuple[int, int] | None:
        """Return start and end of the text in ``column`` on the row's line ``part``; None if it is empty."""
        starts = self.starts.get((row, column), (0,))
        if part >= len(starts):
            return None
        return starts[part], starts[part + 1] if part + 1 < len(starts) else len(text)


GAP = 1


def lay_out(rows: Sequence[GridRow], width: int, *, wrap: bool, word_wrap: bool = False) -> GridLayout:
    """Fold ``rows`` into lines of ``width`` cells; without ``wrap`` each row is one line."""
    count = max(map(len, rows), default=1)
    gutters = tuple(_widest(row[column].gutter for row in rows if len(row) > column) for column in range(count))
    share = max(1, (width - GAP * (count - 1)) // count)
    columns = tuple(max(1, share - gutter) for gutter in gutters)
    lines: list[tuple[int, int]] = []
    starts: dict[tuple[int, int], tuple[int, ...]] = {}
    longest = 0
    for index, row in enumerate(rows):
        height = 1
        for column, cell in enumerate(row):
            text = cell.text
            longest = max(longest, width_of(text))
            if wrap:
                space = columns[column] if len(row) > 1 else max(1, width - gutters[0])
                hang = width_of(hanging(cell, space))
                if len(cuts := folds(text, space, word_wrap=word_wrap, hang=hang)) > 1:
                    starts[index, column] = cuts
                    height = max(height, len(cuts))
        lines.extend((index, part) for part in range(height))
    return GridLayout(rows, lines, starts, gutters, columns, longest)


def _widest(texts: Iterable[str]) -> int:
    return max(map(width_of, texts), default=0)
