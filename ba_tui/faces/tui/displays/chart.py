"""A chart: a small drawing in the conversation, one that fits its pane in the inspector."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.widget import Widget

from ba_tui.core.displays.charts import Chart
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.inspector.rows import GridRow, line
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.palette import ASCII as ASCII_GLYPHS
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.plotting.canvas import ASCII, Role, Room
from ba_tui.plotting.drawing import drawn, signs_for, text_of

FOLDED_ROWS = 10
WIDEST = 100


def _preview(display: Chart, space: PreviewSpace) -> list[PaintedLine]:
    signs = ASCII if space.palette.glyphs == ASCII_GLYPHS else signs_for(os.environ)
    room = Room(min(space.width, WIDEST), space.limit, signs, bare=not space.unfolded)
    lines = drawn(display, room)[: space.limit]
    return [
        PaintedLine(tuple(Segment(run.text, _style(space.palette, run.role)) for run in each if run.text))
        for each in lines
    ]


def _style(palette: Palette, role: Role) -> Style:
    series = (palette.running, palette.warning, palette.ok, palette.failed, palette.target, palette.dim, palette.focus)
    if role.isdigit():
        return series[(int(role) - 1) % len(series)]
    return palette.dim if role == "dim" else palette.heading if role == "title" else palette.text


def _rows(display: Chart) -> Sequence[GridRow]:
    return [line((each, "")) for each in text_of(display).split("\n")]


def _widget(display: Chart) -> Widget:
    from ba_tui.faces.tui.charts.view import ChartView  # noqa: PLC0415 - only when there is a chart

    return ChartView(display, id="grid")


CHART: Renderer[Chart] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: _rows(display)],
    question=lambda display: [lambda: _rows(display)],
    text=text_of,
    values=lambda display: [display.title],
    widget=_widget,
    complete=True,
    folded_rows=FOLDED_ROWS,
)
