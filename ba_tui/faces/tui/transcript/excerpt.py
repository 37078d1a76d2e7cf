"""The first or the last lines of a text, as many as fit a few rows, and a marker where the others are missing.

What the lines look like is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from rich.segment import Segment

from ba_tui.core.text.wording import count
from ba_tui.faces.tui.transcript.lines import PaintedLine, Unit, clipped_segments
from ba_tui.faces.tui.transcript.palette import Palette

LONGEST = 4_000
"""Characters of one line that are painted."""

Rows: TypeAlias = list[PaintedLine]
Paint: TypeAlias = Callable[[str], Sequence[Rows]]
"""Paints the lines of a text, each folded into its rows."""


class PreviewSpace(NamedTuple):
    """``width`` in cells, ``limit`` in rows. ``unfolded``: the person asked to see more of this result."""

    width: int
    palette: Palette
    limit: int
    unfolded: bool = False


def first_lines(text: str, space: PreviewSpace, paint: Paint) -> Rows:
    """The beginning of ``text``, and how many lines are missing below it."""
    if not (text := text.rstrip()):
        return []
    parts = text.split("\n", space.limit)[: space.limit]
    lines = paint("\n".join(beginning(part, space) for part in parts))
    return first_rows(lines, space, text.count("\n") + 1 - len(parts))


def last_lines(text: str, space: PreviewSpace, paint: Paint, lacking: int = 0) -> Rows:
    """The end of ``text``, and how many lines are missing above it; ``lacking``: lines that ``text`` has lost.

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
    """The first of ``lines``, and how many are missing below them with the ``hidden`` ones, which are not among them.
    ``about``: words before that number."""
    kept, left = _fitting(lines, space, hidden)
    shown = [row for line in kept for row in line]
    return [*shown, missing(f"{about}{count(left, 'more line')} below", space)] if left else shown


def missing(words: str, space: PreviewSpace) -> PaintedLine:
    """The marker in the place of what is not shown; it is never copied."""
    hint = ": Enter opens all" if space.unfolded else ""
    text = f"{space.palette.glyphs.more} {words}{hint}"
    return PaintedLine((Segment(text, space.palette.dim),), unit=Unit(""))


def _fitting(lines: Sequence[Rows], space: PreviewSpace, hidden: int) -> tuple[list[Rows], int]:
    """The first of ``lines`` that fit beside a marker, and how many are left out with the ``hidden`` ones."""
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
    """A line that is too long for all of the room."""
    if len(line) <= room:
        return line
    last = line[room - 1]
    more = Segment(space.palette.glyphs.more)
    width = space.width - more.cell_length - sum(segment.cell_length for segment in last.gutter)
    return [*line[: room - 1], last._replace(segments=(*clipped_segments(last.segments, width, ""), more), unit=None)]


def _last_state(line: str, space: PreviewSpace) -> str:
    """The beginning of a long line; the end of one that a program wrote over again and again."""
    return line[-LONGEST:] if "\r" in line.rstrip("\r") else beginning(line, space)


def beginning(line: str, space: PreviewSpace) -> str:
    """``line`` without what is beyond LONGEST, which is marked."""
    return line if len(line) <= LONGEST else line[:LONGEST] + space.palette.glyphs.more
