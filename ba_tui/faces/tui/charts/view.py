"""A chart as lines of a scrolling view. What is drawn is the business of plotting; how it looks is here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ba_tui.core.displays.charts import Chart
from ba_tui.plotting.canvas import Line, Role, Room
from ba_tui.plotting.drawing import drawn, signs_for


class ChartView(ScrollView, can_focus=True):
    """``say`` shows a line in place of a chart that is not there yet."""

    DEFAULT_CSS = """
    ChartView {
        height: 1fr;
        background: transparent;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 25%;
        scrollbar-background: $foreground 5%;
        & > .chart--title { text-style: bold; }
        & > .chart--dim { color: $text-muted; }
        & > .chart--1 { color: $text-primary; }
        & > .chart--2 { color: $text-warning; }
        & > .chart--3 { color: $text-success; }
        & > .chart--4 { color: $text-error; }
        & > .chart--5 { color: $text-accent; }
        & > .chart--6 { color: $foreground 60%; }
        & > .chart--7 { color: $secondary; }
        & > .chart--8 { color: $foreground; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{role}" for role in ("title", "dim", *"12345678")}

    def __init__(self, chart: Chart | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chart = chart
        self._note = ""
        self._lines: Sequence[Line] = ()
        self._styles: dict[Role, Style] = {}

    def show(self, chart: Chart) -> None:
        """Draw another chart."""
        self.chart = chart
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._draw()

    def say(self, note: str) -> None:
        self._note = note
        self.refresh()

    @on(events.Resize)
    def _draw(self) -> None:
        size = self.scrollable_content_region.size
        if self.chart is None or not size.width:
            return
        room = Room(size.width, size.height, signs_for(os.environ), grow=True)
        self._lines = drawn(self.chart, room)
        self.virtual_size = Size(size.width, len(self._lines))
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        at = int(self.scroll_offset.y) + y
        ground = self._style("text")
        line = self._lines[at] if at < len(self._lines) else ()
        segments = [Segment(run.text, self._style(run.role)) for run in line]
        if self.chart is None and y == 0:
            segments = [Segment(self._note, ground)]
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _style(self, role: Role) -> Style:
        if role not in self._styles:
            self._styles[role] = self.rich_style if role == "text" else self.get_component_rich_style(f"chart--{role}")
        return self._styles[role]
