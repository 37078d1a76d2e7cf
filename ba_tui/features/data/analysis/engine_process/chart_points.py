"""Distributions: bins of a histogram, points of a scatter plot, cells of two columns of numbers."""

from __future__ import annotations

import math

from ba_tui.core.displays.charts import Chart, ChartSeries
from ba_tui.features.data.analysis.charts.choosing import MOST_SERIES
from ba_tui.features.data.analysis.engine_process.chart_values import ChartTable, note_of
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.plotting.scales import nice_step, number_label

MOST_BINS = 40
MOST_POINTS = 2_000
ACROSS, DOWN = 80, 40
"""Cells in which the points of many rows are joined."""
HEAT_ACROSS, HEAT_DOWN = 20, 12


def counted_bins(table: ChartTable) -> Chart:
    """How many rows have a value in each bin."""
    request = table.request
    number = table.number(request.x)
    low, high, known = table.one(f"SELECT min({number}), max({number}), count({number}) FROM {table.source}")
    notes = table.lacking([request.x])
    if not known:
        return Chart(request, "number", request.x, "number of rows", notes=notes)
    step = _bin_width(table, low, high, known)
    first = math.floor(low / step + 1e-9)
    last = math.floor(high / step + 1e-9)
    query = (
        f"SELECT CAST(floor({number} / {step!r} + 1e-9) AS BIGINT) AS b, count(*) "
        f"FROM {table.source} WHERE {number} IS NOT NULL GROUP BY b"
    )
    counts = {int(place): float(rows) for place, rows in table.all(query)}
    bins = range(first, last + 1)
    starts = tuple(each * step for each in bins)
    series = ChartSeries("rows", starts, tuple(counts.get(each, 0.0) for each in bins))
    return Chart(request, "number", request.x, "number of rows", (series,), step=step, notes=notes)


def _bin_width(table: ChartTable, low: float, high: float, known: int) -> float:
    """By Freedman and Diaconis, with 5 to 40 bins; whole for integers."""
    number = table.number(table.request.x)
    if low == high:
        return nice_step(abs(low), 10) if low else 1.0
    first, third = table.one(f"SELECT quantile_cont({number}, 0.25), quantile_cont({number}, 0.75) FROM {table.source}")
    wanted = table.request.limit
    if not wanted:
        width = 2 * (third - first) / known ** (1 / 3)
        wanted = round((high - low) / width) if width > 0 else round(math.sqrt(known))
    step = nice_step(high - low, max(5, min(MOST_BINS, wanted)))
    return max(1.0, step) if table.column(table.request.x).kind == "integer" else step


def points(table: ChartTable) -> Chart:
    """Each row as a point; of many rows, those of each small cell as one point at their mean."""
    request = table.request
    x, y = table.position(request.x), table.position(request.y[0])
    notes = list(table.lacking([request.x, request.y[0]]))
    name = table.label(request.series) if request.series else "''"
    inner = f"SELECT {x} AS x, {y} AS y, {name} AS s FROM {table.source}"
    valid = "x IS NOT NULL AND y IS NOT NULL" + (" AND y > 0" if request.log else "")
    low, high, bottom, top, known, related = table.one(
        f"SELECT min(x), max(x), min(y), max(y), count(*), corr(x, y) FROM ({inner}) WHERE {valid}"
    )
    if request.log and (lost := table.one(f"SELECT count(*) FROM ({inner}) WHERE y <= 0")[0]):
        notes.append(note_of(lost, "value", "at or below zero", "on a logarithmic axis"))
    names = [row[0] for row in table.all(f"SELECT s FROM ({inner}) WHERE {valid} GROUP BY s ORDER BY count(*) DESC, s")]
    if len(names) > MOST_SERIES:
        hint = "Use kind=box, or choose a column with fewer values."
        raise QueryFailed(f"{len(names):,} series of {request.series} can't be told apart.", hint)
    if known > MOST_POINTS:
        across, down = _cell("x", low, high, ACROSS), _cell("y", bottom, top, DOWN)
        query = (
            f"SELECT s, avg(x), avg(y), count(*) FROM ({inner}) WHERE {valid} GROUP BY s, {across}, {down} ORDER BY ALL"
        )
        extent = f"{number_label(bottom)} to {number_label(top)}"
        notes.append(f"{known:,} rows ({request.y[0]} {extent}) are joined to points at the mean of neighbours.")
    else:
        query = f"SELECT s, x, y, 1 FROM ({inner}) WHERE {valid} ORDER BY ALL"
    rows = table.all(query)
    series = tuple(
        ChartSeries(
            each or request.y[0],
            tuple(row[1] for row in rows if row[0] == each),
            tuple(row[2] for row in rows if row[0] == each),
            tuple(row[3] for row in rows if row[0] == each) if known > MOST_POINTS else (),
        )
        for each in names
    )
    axis = "time" if table.is_time(request.x) else "number"
    correlation = float(related) if related is not None and math.isfinite(related) else None
    return Chart(request, axis, request.x, request.y[0], series, notes=tuple(notes), correlation=correlation)


def _cell(name: str, low: float, high: float, count: int) -> str:
    """SQL for the cell of a value among ``count`` from ``low`` to ``high``."""
    span = (high - low) or 1.0
    return f"least({count - 1}, CAST(floor(({name} - {low!r}) / {span!r} * {count}) AS INTEGER))"


def heatmap_bins(table: ChartTable) -> Chart:
    """How many rows lie in each cell of two columns of numbers."""
    request = table.request
    x, y = table.number(request.x), table.number(request.series)
    notes = table.lacking([request.x, request.series])
    inner = f"(SELECT {x} AS x, {y} AS y FROM {table.source} WHERE {x} IS NOT NULL AND {y} IS NOT NULL)"
    low, high, bottom, top = table.one(f"SELECT min(x), max(x), min(y), max(y) FROM {inner}")
    titles = request.x, "number of rows"
    if low is None:
        return Chart(request, "category", *titles, notes=notes)
    across, down = nice_step(high - low, HEAT_ACROSS - 1), nice_step(top - bottom, HEAT_DOWN - 1)
    query = (
        f"SELECT CAST(floor(x / {across!r}) AS BIGINT) AS c, CAST(floor(y / {down!r}) AS BIGINT) AS r, count(*) "
        f"FROM {inner} GROUP BY c, r"
    )
    found = {(int(column), int(row)): float(number) for column, row, number in table.all(query)}
    columns = range(min(c for c, _ in found), max(c for c, _ in found) + 1)
    rows = range(max(r for _, r in found), min(r for _, r in found) - 1, -1)
    series = tuple(
        ChartSeries(
            number_label(row * down, down),
            tuple(float(at) for at, column in enumerate(columns) if (column, row) in found),
            tuple(found[column, row] for column in columns if (column, row) in found),
        )
        for row in rows
    )
    labels = tuple(number_label(column * across, across) for column in columns)
    return Chart(request, "category", *titles, series, labels, notes=notes)
