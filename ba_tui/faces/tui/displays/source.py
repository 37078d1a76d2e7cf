"""Lines of a file, numbered and coloured."""

from __future__ import annotations

from rich.segment import Segment

from ba_tui.core.results import Source
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.inspector.source import source_rows
from ba_tui.faces.tui.transcript.code import highlighted
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines
from ba_tui.faces.tui.transcript.lines import PaintedLine, wrapped


def _preview(display: Source, space: PreviewSpace) -> Rows:
    path, start = display.path, display.start
    size = len(str(start + space.limit))
    language = path.rsplit(".", 1)[-1] if "." in path else ""

    def paint(text: str) -> list[Rows]:
        found: list[Rows] = []
        lines = highlighted(paintable(text).expandtabs(4), language, space.palette)
        for number, runs in enumerate(lines, start):
            rows = wrapped(runs, space.width - size - 1, hard=True)
            signs = [f"{number:>{size}} ", *[" " * (size + 1)] * len(rows)]
            found.append(
                [
                    PaintedLine(part, (Segment(sign, space.palette.dim),), glue=glue)
                    for sign, (part, glue) in zip(signs, rows, strict=False)
                ]
            )
        return found

    return first_lines(display.text, space, paint)


SOURCE: Renderer[Source] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: source_rows(display, colours=False), lambda: source_rows(display)],
    question=lambda display: [
        lambda: source_rows(display, colours=False, reveal=True),
        lambda: source_rows(display, reveal=True),
    ],
    text=lambda display: display.text,
    values=lambda display: [display.text],
    shows=lambda display, argument: argument in (display.path, display.text),
    quiet=True,
)
