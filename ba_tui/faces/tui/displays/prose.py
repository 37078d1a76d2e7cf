"""Plain text and Markdown."""

from __future__ import annotations

from ba_tui.core.results import Prose
from ba_tui.faces.tui.displays.renderer import MOST, Renderer
from ba_tui.faces.tui.inspector.source import prose_rows
from ba_tui.faces.tui.transcript.markdown import plain

PROSE: Renderer[Prose] = Renderer(
    preview=lambda display, space: plain(display.text[:MOST], space.width, space.palette.text),
    page=lambda display, _split: [lambda: prose_rows(display, colours=False), lambda: prose_rows(display)],
    question=lambda display: [
        lambda: prose_rows(display, colours=False, reveal=True),
        lambda: prose_rows(display, reveal=True),
    ],
    text=lambda display: display.text,
    values=lambda display: [display.text],
    shows=lambda display, argument: argument == display.text,
    word_wrap=True,
)
