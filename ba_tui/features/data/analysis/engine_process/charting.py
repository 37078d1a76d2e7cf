"""Charts of tables: decides what is drawn, and brings together what the queries of ``chart_queries`` find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb

from ba_tui.core.displays.charts import Box, Chart, ChartRequest, ChartSeries
from ba_tui.core.ports.tables import Arrangement
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.charts.choosing import MOST_SERIES, MOST_SLICES, ColumnFacts, TableFacts, chosen
from ba_tui.features.data.analysis.engine_process.arranging import Table, conditions
from ba_tui.features.data.analysis.engine_process.chart_groups import Grouped, grouped
from ba_tui.features.data.analysis.engine_process.chart_values import ChartTable, note_of
from ba_tui.features.data.analysis.engine_process.database import Database, quoted
from ba_tui.features.data.analysis.engine_process.failures import failed
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.plotting.scales import nice_step, number_label
from ba_tui.processes.serving import WorkerRequest

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


MOST_BOXES = 20


def boxes(table: ChartTable) -> Chart:
    """A box for each value of x, the largest groups; one box for all rows without x."""
    request = table.request
    limit = request.limit or MOST_BOXES
    value = table.number(request.y[0])
    label = table.label(request.x) if request.x else f"'{request.y[0].replace(chr(39), chr(39) * 2)}'"
    wanted = " AND v > 0" if request.log else ""
    inner = (
        f"(SELECT {label} AS k, {value} AS v FROM {table.source} WHERE {value} IS NOT NULL{wanted.replace('v', value)})"
    )
    query = f"""
        WITH quartiles AS (
            SELECT k, count(*) AS n, quantile_cont(v, 0.25) AS q1, median(v) AS q2, quantile_cont(v, 0.75) AS q3
            FROM {inner} GROUP BY k ORDER BY n DESC, k LIMIT {limit}
        )
        SELECT k, min(v) FILTER (v >= q1 - 1.5 * (q3 - q1)), any_value(q1), any_value(q2), any_value(q3),
            max(v) FILTER (v <= q3 + 1.5 * (q3 - q1)), any_value(n),
            count(*) FILTER (v < q1 - 1.5 * (q3 - q1) OR v > q3 + 1.5 * (q3 - q1))
        FROM {inner} JOIN quartiles USING (k) GROUP BY k ORDER BY any_value(q2) DESC, k"""
    found = tuple(Box(*row) for row in table.all(query))
    notes = list(table.lacking([request.y[0]]))
    groups = table.one(f"SELECT count(DISTINCT k) FROM {inner}")[0]
    if groups > len(found):
        notes.append(f"{len(found):,} of {groups:,} values of {request.x} are shown: those with the most rows.")
    if any(each.outliers for each in found):
        notes.append("Outliers lie beyond 1.5 times the distance of the quartiles; they are counted, not drawn.")
    return Chart(request, "category", request.x, request.y[0], boxes=found, notes=tuple(notes))


MOST_COLUMNS = 200
"""Columns among which a chart's are chosen."""
COUNTED_ROWS = 100_000
"""Rows from the beginning in which different values are counted, to choose columns by."""


def charted(
    database: Database, request: WorkerRequest, table: Table, arrangement: Arrangement, wanted: ChartRequest
) -> Chart:
    """Compute a chart of the rows that ``arrangement`` lets through. Raises HandlerFailed."""
    with database.shared(request, f"computing the chart of {table.name}") as cursor:
        source, rows = quoted(table.name), table.rows
        where, values = conditions(table, arrangement)
        if where:
            cursor.execute(f"CREATE OR REPLACE TEMP TABLE charted AS FROM {source} WHERE {where}", values)
            source = "charted"
            row = cursor.execute("SELECT count(*) FROM charted").fetchone()
            rows = int(row[0]) if row else 0
        try:
            decided = chosen(wanted, _facts(cursor, replace(table, rows=rows), source, wanted))
            chart = _computed(ChartTable(cursor, source, table.columns, rows, decided))
        except QueryFailed as error:
            raise failed(str(error), error.hint, error.kind) from error
        return replace(chart, rows=rows)


def _facts(cursor: duckdb.DuckDBPyConnection, table: Table, source: str, wanted: ChartRequest) -> TableFacts:
    """How many different values each column has, about."""
    named = {name.lower() for name in (wanted.x, wanted.series, *wanted.y)}
    looked = [each for place, each in enumerate(table.columns) if place < MOST_COLUMNS or each.name.lower() in named]
    some = source if table.rows <= COUNTED_ROWS else f"(FROM {source} LIMIT {COUNTED_ROWS})"
    counts = ", ".join(f"approx_count_distinct({quoted(each.name)})" for each in looked)
    found: Sequence[Any] = cursor.execute(f"SELECT {counts} FROM {some}").fetchone() or () if looked else ()
    distinct = {each.name: int(number) for each, number in zip(looked, found, strict=True)}

    def unique(one: str, other: str) -> bool:
        query = f"SELECT count(*) FROM (SELECT DISTINCT {quoted(one)}, {quoted(other)} FROM {some})"
        row = cursor.execute(query).fetchone()
        return bool(row) and int(row[0]) == min(table.rows, COUNTED_ROWS)

    columns = [ColumnFacts(each, distinct.get(each.name, 0)) for each in table.columns]
    return TableFacts(table.name, columns, table.rows, unique)


def _computed(table: ChartTable) -> Chart:
    decided = table.request
    match decided.kind:
        case "histogram":
            return counted_bins(table)
        case "box":
            return boxes(table)
        case "scatter":
            return points(table)
        case "heatmap" if decided.series and not decided.y and table.column(decided.series).numeric:
            return heatmap_bins(table)
        case _:
            return _of_groups(table, grouped(table))


def _of_groups(table: ChartTable, found: Grouped) -> Chart:
    request, notes = table.request, list(found.notes)
    values = [value for each in found.series for value in each.y if value is not None]
    if request.kind == "pie":
        if any(value < 0 for value in values):
            raise QueryFailed("A pie can't show negative values.", "Use kind=bar.")
        if len(found.labels) > MOST_SLICES:
            slices = count(len(found.labels), "slice")
            raise QueryFailed(
                f"A pie of {slices} can't be read; at most {MOST_SLICES} can.",
                "Use kind=bar, which sorts them by size, or limit=6 to join the smallest.",
            )
        notes.append("Shares are drawn as bars in the terminal.")
    if request.kind == "area" and any(value < 0 for value in values):
        request = replace(request, kind="line")
        notes.append("Drawn as lines: areas can't show negative values.")
    if request.log and any(value <= 0 for value in values):
        notes.append(note_of(sum(value <= 0 for value in values), "value", "at or below zero", "on a logarithmic axis"))
    if len(found.series) > MOST_SERIES and request.kind != "heatmap":
        raise QueryFailed(f"{len(found.series)} series can't be told apart.", f"Use at most {MOST_SERIES}.")
    title = _value_title(request, single=found.single)
    return Chart(
        request,
        found.axis,
        f"{request.x} ({found.unit})" if found.unit else request.x,
        title,
        found.series,
        found.labels,
        notes=tuple(notes),
    )


def _value_title(request: ChartRequest, *, single: bool) -> str:
    """What the values are: "sum of amount"; only the name of the column where each is the value of one row."""
    if request.aggregate == "count":
        return "number of rows"
    names = ", ".join(request.y)
    return names if single else f"{request.aggregate} of {names}"
