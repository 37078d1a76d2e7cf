"""Lines of a file, numbered and coloured."""

from __future__ import annotations

from rich.segment import Segment

from ba_tui.core.results import Source
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.displays.renderer import MOST, PreviewSpace, Renderer
from ba_tui.faces.tui.inspector.source import source_rows
from ba_tui.faces.tui.transcript.code import highlighted
from ba_tui.faces.tui.transcript.lines import PaintedLine, wrapped


def _preview(display: Source, space: PreviewSpace) -> list[PaintedLine]:
    path, start = display.path, display.start
    shown = paintable(display.text[:MOST]).expandtabs(4).rstrip("\n")
    size = len(str(start + shown.count("\n")))
    language = path.rsplit(".", 1)[-1] if "." in path else ""
    lines: list[PaintedLine] = []
    for at, runs in enumerate(highlighted(shown, language, space.palette), start):
        first = wrapped(runs, space.width - size - 1, hard=True)[0][0]
        lines.append(PaintedLine(first, (Segment(f"{at:>{size}} ", space.palette.dim),)))
    return lines


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
)
