"""Displays of results with more than a few fields: charts and plans. Values only; nothing here computes or draws."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ba_tui.core.teamwork import Plan
from ba_tui.core.values import frozen

ChartKind: TypeAlias = Literal["bar", "line", "area", "scatter", "histogram", "box", "heatmap", "pie"]
Aggregate: TypeAlias = Literal["sum", "mean", "median", "min", "max", "count"]
ChartOrder: TypeAlias = Literal["value", "label", "table"]
AxisKind: TypeAlias = Literal["category", "number", "time"]
PictureFormat: TypeAlias = Literal["svg", "png"]
KINDS: tuple[ChartKind, ...] = get_args(ChartKind)
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
PICTURES: tuple[PictureFormat, ...] = get_args(PictureFormat)


@frozen
class ChartRequest:
    """A chart of the table ``data``. Empty or None fields are chosen by the columns and their values. ``series`` is a
    column whose values become separate series. ``limit``: maximum number of categories, 0 for the default. ``low`` and
    ``high`` bound the value axis of lines and points."""

    data: str
    kind: ChartKind | None = None
    x: str = ""
    y: tuple[str, ...] = ()
    series: str = ""
    aggregate: Aggregate | None = None
    order: ChartOrder | None = None
    limit: int = 0
    stacked: bool = False
    log: bool = False
    low: float | None = None
    high: float | None = None
    title: str = ""
    unit: str = ""


@frozen
class ChartSeries:
    """Points in the order of ``x``. On a category axis ``x`` is the index in the chart's labels; on a time axis it is
    in seconds since the epoch. A None in ``y`` is a gap. ``weights``: the number of rows behind each point."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    weights: tuple[int, ...] = ()


@frozen
class Box:
    """A box of a box plot. The whiskers ``low`` and ``high`` are the last values within 1.5 interquartile ranges;
    ``outliers`` of the ``count`` values are beyond them."""

    label: str
    low: float
    first: float
    median: float
    third: float
    high: float
    count: int
    outliers: int = 0


@frozen
class Chart:
    """``request`` with all defaults resolved. ``rows``: rows of the table; ``notes`` say what is not shown. A heatmap
    has a series for each of its rows. ``step`` is the bin width of a histogram, whose ``x`` are the lower bin edges.
    ``correlation`` (Pearson) is that of a scatter plot."""

    request: ChartRequest
    axis: AxisKind
    x_title: str
    y_title: str
    series: tuple[ChartSeries, ...] = ()
    labels: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()
    step: float = 0.0
    rows: int = 0
    notes: tuple[str, ...] = ()
    correlation: float | None = None
    type: Literal["chart"] = "chart"

    @property
    def kind(self) -> ChartKind:
        return self.request.kind or "bar"

    @property
    def subject(self) -> str:
        """Return the content in words: "sum of amount by region"."""
        if self.kind == "histogram":
            return f"Distribution of {self.x_title}"
        by = " and ".join(filter(None, (self.x_title, self.request.series)))
        return f"{self.y_title} by {by}" if by else self.y_title

    @property
    def title(self) -> str:
        """Return the requested title, or else the subject."""
        return self.request.title or self.subject

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not self.boxes and not any(value is not None for each in self.series for value in each.y)


@frozen
class PlanGraph:
    """A plan to be approved, or its state when a call ended. ``notes``: sentences about changes and doubts of the
    planner."""

    plan: Plan
    notes: tuple[str, ...] = ()
    type: Literal["plan"] = "plan"
