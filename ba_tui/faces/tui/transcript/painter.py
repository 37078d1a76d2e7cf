"""One row of the screen as a strip: focus bar, gutter, words, padding, with selection and search hits laid over.

Every cell carries its position in its style's meta, so that a drag anywhere in the row selects words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ba_tui.faces.tui.transcript.lines import PaintedLine, Segments
from ba_tui.faces.tui.transcript.palette import Palette

Span = tuple[int, int]


class Overlay(NamedTuple):
    """What lies over a row: the selected range of characters, what is searched, whether its record has the cursor.

    ``number`` identifies the row within selections.
    """

    number: int
    prompt: bool = False
    selected: Span | None = None
    wanted: re.Pattern[str] | None = None
    focused: bool = False


def strip(line: PaintedLine, width: int, palette: Palette, overlay: Overlay) -> Strip:
    """``line`` at exactly ``width`` cells."""
    words = line.segments
    if overlay.wanted is not None:
        for found in overlay.wanted.finditer(line.text):
            words = over(words, found.span(), palette.match)
    if overlay.selected is not None:
        start, end = overlay.selected
        size = len(line.text)
        span = (max(0, start), size if end < 0 else min(end, size))
        words = over(words, span, palette.selection)
    before = (_edge(line, palette, overlay), *line.gutter)
    x = -sum(len(segment.text) for segment in before)
    segments: list[Segment] = []
    cells = 0
    for segment in (*before, *words):
        place = Style.from_meta({"offset": (x, overlay.number)})
        segments.append(Segment(segment.text, segment.style + place if segment.style else place))
        x += len(segment.text)
        cells += segment.cell_length
    if cells < width:
        ground = line.fill or palette.text
        segments.append(Segment(" " * (width - cells), ground + Style.from_meta({"offset": (x, overlay.number)})))
        cells = width
    made = Strip(segments, cells)
    return made.crop(0, width) if cells > width else made


def _edge(line: PaintedLine, palette: Palette, overlay: Overlay) -> Segment:
    """The leftmost cell: a bar beside prompts and beside the record with the cursor."""
    if overlay.focused and line.gutter:
        return Segment(palette.glyphs.bar, palette.focus)
    if overlay.prompt and line.fill is not None:
        return Segment(palette.glyphs.bar, palette.prompt_mark)
    return Segment(" ", palette.text)


def over(segments: Segments, span: Span, style: Style) -> Segments:
    """Return ``segments`` with ``style`` over the characters of ``span``."""
    start, end = span
    if start >= end:
        return segments
    parts: list[Segment] = []
    at = 0
    for segment in segments:
        text, upto = segment.text, at + len(segment.text)
        low, high = min(max(start, at), upto) - at, max(min(end, upto), at) - at
        if low >= high:
            parts.append(segment)
        else:
            ground = segment.style or Style.null()
            pieces = ((text[:low], ground), (text[low:high], ground + style), (text[high:], ground))
            parts += [Segment(piece, tone) for piece, tone in pieces if piece]
        at = upto
    return tuple(parts)
