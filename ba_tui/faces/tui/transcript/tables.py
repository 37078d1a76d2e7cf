"""Tables as lines of cells: fitting column widths, wrapped cells, the first columns of tables that are too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from ba_tui.core.results import Table
from ba_tui.core.text.cells import clip
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.transcript.lines import PaintedLine, Segments, Unit, clipped_segments, wrapped
from ba_tui.faces.tui.transcript.palette import Palette

Cell = list[Segment]
READABLE = 10
"""Cells below which no column of words is squeezed."""
GAP = 3
_FIGURE = regex(r"\S*\d\S*")
"""A number, a date, a name with digits: half of it would be another one."""
LONGEST_FIGURE = 24
_AMOUNT = regex(r"[-+−]?[$€£¥]?\d[\d.,\u00a0\u202f ]*[%€$]?")


class TableLayout(NamedTuple):
    """Rows of cells, the first one the head. ``sources`` are the Markdown lines, the ruler second. ``folded``: each row
    takes one line, and long cells are cut.
    """

    rows: Sequence[Sequence[Cell]]
    aligns: Sequence[str]
    sources: Sequence[str]
    folded: bool = False


def table(grid: TableLayout, width: int, palette: Palette) -> list[PaintedLine]:
    """Return the lines of ``grid`` at ``width``; each copies as its Markdown line. Columns without room are counted."""
    widths = _widths(grid, width)
    glyphs = palette.glyphs
    between = Segment(f" {glyphs.column} ", palette.rule)
    cut = len(grid.aligns) - len(widths)
    whole = as_table(grid) if cut else None
    lines: list[PaintedLine] = []
    for at, row in enumerate(grid.rows):
        cells = [_cell_lines(cell, size, grid, palette) for cell, size in zip(row, widths, strict=False)]
        height = max(len(cell) for cell in cells)
        unit = Unit(grid.sources[at if at == 0 else at + 1], height)
        for level in range(height):
            segments: list[Segment] = []
            for column, cell in enumerate(cells):
                if column:
                    segments.append(between)
                content = cell[level] if level < len(cell) else ()
                segments += _aligned(content, widths[column], grid.aligns[column], palette)
            if cut:
                segments += [between, Segment(glyphs.more if not level else "", palette.dim)]
            lines.append(PaintedLine(tuple(segments), unit=unit, table=whole))
        if at == 0:
            ruler = f"{glyphs.rule}{glyphs.cross}{glyphs.rule}".join(glyphs.rule * size for size in widths)
            ruler += f"{glyphs.rule}{glyphs.cross}{glyphs.rule}" if cut else ""
            lines.append(PaintedLine((Segment(ruler, palette.rule),), unit=Unit(grid.sources[1]), table=whole))
    if cut and not grid.folded:
        words = f"{glyphs.more} {count(cut, 'more column')} on the right: Space opens the table"
        lines.append(PaintedLine((Segment(clip(words, width, glyphs.more), palette.dim),), unit=Unit(""), table=whole))
    return lines


def columns_shown(grid: TableLayout, width: int) -> int:
    """Return how many of the columns have room within ``width``."""
    return len(_widths(grid, width))


def is_figure(value: object) -> bool:
    """Return whether ``value`` is a number or a text of one; such cells are right-aligned."""
    if isinstance(value, str):
        return bool(_AMOUNT.fullmatch(value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_table(grid: TableLayout) -> Table:
    """Return the words of ``grid`` as a value that opens in full."""
    head, *body = [tuple("".join(run.text for run in cell) for cell in row) for row in grid.rows]
    return Table(head, tuple(body))


def _cell_lines(cell: Cell, size: int, grid: TableLayout, palette: Palette) -> list[Segments]:
    if grid.folded:
        return [clipped_segments(cell, size, palette.glyphs.more)]
    return [segments for segments, _ in wrapped(cell, size)]


def _width(cell: Cell) -> int:
    return cell_len("".join(segment.text for segment in cell))


def _widths(grid: TableLayout, width: int) -> list[int]:
    """Return the widths of the first columns, as many as are readable within ``width``."""
    columns = len(grid.aligns)
    natural = [max(1, *(_width(row[at]) for row in grid.rows)) for at in range(columns)]
    if sum(natural) + GAP * (columns - 1) <= width:
        return natural
    least = [_least(grid, at, size) for at, size in enumerate(natural)]
    for kept in range(columns, 0, -1):
        room = width - GAP * (kept - 1) - (GAP + 1 if kept < columns else 0)
        if sum(least[:kept]) <= room:
            return _fitted(natural[:kept], least[:kept], room)
    return [max(1, width - GAP - 1)]


def _least(grid: TableLayout, column: int, natural: int) -> int:
    """Return what a column needs to be read: no figure in it is broken."""
    figures = (cell_len(word) for row in grid.rows for run in row[column] for word in _FIGURE.findall(run.text))
    longest = max((size for size in figures if size <= LONGEST_FIGURE), default=0)
    return min(natural, max(READABLE, longest))


def _fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths within ``room``: the widest columns shrink first, none below its ``least``."""
    widths = list(least)
    spare = room - sum(widths)
    while spare > 0 and (growing := [at for at, size in enumerate(widths) if size < natural[at]]):
        lowest = min(widths[at] for at in growing)
        for at in growing:
            if widths[at] == lowest and spare > 0:
                widths[at] += 1
                spare -= 1
    return widths


def _aligned(content: Segments, width: int, align: str, palette: Palette) -> list[Segment]:
    spare = max(0, width - cell_len("".join(segment.text for segment in content)))
    left = spare if align == "right" else spare // 2 if align == "center" else 0
    parts: list[Segment] = [Segment(" " * left, palette.text)] if left else []
    parts += content
    if spare > left:
        parts.append(Segment(" " * (spare - left), palette.text))
    return parts
