"""Tables of words laid out in cells: column widths that fit, wrapped cells, and a list of pairs when nothing fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from ba_tui.faces.tui.transcript.lines import PaintedLine, Segments, Unit, wrapped
from ba_tui.faces.tui.transcript.palette import Palette

Cell = list[Segment]
SMALLEST = 5
GAP = 3


class TableLayout(NamedTuple):
    """Rows of cells, the first one the head. ``sources`` are the Markdown lines, the ruler second."""

    rows: Sequence[Sequence[Cell]]
    aligns: Sequence[str]
    sources: Sequence[str]


def table(grid: TableLayout, width: int, palette: Palette) -> list[PaintedLine]:
    """The lines of ``grid`` at ``width``; each copies as its Markdown line."""
    columns = len(grid.aligns)
    natural = [max((_width(row[at]) for row in grid.rows), default=0) for at in range(columns)]
    widths = _fitted(natural, width - GAP * (columns - 1))
    if widths is None:
        return _pairs(grid, width, palette)
    glyphs = palette.glyphs
    between = Segment(f" {glyphs.column} ", palette.rule)
    lines: list[PaintedLine] = []
    for at, row in enumerate(grid.rows):
        cells = [wrapped(cell, size) for cell, size in zip(row, widths, strict=True)]
        height = max(len(cell) for cell in cells)
        unit = Unit(grid.sources[at if at == 0 else at + 1], height)
        for level in range(height):
            segments: list[Segment] = []
            for column, cell in enumerate(cells):
                if column:
                    segments.append(between)
                content = cell[level][0] if level < len(cell) else ()
                segments += _aligned(content, widths[column], grid.aligns[column], palette)
            lines.append(PaintedLine(tuple(segments), unit=unit))
        if at == 0:
            ruler = f"{glyphs.rule}{glyphs.cross}{glyphs.rule}".join(glyphs.rule * size for size in widths)
            lines.append(PaintedLine((Segment(ruler, palette.rule),), unit=Unit(grid.sources[1])))
    return lines


def _width(cell: Cell) -> int:
    return cell_len("".join(segment.text for segment in cell))


def _fitted(natural: Sequence[int], room: int) -> list[int] | None:
    """Widths within ``room``: the widest columns give way first. None when not even the smallest fit."""
    widths = [max(1, size) for size in natural]
    if sum(widths) <= room:
        return widths
    if sum(min(size, SMALLEST) for size in widths) > room:
        return None
    while (excess := sum(widths) - room) > 0:
        widest = max(widths)
        second = max((size for size in widths if size < widest), default=SMALLEST)
        wide = [at for at, size in enumerate(widths) if size == widest]
        step = max(1, min(widest - max(second, SMALLEST), -(-excess // len(wide))))
        for at in wide:
            if excess <= 0:
                break
            taken = min(step, excess)
            widths[at] -= taken
            excess -= taken
    return widths


def _aligned(content: Segments, width: int, align: str, palette: Palette) -> list[Segment]:
    spare = max(0, width - cell_len("".join(segment.text for segment in content)))
    left = spare if align == "right" else spare // 2 if align == "center" else 0
    parts: list[Segment] = [Segment(" " * left, palette.text)] if left else []
    parts += content
    if spare > left:
        parts.append(Segment(" " * (spare - left), palette.text))
    return parts


def _pairs(grid: TableLayout, width: int, palette: Palette) -> list[PaintedLine]:
    """Head and value under each other, for screens too narrow for columns."""
    heads = grid.rows[0]
    lines: list[PaintedLine] = []
    for at, row in enumerate(grid.rows[1:]):
        runs: list[tuple[Segments, str]] = []
        for head, cell in zip(heads, row, strict=True):
            runs += wrapped([*head, Segment(": ", palette.dim), *cell], width)
        unit = Unit(grid.sources[at + 2], len(runs))
        if lines:
            lines.append(PaintedLine((Segment(palette.glyphs.rule * min(width, 8), palette.rule),), unit=Unit("")))
        lines += [PaintedLine(segments, unit=unit, glue=glue) for segments, glue in runs]
    return lines
