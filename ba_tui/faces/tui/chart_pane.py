"""A chart pane and screen: the engine computes other kinds and columns; keys change, copy and save the chart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.strip import Strip

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, Column
from ba_tui.core.results import AGGREGATES, CHART_KINDS, Chart, ChartKind, ChartRequest
from ba_tui.core.text.wording import byte_size, one_word
from ba_tui.core.values import frozen
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.grid.data_pane import DataPane
from ba_tui.faces.tui.inspector.rows import LineView
from ba_tui.plotting.canvas import DrawingArea, Line, Role
from ba_tui.plotting.drawing import drawn, signs_for, text_of


class ChartView(LineView, can_focus=True):
    """``say`` shows a line in place of a chart that is not there yet."""

    DEFAULT_CSS = """
    ChartView {
        height: 1fr;
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
        room = DrawingArea(size.width, size.height, signs_for(os.environ), grow=True)
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


Change: TypeAlias = Literal["kind", "x", "y", "series", "aggregate", "stacked", "log"]
T = TypeVar("T")
GROUPED = frozenset({"bar", "line", "area", "heatmap"})


@frozen
class ChartWish:
    """``request``: what the user wants; ``otherwise``: the same where that can't be drawn, with fewer demands."""

    request: ChartRequest
    otherwise: ChartRequest | None = None


def changed(wanted: ChartRequest, chart: Chart | None, columns: Sequence[Column], change: Change) -> ChartWish:
    """Return the chart after a key; ``chart`` is the drawing of ``wanted``, if there is one."""
    now = chart.request if chart else wanted
    numbers = [each.name for each in columns if each.numeric]
    names = [each.name for each in columns]
    match change:
        case "kind":
            kind: ChartKind = _next(CHART_KINDS, wanted.kind or now.kind)
            bare = ChartRequest(wanted.data, kind, log=wanted.log)
            return ChartWish(replace(wanted, kind=kind), bare)
        case "x":
            x = _next(names, wanted.x or now.x)
            series = "" if wanted.series == x else wanted.series
            y = tuple(each for each in wanted.y if each != x)
            return ChartWish(replace(wanted, x=x, y=y, series=series), ChartRequest(wanted.data, None, x))
        case "y":
            current = next(iter(wanted.y or now.y), "")
            y = _next(["", *numbers] if (now.kind in GROUPED) else numbers, current)
            count = "count" if not y else None if wanted.aggregate == "count" else wanted.aggregate
            return ChartWish(replace(wanted, x=wanted.x or now.x, y=(y,) if y else (), aggregate=count))
        case "series":
            groups = ["", *(each.name for each in columns if not each.numeric and each.name != now.x)]
            return ChartWish(replace(wanted, x=now.x, y=now.y[:1], series=_next(groups, wanted.series or now.series)))
        case "aggregate":
            aggregate = _next(AGGREGATES, wanted.aggregate or now.aggregate)
            return ChartWish(replace(wanted, x=wanted.x or now.x, y=wanted.y or now.y, aggregate=aggregate))
        case "stacked":
            return ChartWish(replace(wanted, stacked=not wanted.stacked))
        case "log":
            return ChartWish(replace(wanted, log=not wanted.log))


def _next(choices: Sequence[T], current: T | None) -> T:
    """Return the choice behind ``current``, round the end."""
    found = [place for place, each in enumerate(choices) if each == current]
    return choices[(found[0] + 1) % len(choices)] if found else choices[0]


KEYS = (
    "Esc close · k kind · x y columns · g group · a aggregate\ns stack · l log · r reset · c copy · e save as a picture"
)
BESIDE = "↑ ↓ scroll · Enter full screen · Esc close"


class ChartPane(DataPane):
    """``chart`` is drawn already; without it, ``wanted`` is computed first. ``letters``: single letters are keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "change('kind')", "Another kind", show=False),
        Binding("x", "change('x')", "Another x column", show=False),
        Binding("y", "change('y')", "Another y column", show=False),
        Binding("g", "change('series')", "Group by a column", show=False),
        Binding("a", "change('aggregate')", "Another aggregate", show=False),
        Binding("s", "change('stacked')", "Stack bars", show=False),
        Binding("l", "change('log')", "Logarithmic axis", show=False),
        Binding("r", "reset", "As it was at first", show=False),
        Binding("c,ctrl+y", "copy", "Copy as text", show=False),
        Binding("e", "save", "Save as a picture", show=False),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(
        self,
        datasets: Datasets,
        wanted: ChartRequest,
        chart: Chart | None = None,
        arrangement: Arrangement | None = None,
        *,
        letters: bool = True,
    ) -> None:
        super().__init__(KEYS if letters else BESIDE)
        self.view = ChartView(chart, id="grid")
        self._datasets = datasets
        self._first = self.wanted = wanted
        self._arrangement = arrangement or Arrangement()
        self._columns: Sequence[Column] = ()

    def compose(self) -> ComposeResult:
        yield self.view
        yield from self.compose_controls()

    def on_mount(self) -> None:
        if self.view.chart is None:
            self._compute(self.wanted)

    # Drawing

    def action_change(self, change: Change) -> None:
        """Choose the next kind or column, or flip a switch."""
        self.perform(partial(self._change, change))

    def action_reset(self) -> None:
        self._compute(self._first)

    def _compute(self, wanted: ChartRequest) -> None:
        self.perform(partial(self._show, wanted))

    async def _change(self, change: Change) -> None:
        if not self._columns:
            self._columns = (await self._datasets.page(self.wanted.data, limit=0)).columns
        wish = changed(self.wanted, self.view.chart, self._columns, change)
        await self._show(wish.request, wish.otherwise)

    async def _show(self, wanted: ChartRequest, otherwise: ChartRequest | None = None) -> None:
        """Compute and draw. A chart that can't be drawn remains wanted, so that the next key continues from it."""
        self.say("")
        if self.view.chart is None:
            self.view.say("Computing the chart … Esc cancels")
        self.wanted = wanted
        try:
            try:
                chart = await self._datasets.chart(wanted, self._arrangement)
            except BaError:
                if otherwise is None:
                    raise
                chart = await self._datasets.chart(otherwise, self._arrangement)
                self.wanted = otherwise
        except BaError as error:
            kind = f"{wanted.kind}: " if wanted.kind else ""
            self.say(f"{kind}{error.with_hint}")
            self.view.say("")
            return
        self.view.show(chart)

    # Actions

    def action_copy(self) -> None:
        """Copy the drawing as text."""
        if chart := self.view.chart:
            self.post_message(CopyToClipboard(text_of(chart)))

    def action_save(self) -> None:
        """Ask for a file."""
        if chart := self.view.chart:
            name = one_word(chart.title, 40) or "chart"
            self.ask_line.ask("export", "Save to:", f"{name}.png", "an ending says the format: .png .svg")

    async def save(self, path: str, *, confirmed: bool) -> None:
        if self.view.chart:
            self.say(f"Drawing {path} … Esc cancels")
            done = await self._datasets.exports.chart(self.view.chart, path, confirmed=confirmed)
            self.say(f"Saved {done.path} ({byte_size(done.size)}).")

    def action_back(self) -> None:
        """Stop the running work; otherwise leave Esc to the screen."""
        if not self.cancel():
            raise SkipAction
        self.say("Cancelled.")
        if self.view.chart is None:
            self.view.say("Cancelled. Press r to compute the chart.")


def pane_of(chart: Chart, datasets: Datasets, *, letters: bool) -> ChartPane:
    """Return a chart that a tool drew, with its request to start from."""
    return ChartPane(datasets, replace(chart.request, title=""), chart, letters=letters)


class ChartScreen(ModalScreen[None]):
    """A chart of the rows of ``table`` that match the filters of ``arrangement``; the data decide kind and columns."""

    DEFAULT_CSS = """
    ChartScreen { background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Close", show=False)]

    def __init__(self, datasets: Datasets, table: str, arrangement: Arrangement | None = None) -> None:
        super().__init__()
        self._pane = ChartPane(datasets, ChartRequest(table), arrangement=arrangement)

    def compose(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        self._pane.view.focus()

    def action_close(self) -> None:
        self.dismiss()
