"""Charts: completes a request by the columns of its table, and describes a chart in words and as Vega-Lite."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.ports.tables import Column
from ba_tui.core.results import Chart, ChartKind, ChartRequest, ChartSeries
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import correction, count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.plotting.canvas import safe
from ba_tui.plotting.scales import TimeUnit, number_label, time_label, unit_of

FEW = 12
"""Up to this many distinct numbers are shown as categories rather than binned."""
MOST_SERIES = 8
MOST_SLICES = 6
MOST_NAMES = 12
MANY_BARS = 40
_ID = regex(
    r"(?:^|[_ ])(?:id|key|nr|no|number|nummer|code|zip|plz|postcode|index|uuid|order|invoice|ticket|receipt|customer"
    r"|account)$|[a-z]ID$|Id$",
    re.IGNORECASE,
)
_YEAR = regex(r"(?:^|[_ ])(?:year|jahr|année|año|anno)(?:$|[_ ])|^年(?:份|度)?$", re.IGNORECASE)
_LEVEL = regex(
    r"(?:^|[_ ])(?:avg|average|mean|median|rate|ratio|share|percent|pct|price|temperature|temp|score|age)(?:$|[_ ])|%",
    re.IGNORECASE,
)


@frozen
class ColumnFacts:
    """A column and its approximate number of distinct values."""

    column: Column
    distinct: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def measure(self) -> bool:
        """Whether the numbers are amounts rather than identifiers."""
        return self.column.numeric and not _ID.search(self.name) and not _YEAR.search(self.name)

    @property
    def time(self) -> bool:
        return self.column.kind in {"date", "timestamp"}

    @property
    def year(self) -> bool:
        return self.column.kind == "integer" and bool(_YEAR.search(self.name))


@frozen
class TableFacts:
    """The columns of a table. ``unique``: whether two columns together identify each row."""

    name: str
    columns: Sequence[ColumnFacts]
    rows: int
    unique: Callable[[str, str], bool]

    def column(self, name: str) -> ColumnFacts:
        """Return the column with this name, ignoring case. Raises QueryFailed with the nearest names."""
        found = next((each for each in self.columns if each.name.lower() == name.lower()), None)
        if found is None:
            names = [each.name for each in self.columns]
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            listed = one_line(", ".join(names[:MOST_NAMES]), 200)
            hint = correction(name, names, f"Columns: {listed}{more}.")
            raise QueryFailed(f"{self.name} has no column {one_line(name, 80)}.", hint)
        return found

    def measures(self, without: Iterable[str] = ()) -> list[ColumnFacts]:
        """Return the columns of amounts, or all numeric columns when there are none."""
        left = [each for each in self.columns if each.name not in set(without)]
        return [each for each in left if each.measure] or [each for each in left if each.column.numeric]


def complete_request(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Return ``request`` with kind, columns and aggregate filled in. Raises QueryFailed: a column does not exist, or
    the kind can't be drawn of these columns."""
    request = _named(request, table)
    kind = request.kind or _kind(request, table)
    request = replace(request, kind=kind)
    match kind:
        case "histogram":
            request = _histogram(request, table)
        case "box":
            request = _box(request, table)
        case "scatter":
            request = _scatter(request, table)
        case "heatmap":
            request = _heatmap(request, table)
        case _:
            request = _grouped(request, table)
    _check(request, table)
    return request


