"""Painted lines: the segments of a row of the transcript and its text for copying; wrapping, tables, excerpts.

Widths are terminal cells. An excerpt has the first or last lines of a text, and a marker for those left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.results import Table
from ba_tui.core.text.ansi import Colour, Ink, inked_lines
from ba_tui.core.text.cells import clip, hard_cuts
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.transcript.palette import Palette

Segments = tuple[Segment, ...]


@frozen
class Unit:
    """Lines that belong together: if all ``count`` of them are selected, ``text`` is copied. ``opens`` marks the head
    of a code block, whose closing line is copied only together with the head.
    """

    text: str
    count: int = 1
    opens: bool = False

    # Two with the same words are two.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class PaintedLine(NamedTuple):
    """``gutter`` is painted and never copied; ``glue`` separates this line from the next in a copy. ``fill`` paints the
    rest of the row; ``closes`` is the source that ends a code block; ``table`` is the whole table if its last columns
    are not shown.
    """

    segments: Segments = ()
    gutter: Segments = ()
    unit: Unit | None = None
    glue: str = "\n"
    fill: Style | None = None
    closes: str = ""
    table: Table | None = None

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


BLANK = PaintedLine()

_WIDE = (
    r"\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    r"\U00020000-\U0003fffd"
)
_OPENING = "「『（【《〈“‘［｛"
_CLOSING = "、。，．：；！？」』）】》〉”’…—～ー々％］｝"
_PIECES = (
    rf"[{_OPENING}]*[{_WIDE}][{_CLOSING}]*[ \u3000]*"
    rf"|[^\s{_WIDE}]+[{_CLOSING}]*\s*"
    rf"|\s+"
    rf"|."
)


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(_PIECES)


def cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Return where ``text`` (one line, no tabs) is cut to fit ``width`` cells: at spaces, between CJK words, else
    anywhere.
    """
    width = max(1, width)
    if cell_len(text) <= width:
        return [(0, len(text))]
    return _ascii_cuts(text, width) if text.isascii() else _cell_cuts(text, width)


