"""Excerpts of text and of program output: the first or last lines, and a marker for those left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.text.ansi import Colour, Ink, inked_lines
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.transcript.lines import PaintedLine, Unit, clipped_segments, wrapped
from ba_tui.faces.tui.transcript.palette import Palette

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
