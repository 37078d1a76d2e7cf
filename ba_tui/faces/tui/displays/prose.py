"""Plain text and Markdown."""

from __future__ import annotations

from ba_tui.core.results import Prose
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.inspector.source import prose_rows
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines
from ba_tui.faces.tui.transcript.markdown import MEASURE, plain_lines


def _preview(display: Prose, space: PreviewSpace) -> Rows:
    space = space._replace(width=min(space.width, MEASURE))
    return first_lines(display.text, space, plain_lines(space, space.palette.text))


PROSE: Renderer[Prose] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: prose_rows(display, colours=False), lambda: prose_rows(display)],
    question=lambda display: [
        lambda: prose_rows(display, colours=False, reveal=True),
        lambda: prose_rows(display, reveal=True),
    ],
    text=lambda display: display.text,
    values=lambda display: [display.text],
    shows=lambda display, argument: argument == display.text,
    word_wrap=True,
    quiet=True,
)