def _named(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Return the request with column names as spelled in the table."""
    if not table.columns:
        raise QueryFailed(f"{table.name} has no columns.")
    x, series = (table.column(name).name if name else "" for name in (request.x, request.series))
    y = tuple(dict.fromkeys(table.column(name).name for name in request.y))
    if request.limit < 0:
        raise QueryFailed("The limit must be a positive number of categories.")
    return replace(request, x=x, y=y, series=series)


def _kind(request: ChartRequest, table: TableFacts) -> ChartKind:
    x = table.column(request.x) if request.x else None
    y = [table.column(name) for name in request.y]
    if x is None:
        spare = table.measures(request.y)
        x = _x_of(table, request.y)
        if x is None:
            return "scatter" if len(y) == 1 and request.aggregate is None and spare and table.rows > 1 else "histogram"
    if x.time:
        return "line" if x.distinct > 1 else "bar"
    if not x.column.numeric:
        return "bar"
    if x.year:
        return "line" if x.distinct > 1 else "bar"
    if not y:
        return "histogram" if x.distinct > FEW else "bar"
    return "scatter" if request.aggregate is None and y[0].column.numeric and x.distinct > FEW else "bar"


def _x_of(table: TableFacts, without: Iterable[str]) -> ColumnFacts | None:
    """Return the column for the x axis: a time, a year, else a text with few distinct values."""
    left = [each for each in table.columns if each.name not in set(without)]
    times = [each for each in left if each.time and each.distinct > 1] or [each for each in left if each.year]
    if times:
        return times[0]
    texts = [each for each in left if not each.column.numeric and not each.time]
    named = [each for each in texts if 1 < each.distinct <= MANY_BARS]
    few = [each for each in texts if 0 < each.distinct < max(2, table.rows)]
    return next(iter(named or few or texts), None)


def _grouped(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Complete a bar, line, area or pie chart: one or several values for each x."""
    x = table.column(request.x) if request.x else _x_of(table, (*request.y, request.series))
    if x is None:
        x = next((each for each in table.columns if each.name not in request.y), table.columns[0])
    counted = request.aggregate == "count" or (request.kind == "bar" and not request.y and bool(request.x))
    measures = [] if counted else table.measures((x.name, request.series))
    y = request.y or tuple(each.name for each in measures[:1])
    series = request.series
    if not series and len(y) <= 1 and request.kind != "pie":
        series = _series_of(table, x, y)
    aggregate = request.aggregate or ("count" if not y else "mean" if _LEVEL.search(y[0]) else "sum")
    return replace(request, x=x.name, y=y, series=series, aggregate=aggregate)


def _series_of(table: TableFacts, x: ColumnFacts, y: Sequence[str]) -> str:
    """Return the only other text column if it and x identify each row, as after GROUP BY with two columns."""
    if x.distinct >= table.rows:
        return ""
    others = [each for each in table.columns if each.name not in {x.name, *y} and not each.column.numeric]
    if len(others) != 1 or not 1 < others[0].distinct <= MOST_SERIES:
        return ""
    return others[0].name if table.unique(x.name, others[0].name) else ""


def _histogram(request: ChartRequest, table: TableFacts) -> ChartRequest:
    name = request.x or next(iter(request.y), "") or next((each.name for each in table.measures()), "")
    if not name:
        raise QueryFailed(f"{table.name} has no column of numbers.", "A bar chart counts the values of a text.")
    if request.series:
        raise QueryFailed("A histogram shows one column.", "Use kind=box to compare the values of several groups.")
    if not table.column(name).column.numeric:
        # Times and texts are counted, as in a bar chart.
        return _grouped(replace(request, kind="bar", x=name, y=(), aggregate="count"), table)
    return replace(request, x=name, y=(), aggregate="count")


def _box(request: ChartRequest, table: TableFacts) -> ChartRequest:
    y = request.y[:1] or tuple(each.name for each in table.measures((request.x,))[:1])
    if not y:
        raise QueryFailed(f"{table.name} has no column of numbers.", "A bar chart counts the values of a text.")
    x = request.x or request.series
    if not x and not request.y:
        texts = [each for each in table.columns if not each.column.numeric and not each.time]
        x = next((each.name for each in texts if 1 < each.distinct <= MANY_BARS), "")
    return replace(request, x=x, y=y, series="", aggregate=None)


def _scatter(request: ChartRequest, table: TableFacts) -> ChartRequest:
    y = request.y[:1]
    x = request.x or next((each.name for each in table.measures(y)), "")
    y = y or tuple(each.name for each in table.measures((x,))[:1])
    if not x or not y:
        raise QueryFailed("A scatter plot needs two columns of numbers.", "A histogram shows one of them.")
    return replace(request, x=x, y=y, aggregate=None)


def _heatmap(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Complete a heatmap: ``series`` gives its rows; without it, two numeric columns are binned and counted."""
    given = (request.x, request.series, *request.y)
    measured = next((name for name in request.y if table.column(name).column.numeric), "")
    series = request.series or next((name for name in request.y if name != measured), "")
    found = _x_of(table, given)
    x = request.x or (found.name if found else table.columns[0].name)
    if not series and measured and table.column(x).column.numeric and not table.column(x).year:
        return replace(request, x=x, y=(), series=measured, aggregate="count")
    if not series:
        others = _x_of(table, (x, *request.y))
        if others is None:
            raise QueryFailed("A heatmap needs two columns to group by.", "Name them as x and series.")
        series = others.name
    if not measured and request.aggregate != "count" and not request.y:
        measured = next((each.name for each in table.measures((x, series))), "")
    aggregate = request.aggregate or (("mean" if _LEVEL.search(measured) else "sum") if measured else "count")
    return replace(request, x=x, y=(measured,) if measured else (), series=series, aggregate=aggregate)


def _check(request: ChartRequest, table: TableFacts) -> None:
    """Raise QueryFailed for columns that the kind can't draw."""
    for name in request.y:
        column = table.column(name).column
        if not column.numeric and request.aggregate != "count":
            numbers = [each.name for each in table.measures()]
            hint = "Use aggregate=count to count rows" + (
                f", or a column of numbers: {one_line(', '.join(numbers[:MOST_NAMES]), 200)}." if numbers else "."
            )
            raise QueryFailed(f"{name} is {column.type}, not a number.", hint)
    x = table.column(request.x).column if request.x else None
    if request.kind == "scatter" and x and not x.numeric and x.kind not in {"date", "timestamp"}:
        raise QueryFailed(f"{request.x} is {x.type}: a scatter plot needs numbers or times.", "Use kind=box or bar.")
    if len(request.y) > 1 and request.series:
        raise QueryFailed("A chart has several y columns or a series column, not both.", "Leave out one of them.")
    if len(request.y) > MOST_SERIES:
        raise QueryFailed(f"{len(request.y)} y columns can't be told apart.", f"Name at most {MOST_SERIES}.")
    if request.kind == "pie" and (request.series or len(request.y) > 1):
        raise QueryFailed("A pie shows one series.", "Use kind=bar with stacked=true for several.")


# The description is for a model, which does not see the chart: range, trend, extremes, and what is left out.

MOST_VALUES = 60
"""Series of at most this many values are listed; longer ones are summarized by first, last, least and most."""
NAME_CHARS = 60
STRONG, WEAK = 0.7, 0.3


def description(chart: Chart) -> str:
    """Return a few sentences about a chart, and all its values when they are few."""
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
            body = _histogram_words(chart)
        case "scatter":
            body = _scatter_words(chart)
        case _:
            body = [line for each in chart.series for line in _series(chart, each)]
            body += _listed(chart)
    unit = [f"Unit: {one_line(request.unit, 40)}."] if request.unit else []
    return "\n".join([head, *unit, *body, *chart.notes])


def figure(value: float) -> str:
    """Return a value with all its digits, which a model may quote."""
    return f"{value:,.12g}"


def _series(chart: Chart, series: ChartSeries) -> list[str]:
    """Yield the range of one series, and its trend when the places have an order."""
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
    """Describe whether values rise or fall overall, by their correlation with the position."""
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
    """Return the labels of the places on the axis."""
    if chart.axis == "category":
        return lambda at: one_line(chart.labels[int(at)], NAME_CHARS)
    if chart.axis == "time":
        unit: TimeUnit = unit_of([x for each in chart.series for x in each.x])
        return lambda at: time_label(at, unit)
    return lambda at: number_label(at, plain=1500 <= at <= 2200)


def _listed(chart: Chart) -> list[str]:
    """Return all values as CSV when they are few."""
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


def _histogram_words(chart: Chart) -> list[str]:
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


def _scatter_words(chart: Chart) -> list[str]:
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


# The Vega-Lite specification of a chart, for pictures.

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
WIDTH, HEIGHT = 640, 360
BAR = 26
PALETTE = ("#3b6fb6", "#d9822b", "#3a8f5c", "#b8475a", "#7a5aa6", "#8c6d4f", "#c06ba8", "#6b7280")
"""Colours of series, which also differ in brightness."""
MARKS = {"bar": "bar", "line": "line", "area": "area", "scatter": "point", "histogram": "bar", "pie": "arc"}


def specification(chart: Chart) -> dict[str, Any]:
    """Return a Vega-Lite specification with embedded data, so that rendering it loads nothing."""
    title: dict[str, Any] = {"text": safe(chart.title), "anchor": "start"}
    if chart.notes:
        title["subtitle"] = [safe(note) for note in chart.notes]
    view: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": title,
        "background": "white",
        "config": {"range": {"category": list(PALETTE)}, "axis": {"labelLimit": 240}, "numberFormat": ",~r"},
    }
    if chart.empty:
        return {**view, "data": {"values": []}, "mark": "text", "width": WIDTH, "height": 60}
    match chart.kind:
        case "box":
            return {**view, **_box_view(chart)}
        case "heatmap":
            return {**view, **_heatmap_view(chart)}
        case "histogram":
            return {**view, **_histogram_view(chart)}
        case "pie":
            return {**view, **_pie_view(chart)}
        case "bar":
            return {**view, **_bar_view(chart)}
        case _:
            return {**view, **_marks(chart)}


def _unit(chart: Chart) -> str:
    title = safe(chart.y_title)
    return f"{title} ({safe(chart.request.unit)})" if chart.request.unit else title


def _values(chart: Chart) -> list[dict[str, Any]]:
    """Return one record for each point. Fields get neutral names, because Vega parses special characters in field
    names."""
    found: list[dict[str, Any]] = []
    for number, series in enumerate(chart.series):
        weights = series.weights or (1,) * len(series.x)
        for x, y, weight in zip(series.x, series.y, weights, strict=True):
            if y is not None and not (chart.request.log and y <= 0):
                place: Any = safe(chart.labels[int(x)]) if chart.axis == "category" and chart.labels else x
                place = place * 1000 if chart.axis == "time" else place
                found.append({"x": place, "y": y, "s": safe(series.name), "i": number, "n": weight})
    return found


def _scale(chart: Chart, *, zero: bool) -> dict[str, Any]:
    if chart.request.log:
        return {"type": "log"}
    limits = {"domainMin": chart.request.low, "domainMax": chart.request.high} if not zero else {}
    return {"zero": zero, **{name: value for name, value in limits.items() if value is not None}}


def _colour(chart: Chart) -> dict[str, Any]:
    if len(chart.series) < 2:
        return {"value": PALETTE[0]}
    names = [safe(each.name) for each in chart.series]
    return {"field": "s", "type": "nominal", "sort": names, "title": safe(chart.request.series) or None}


def _bar_view(chart: Chart) -> dict[str, Any]:
    labels = [safe(each) for each in chart.labels]
    lying = max(map(len, labels), default=0) > 14 or len(labels) > 24
    named: dict[str, Any] = {"field": "x", "type": "nominal", "sort": labels, "title": safe(chart.x_title) or None}
    amount: dict[str, Any] = {
        "field": "y", "type": "quantitative", "title": _unit(chart), "scale": _scale(chart, zero=True),
    }  # fmt: skip
    several, stacked = len(chart.series) > 1, chart.request.stacked
    mark: dict[str, Any] = {"type": "bar"}
    if several and not stacked:
        amount["stack"] = None
    along, across = ("y", "x") if lying else ("x", "y")
    if not lying and sum(map(len, labels)) < 80:
        named["axis"] = {"labelAngle": 0}
    encoding = {along: named, across: amount, "color": _colour(chart), "order": {"field": "i"}}
    if several and not stacked:
        names = [safe(each.name) for each in chart.series]
        encoding[f"{along}Offset"] = {"field": "s", "sort": names}
    size = {"width": WIDTH, "height": {"step": 8 if several and not stacked else BAR}} if lying else _size()
    return {"data": {"values": _values(chart)}, "mark": mark, "encoding": encoding, **size}


def _size() -> dict[str, Any]:
    return {"width": WIDTH, "height": HEIGHT}


def _marks(chart: Chart) -> dict[str, Any]:
    kinds = {"category": "ordinal", "number": "quantitative", "time": "temporal"}
    place: dict[str, Any] = {"field": "x", "type": kinds[chart.axis], "title": safe(chart.x_title) or None}
    if chart.axis == "category":
        place["sort"] = [safe(each) for each in chart.labels]
    elif chart.axis == "number":
        place["scale"] = {"zero": False}
        whole = [value for each in chart.series for value in each.x]
        if all(value == int(value) and 1500 <= value <= 2200 for value in whole):
            place["axis"] = {"format": "d"}
    else:
        place["scale"] = {"type": "utc"}
    amount = {
        "field": "y", "type": "quantitative", "title": _unit(chart), "scale": _scale(chart, zero=chart.kind == "area"),
    }  # fmt: skip
    encoding: dict[str, Any] = {"x": place, "y": amount, "color": _colour(chart)}
    if chart.kind == "area":
        encoding["order"] = {"field": "i"}
    mark: dict[str, Any] = {"type": MARKS[chart.kind]}
    if chart.kind == "scatter":
        mark |= {"filled": True, "opacity": 0.6}
        if any(each.weights for each in chart.series):
            encoding["size"] = {"field": "n", "type": "quantitative", "title": "rows"}
    elif len(chart.series) > 1 and chart.kind == "line":
        encoding["strokeDash"] = {**encoding["color"], "legend": None}
    if all(len(each.x) == 1 for each in chart.series) and chart.kind != "scatter":
        mark = {"type": "point", "filled": True}
    return {"data": {"values": _values(chart)}, "mark": mark, "encoding": encoding, **_size()}


def _histogram_view(chart: Chart) -> dict[str, Any]:
    values = [{**each, "end": each["x"] + chart.step} for each in _values(chart)]
    unit = f" ({safe(chart.request.unit)})" if chart.request.unit else ""
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "bin": {"binned": True, "step": chart.step},
            "title": safe(chart.x_title) + unit,
        },
        "x2": {"field": "end"},
        "y": {
            "field": "y", "type": "quantitative", "title": safe(chart.y_title), "scale": _scale(chart, zero=True),
        },
        "color": {"value": PALETTE[0]},
    }  # fmt: skip
    return {"data": {"values": values}, "mark": "bar", "encoding": encoding, **_size()}


