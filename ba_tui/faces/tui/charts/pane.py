"""A chart with its keys: other kinds and columns are computed by the engine, and a picture is saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias, TypeVar

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from ba_tui.core.displays.charts import AGGREGATES, KINDS, Chart, ChartKind, ChartRequest
from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets, NeedsConfirmation
from ba_tui.core.ports.tables import Arrangement, Column
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, one_word
from ba_tui.core.values import frozen
from ba_tui.faces.tui.charts.view import ChartView
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.grid.asking import AskLine
from ba_tui.plotting.drawing import text_of

Change: TypeAlias = Literal["kind", "x", "y", "series", "aggregate", "stacked", "log"]
T = TypeVar("T")
GROUPED = frozenset({"bar", "line", "area", "heatmap"})


@frozen
class ChartWish:
    """``request``: what the person wants; ``otherwise``: the same where that can't be drawn, with fewer demands."""

    request: ChartRequest
    otherwise: ChartRequest | None = None


def changed(wanted: ChartRequest, chart: Chart | None, columns: Sequence[Column], change: Change) -> ChartWish:
    """Return what one key makes of a chart; ``chart`` is what is drawn of ``wanted``, if anything is."""
    now = chart.request if chart else wanted
    numbers = [each.name for each in columns if each.numeric]
    names = [each.name for each in columns]
    match change:
        case "kind":
            kind: ChartKind = _next(KINDS, wanted.kind or now.kind)
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
    """The choice behind ``current``, round the end."""
    found = [place for place, each in enumerate(choices) if each == current]
    return choices[(found[0] + 1) % len(choices)] if found else choices[0]


KEYS = (
    "Esc close · k kind · x y columns · g group · a aggregate\ns stack · l log · r reset · c copy · e save as a picture"
)
BESIDE = "↑ ↓ scroll · Enter full screen · Esc close"


class ChartPane(Vertical):
    """``chart`` is drawn already; without it, ``wanted`` is computed first. ``letters``: single letters are keys."""

    DEFAULT_CSS = """
    ChartPane {
        height: 1fr;
        & .said { height: auto; max-height: 2; color: $text-warning; display: none; }
        & .keys { height: auto; max-height: 2; color: $text-muted; }
    }
    """
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
        super().__init__()
        self.view = ChartView(chart, id="grid")
        self._datasets = datasets
        self._first = self.wanted = wanted
        self._arrangement = arrangement or Arrangement()
        self._columns: Sequence[Column] = ()
        self._keys = KEYS if letters else BESIDE
        self._target = ""

    def compose(self) -> ComposeResult:
        yield self.view
        yield Static(classes="said", markup=False)
        yield AskLine()
        yield Static(self._keys, classes="keys", markup=False)

    def on_mount(self) -> None:
        if self.view.chart is None:
            self._compute(self.wanted)

    def say(self, words: str) -> None:
        """Show a line above the keys; without words there is none."""
        said = self.query_one(".said", Static)
        said.display = bool(words)
        said.update(paintable(words, newlines=False))

    # What is drawn

    def action_change(self, change: Change) -> None:
        """The next kind or column, or the opposite of a switch."""
        self.run_worker(partial(self._change, change), group="work", exclusive=True, exit_on_error=False)

    def action_reset(self) -> None:
        self._compute(self._first)

    def _compute(self, wanted: ChartRequest) -> None:
        self.run_worker(partial(self._show, wanted), group="work", exclusive=True, exit_on_error=False)

    async def _change(self, change: Change) -> None:
        try:
            if not self._columns:
                self._columns = (await self._datasets.page(self.wanted.data, limit=0)).columns
        except BaError as error:
            self.say(error.with_hint)
            return
        wish = changed(self.wanted, self.view.chart, self._columns, change)
        await self._show(wish.request, wish.otherwise)

    async def _show(self, wanted: ChartRequest, otherwise: ChartRequest | None = None) -> None:
        """Compute and draw; what can't be drawn stays wanted, so that the next key goes on from there."""
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

    # What is done with it

    def action_copy(self) -> None:
        """The drawing as text."""
        if chart := self.view.chart:
            self.post_message(CopyToClipboard(text_of(chart)))

    def action_save(self) -> None:
        """Ask for a file."""
        if chart := self.view.chart:
            name = one_word(chart.title, 40) or "chart"
            self._ask.ask("export", "Save to:", f"{name}.png", "an ending says the format: .png .svg")

    async def _save(self, path: str, *, confirmed: bool) -> None:
        if self.view.chart is None:
            return
        self.say(f"Drawing {path} … Esc cancels")
        try:
            done = await self._datasets.exports.chart(self.view.chart, path, confirmed=confirmed)
        except NeedsConfirmation as error:
            self.say(str(error))
            self._target = path
            self._ask.ask("confirm", "Write it anyway? y/n:", hint="n")
        except BaError as error:
            self.say(error.with_hint)
        else:
            self.say(f"Saved {done.path} ({byte_size(done.size)}).")

    @property
    def _ask(self) -> AskLine:
        return self.query_one(AskLine)

    @on(AskLine.Left)
    def _left(self, event: AskLine.Left) -> None:
        event.stop()
        self._ask.close()
        self.view.focus()

    @on(AskLine.Answered)
    def _answered(self, event: AskLine.Answered) -> None:
        event.stop()
        self._ask.close()
        self.view.focus()
        text = event.text.strip()
        if event.purpose == "export":
            save = partial(self._save, text, confirmed=False)
        elif text.casefold() in {"y", "yes"}:
            save = partial(self._save, self._target, confirmed=True)
        else:
            self.say("Nothing was written.")
            return
        self.run_worker(save, group="work", exclusive=True, exit_on_error=False)

    def action_back(self) -> None:
        """Stop what is under way; else Esc is for whoever shows the chart."""
        working = [each for each in self.workers if each.node is self and each.group == "work" and each.is_running]
        if not working:
            raise SkipAction
        working[0].cancel()
        self.say("Cancelled.")
        if self.view.chart is None:
            self.view.say("Cancelled. Press r to compute the chart.")


def pane_of(chart: Chart, datasets: Datasets, *, letters: bool) -> ChartPane:
    """A chart that a tool drew, with its request to start from."""
    return ChartPane(datasets, replace(chart.request, title=""), chart, letters=letters)