def _ascii_cuts(text: str, width: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start, size = 0, len(text)
    while size - start > width:
        space = text.rfind(" ", start + 1, start + width + 1)
        if space < 0:
            end = after = start + width
        else:
            end = after = space
            while end > start + 1 and text[end - 1] == " ":
                end -= 1
            while after < size and text[after] == " ":
                after += 1
        found.append((start, end))
        start = after
    if start < size or not found:
        found.append((start, size))
    return found


def _cell_cuts(text: str, width: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start, used = 0, 0
    # A joiner changes what its neighbours take, so that their sizes do not add up.
    joined = "\u200d" in text
    for piece in _pieces().finditer(text):
        words = piece[0].rstrip()
        end = piece.start() + len(words)
        wide = cell_len(text[start:end]) if joined else used + cell_len(words)
        if used and wide > width:
            found.append(_trimmed(text, start, piece.start()))
            start, wide = piece.start(), cell_len(words)
        if wide > width:
            hard = hard_cuts(text[start:end], width)
            found += [(start + a, start + b) for a, b in hard[:-1]]
            start += hard[-1][0]
            wide = cell_len(text[start:end])
        used = wide + cell_len(piece[0][len(words) :])
    found.append(_trimmed(text, start, len(text)))
    return found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    return start, start + len(text[start:end].rstrip())


def clipped_segments(runs: Sequence[Segment], width: int, more: str = "…") -> Segments:
    """Return ``runs`` in at most ``width`` cells, with an ellipsis if the end is cut."""
    text = "".join(run.text for run in runs)
    if cell_len(text) <= width:
        return tuple(runs)
    kept = sliced(runs, *hard_cuts(text, max(1, width - cell_len(more)))[0])
    return (*kept, Segment(more, kept[-1].style if kept else None))


def sliced(runs: Sequence[Segment], start: int, end: int) -> Segments:
    """Return the characters from ``start`` to ``end`` of ``runs``."""
    kept: list[Segment] = []
    at = 0
    for run in runs:
        text = run.text
        upto = at + len(text)
        if upto > start and at < end:
            part = text[max(0, start - at) : end - at]
            kept.append(run if part == text else Segment(part, run.style))
        if upto >= end:
            break
        at = upto
    return tuple(kept)


def wrapped(runs: Sequence[Segment], width: int, *, hard: bool = False) -> list[tuple[Segments, str]]:
    """Yield ``runs`` cut to ``width``, each line with the text that a copy adds after it (a space, or nothing)."""
    text = "".join(run.text for run in runs)
    places = hard_cuts(text, width) if hard else cuts(text, width)
    if len(places) == 1 and places[0] == (0, len(text)):
        return [(tuple(runs), "\n")]
    lines: list[tuple[Segments, str]] = []
    for (start, end), following in zip(places, [*places[1:], None], strict=True):
        glue = "\n" if following is None else text[end : following[0]]
        lines.append((sliced(runs, start, end), glue))
    return lines


def broken(runs: Iterable[Segment]) -> list[list[Segment]]:
    """Return ``runs`` split at line ends."""
    lines: list[list[Segment]] = [[]]
    for run in runs:
        if "\n" not in run.text:
            lines[-1].append(run)
            continue
        first, *others = run.text.split("\n")
        if first:
            lines[-1].append(Segment(first, run.style))
        lines += [[Segment(part, run.style)] if part else [] for part in others]
    return lines


def copied(lines: Sequence[tuple[PaintedLine, int, int]]) -> str:
    """Return the source text of selected lines, each with the range of characters that is selected."""
    parts: list[str] = []
    opened = False
    at = 0
    while at < len(lines):
        line, start, end = lines[at]
        unit = line.unit
        if unit is not None and _whole(lines[at : at + unit.count], unit):
            opened = unit.opens or opened
            at += unit.count
            line = lines[at - 1][0]
            parts += (unit.text, "\n")
        else:
            text = line.text
            if not (unit is not None and unit.opens):
                parts += (text[start:end], line.glue if end >= len(text) else "\n")
            at += 1
        if line.closes and opened:
            parts += (line.closes, "\n")
            opened = False
    if parts:
        parts.pop()
    return "".join(parts)


def _whole(lines: Sequence[tuple[PaintedLine, int, int]], unit: Unit) -> bool:
    """Return all of a unit, each line from its first to its last character."""
    return len(lines) == unit.count and all(
        line.unit is unit and start <= 0 and end >= len(line.text) for line, start, end in lines
    )


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


LONGEST = 4_000
"""Characters of one line that are painted."""

Rows: TypeAlias = list[PaintedLine]
Paint: TypeAlias = Callable[[str], Sequence[Rows]]
"""Paints the lines of a text, each folded into its rows."""


class PreviewSpace(NamedTuple):
    """``width`` in cells, ``limit`` in rows. ``unfolded``: the user asked to see more of this result."""

    width: int
    palette: Palette
    limit: int
    unfolded: bool = False


def first_lines(text: str, space: PreviewSpace, paint: Paint) -> Rows:
    """Return the beginning of ``text``, and how many lines are missing below it."""
    if not (text := text.rstrip()):
        return []
    parts = text.split("\n", space.limit)[: space.limit]
    lines = paint("\n".join(beginning(part, space) for part in parts))
    return first_rows(lines, space, text.count("\n") + 1 - len(parts))


def last_lines(text: str, space: PreviewSpace, paint: Paint, lacking: int = 0) -> Rows:
    """Return the end of ``text``, and how many lines are missing above it; ``lacking``: lines that ``text`` has lost.

    Folded, only the last line takes more than one row: programs end with the reason.
    """
    if not (text := text.rstrip("\r\n")):
        return []
    parts = text.rsplit("\n", space.limit)[-space.limit :]
    lines = list(paint("\n".join(_last_state(part, space) for part in parts)))
    while lines and not any(row.text.strip() for row in lines[-1]):
        lines.pop()
    if not space.unfolded:
        lines[:-1] = [_cut(line, 1, space) for line in lines[:-1]]
    kept, left = _fitting(lines[::-1], space, text.count("\n") + 1 - len(parts) + lacking)
    shown = [row for line in reversed(kept) for row in line]
    return [missing(f"{count(left, 'more line')} above", space), *shown] if left else shown


def first_rows(lines: Sequence[Rows], space: PreviewSpace, hidden: int, about: str = "") -> Rows:
    """Return the first of ``lines`` and a marker with the number of those below, ``hidden`` ones included. ``about``:
    words before that number.
    """
    kept, left = _fitting(lines, space, hidden)
    shown = [row for line in kept for row in line]
    return [*shown, missing(f"{about}{count(left, 'more line')} below", space)] if left else shown


def missing(words: str, space: PreviewSpace) -> PaintedLine:
    """Return the marker for hidden lines; it is never copied."""
    hint = ": Enter opens all" if space.unfolded else ""
    text = f"{space.palette.glyphs.more} {words}{hint}"
    return PaintedLine((Segment(text, space.palette.dim),), unit=Unit(""))


def _fitting(lines: Sequence[Rows], space: PreviewSpace, hidden: int) -> tuple[list[Rows], int]:
    """Return the first of ``lines`` that fit with a marker, and how many are left out, ``hidden`` ones included."""
    if not hidden and sum(map(len, lines)) <= space.limit:
        return list(lines), 0
    room = space.limit - (hidden > 0 or len(lines) > 1)
    kept: list[Rows] = []
    for line in lines:
        line = line if kept else _cut(line, room, space)
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    return kept, hidden + len(lines) - len(kept)


def _cut(line: Rows, room: int, space: PreviewSpace) -> Rows:
    """Return a line that is too long for all of the room."""
    if len(line) <= room:
        return line
    last = line[room - 1]
    more = Segment(space.palette.glyphs.more)
    width = space.width - more.cell_length - sum(segment.cell_length for segment in last.gutter)
    return [*line[: room - 1], last._replace(segments=(*clipped_segments(last.segments, width, ""), more), unit=None)]


def _last_state(line: str, space: PreviewSpace) -> str:
    """Return the beginning of a long line; the end of one that a program wrote over again and again."""
    return line[-LONGEST:] if "\r" in line.rstrip("\r") else beginning(line, space)


def beginning(line: str, space: PreviewSpace) -> str:
    """Return ``line`` cut at LONGEST, with a mark."""
    return line if len(line) <= LONGEST else line[:LONGEST] + space.palette.glyphs.more


# Output of programs: ``core.text.untrusted`` parses the escape sequences; only colours survive.


def ansi_segments(text: str, ground: Style) -> list[list[Segment]]:
    """Return the lines of ``text`` over ``ground``, tabs expanded, progress lines as a terminal leaves them."""
    return [
        [Segment(words.replace("\n", "␤").expandtabs(8), ground + ink_style(ink)) for words, ink in runs]
        for runs in inked_lines(text)
    ]


@lru_cache(512)
def ink_style(ink: Ink) -> Style:
    """Return the style for rich, without black or white on the default background, which some themes would hide."""
    bare = {0: 8, 7: None, 15: None} if ink.bg is None and not ink.reverse else {}
    return Style(
        color=_colour(bare.get(ink.fg, ink.fg) if isinstance(ink.fg, int) else ink.fg),
        bgcolor=_colour(ink.bg),
        bold=ink.bold or None,
        dim=ink.dim or None,
        italic=ink.italic or None,
        underline=ink.underline or None,
        strike=ink.strike or None,
        reverse=ink.reverse or None,
    )


def _colour(colour: Colour) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)


def printed_lines(space: PreviewSpace) -> Paint:
    """Return a function that paints terminal output in its own colours, cut hard at the width."""

    def paint(output: str) -> list[Rows]:
        return [
            [PaintedLine(part, glue=glue) for part, glue in wrapped(segments, space.width, hard=True)]
            for segments in ansi_segments(output, space.palette.text)
        ]

    return paint
