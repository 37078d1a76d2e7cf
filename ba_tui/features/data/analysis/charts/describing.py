"""A chart in words, for a model that does not see it: range, course, largest and smallest values, what is left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from ba_tui.core.displays.charts import Chart, ChartSeries
from ba_tui.core.text.wording import count, one_line
from ba_tui.plotting.scales import TimeUnit, number_label, time_label, unit_of

MOST_VALUES = 60
"""A series of at most this many values is listed; of a longer one, its first, last, lowest and highest value."""
NAME_CHARS = 60
STRONG, WEAK = 0.7, 0.3


def description(chart: Chart) -> str:
    """Return a few sentences and, of charts with few values, all of them."""
    request = chart.request
    what = f"{chart.kind} chart of {request.data}".replace("heatmap chart", "heatmap").replace(
        "histogram chart", "histogram"
    )
    head = f"{what[0].upper()}{what[1:]} ({count(chart.rows, 'row')}): {one_line(chart.title, 200)}."
    if chart.empty:
        return "\n".join([head, "There is no data to draw.", *chart.notes])
    match chart.kind:
        case "box":
            body = _boxes(chart)
        case "histogram":
            body = _histogram(chart)
        case "scatter":
            body = _scatter(chart)
        case _:
            body = [line for each in chart.series for line in _series(chart, each)]
            body += _listed(chart)
    unit = [f"Unit: {one_line(request.unit, 40)}."] if request.unit else []
    return "\n".join([head, *unit, *body, *chart.notes])


def figure(value: float) -> str:
    """A value to all its digits, which a model may repeat."""
    return f"{value:,.12g}"


def _series(chart: Chart, series: ChartSeries) -> list[str]:
    """Extent of one series, and its course where places have an order."""
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
    if not known:
        return []
    name = f"{one_line(series.name, NAME_CHARS)}: " if len(chart.series) > 1 else ""
    low, high = min(known, key=lambda each: each[1]), max(known, key=lambda each: each[1])
    place = _places(chart)
    words = f"highest {figure(high[1])} at {place(high[0])}, lowest {figure(low[1])} at {place(low[0])}"
    if chart.axis == "category":
        total = f", total {figure(sum(y for _, y in known))}" if chart.request.aggregate in {"sum", "count"} else ""
        return [f"{name}{count(len(known), 'value')}; {words}{total}."]
    first, last = known[0], known[-1]
    course = f"from {figure(first[1])} at {place(first[0])} to {figure(last[1])} at {place(last[0])}"
    return [f"{name}{count(len(known), 'point')} {course}{_change(first[1], last[1])}; {words}.", *_trend(known, name)]


def _change(first: float, last: float) -> str:
    return f" ({(last - first) / first:+.1%})" if first > 0 else ""


def _trend(known: Sequence[tuple[float, float]], name: str) -> list[str]:
    """Whether values rise or fall over all, by their correlation with the place."""
    if len(known) < 4:
        return []
    n = len(known)
    mean_x, mean_y = sum(x for x, _ in known) / n, sum(y for _, y in known) / n
    across = sum((x - mean_x) ** 2 for x, _ in known)
    up = sum((y - mean_y) ** 2 for _, y in known)
    if not across or not up:
        return [f"{name}All values are equal."] if not up else []
    related = sum((x - mean_x) * (y - mean_y) for x, y in known) / (across * up) ** 0.5
    if abs(related) < WEAK:
        return [f"{name}No clear trend over the whole range."]
    strength = "steadily" if abs(related) >= STRONG else "unsteadily"
    return [f"{name}Trend: {'rising' if related > 0 else 'falling'} {strength}."]


def _places(chart: Chart) -> Callable[[float], str]:
    """How a place on the axis is called."""
    if chart.axis == "category":
        return lambda at: one_line(chart.labels[int(at)], NAME_CHARS)
    if chart.axis == "time":
        unit: TimeUnit = unit_of([x for each in chart.series for x in each.x])
        return lambda at: time_label(at, unit)
    return lambda at: number_label(at, plain=1500 <= at <= 2200)


def _listed(chart: Chart) -> list[str]:
    """All values as CSV, where they are few."""
    if sum(len(each.x) for each in chart.series) > MOST_VALUES:
        return []
    place = _places(chart)
    known = [dict(zip(each.x, each.y, strict=True)) for each in chart.series]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(chart.series) > 1 or chart.kind == "heatmap"
    names = [one_line(each.name, NAME_CHARS) for each in chart.series] if several else [chart.y_title]
    writer.writerow([chart.x_title, *names])
    for at in sorted({x for each in chart.series for x in each.x}):
        values = (each.get(at) for each in known)
        writer.writerow([place(at), *("" if value is None else f"{value:.12g}" for value in values)])
    return text.getvalue().splitlines()


def _histogram(chart: Chart) -> list[str]:
    series = chart.series[0]
    counts = [value or 0.0 for value in series.y]
    total, fullest = sum(counts), max(range(len(counts)), key=counts.__getitem__)
    start = series.x[fullest]
    bins = f"{count(len(counts), 'bin')} of width {figure(chart.step)} from {figure(series.x[0])} to "
    most = (
        f"{figure(counts[fullest])} of {figure(total)} values lie from {figure(start)} to {figure(start + chart.step)}"
    )
    rows = [f"{x:.12g},{y:.12g}" for x, y in zip(series.x, counts, strict=True)]
    return [f"{bins}{figure(series.x[-1] + chart.step)}; most, {most}.", "bin start,rows", *rows]


def _scatter(chart: Chart) -> list[str]:
    lines: list[str] = []
    if chart.correlation is not None:
        size = abs(chart.correlation)
        words = "strong" if size >= STRONG else "weak" if size >= WEAK else "no clear"
        lines.append(f"Correlation (Pearson) {chart.correlation:.3f}: {words} linear relation.")
    place = _places(chart)
    for each in chart.series:
        name = f"{one_line(each.name, NAME_CHARS)}: " if len(chart.series) > 1 else ""
        points = sum(each.weights) if each.weights else len(each.x)
        values = [value for value in each.y if value is not None]
        if values:
            across = f"{chart.x_title} from {place(min(each.x))} to {place(max(each.x))}"
            up = f"{chart.y_title} from {figure(min(values))} to {figure(max(values))}"
            lines.append(f"{name}{count(points, 'point')}; {across}, {up}.")
    return lines


def _boxes(chart: Chart) -> list[str]:
    rows = ["group,n,lower whisker,first quartile,median,third quartile,upper whisker,outliers"]
    for each in chart.boxes:
        figures = (each.low, each.first, each.median, each.third, each.high)
        values = ",".join(f"{value:.12g}" for value in figures)
        rows.append(f"{one_line(each.label, NAME_CHARS)},{each.count},{values},{each.outliers}")
    return rows
