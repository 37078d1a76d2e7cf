"""Output of programs as lines of the transcript."""

from __future__ import annotations

from ba_tui.faces.tui.transcript.ansi import ansi_segments
from ba_tui.faces.tui.transcript.lines import PaintedLine, wrapped
from ba_tui.faces.tui.transcript.palette import Palette


def printed(output: str, width: int, palette: Palette) -> list[PaintedLine]:
    """Terminal output in its own colours, cut hard at ``width``."""
    lines: list[PaintedLine] = []
    for segments in ansi_segments(output, palette.text):
        lines += [PaintedLine(part, glue=glue) for part, glue in wrapped(segments, width, hard=True)]
    return lines