def _pie_view(chart: Chart) -> dict[str, Any]:
    labels = [safe(each) for each in chart.labels]
    encoding = {
        "theta": {"field": "y", "type": "quantitative", "stack": True},
        "color": {"field": "x", "type": "nominal", "sort": labels, "title": safe(chart.x_title) or None},
        "order": {"field": "place", "type": "quantitative"},
    }
    values = [{**each, "place": place} for place, each in enumerate(_values(chart))]
    return {"data": {"values": values}, "mark": {"type": "arc"}, "encoding": encoding, **_size()}


def _heatmap_view(chart: Chart) -> dict[str, Any]:
    labels, names = [safe(each) for each in chart.labels], [safe(each.name) for each in chart.series]
    encoding = {
        "x": {"field": "x", "type": "ordinal", "sort": labels, "title": safe(chart.x_title) or None},
        "y": {"field": "s", "type": "ordinal", "sort": names, "title": safe(chart.request.series) or None},
        "color": {"field": "y", "type": "quantitative", "title": _unit(chart), "scale": {"scheme": "blues"}},
    }
    return {
        "data": {"values": _values(chart)},
        "mark": "rect",
        "encoding": encoding,
        "width": WIDTH,
        "height": {"step": BAR},
    }


def _box_view(chart: Chart) -> dict[str, Any]:
    names = [safe(each.label) for each in chart.boxes]
    values = [
        {"k": name, "low": each.low, "q1": each.first, "q2": each.median, "q3": each.third, "high": each.high}
        for name, each in zip(names, chart.boxes, strict=True)
    ]
    along = {"field": "k", "type": "nominal", "sort": names, "title": safe(chart.x_title) or None}
    scale = _scale(chart, zero=False)

    def figure(name: str) -> dict[str, Any]:
        return {"field": name, "type": "quantitative", "title": _unit(chart), "scale": scale}

    layer = [
        {"mark": "rule", "encoding": {"y": along, "x": figure("low"), "x2": {"field": "high"}}},
        {
            "mark": {"type": "bar", "size": 14, "color": PALETTE[0]},
            "encoding": {"y": along, "x": figure("q1"), "x2": {"field": "q3"}},
        },
        {
            "mark": {"type": "tick", "size": 14, "color": "white", "thickness": 2},
            "encoding": {"y": along, "x": figure("q2")},
        },
    ]
    return {"data": {"values": values}, "layer": layer, "width": WIDTH, "height": {"step": BAR}}
