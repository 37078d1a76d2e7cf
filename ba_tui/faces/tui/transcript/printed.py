"""Output of programs as lines of the transcript."""

from __future__ import annotations

from ba_tui.faces.tui.transcript.ansi import ansi_segments
from ba_tui.faces.tui.transcript.excerpt import Paint, PreviewSpace, Rows
from ba_tui.faces.tui.transcript.lines import PaintedLine, wrapped


def printed_lines(space: PreviewSpace) -> Paint:
    """Return a function that paints terminal output in its own colours, cut hard at the width."""

    def paint(output: str) -> list[Rows]:
        return [
            [PaintedLine(part, glue=glue) for part, glue in wrapped(segments, space.width, hard=True)]
            for segments in ansi_segments(output, space.palette.text)
        ]

    return paint
