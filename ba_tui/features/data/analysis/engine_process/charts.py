"""Charts of tables: completes the request, runs the queries and assembles the chart."""

from __future__ import annotations

import calendar
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Arrangement, Column
from ba_tui.core.results import AxisKind, Box, Chart, ChartRequest, ChartSeries
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.charts import MOST_SERIES, MOST_SLICES, ColumnFacts, TableFacts, complete_request
from ba_tui.features.data.analysis.engine_process.database import (
    Database,
    fetch_number,
    quoted,
)
from ba_tui.features.data.analysis.engine_process.grid import GridTable, conditions
from ba_tui.features.data.analysis.errors import QueryFailed, failed
from ba_tui.plotting.scales import UNIT_SECONDS, TimeUnit, nice_step, number_label, time_label, unit_of
from ba_tui.processes.serving import WorkerRequest

# SQL for chart values: finite numbers, times in seconds, labels, aggregates.

LABEL_CHARS = 60
NULL = "NULL"
_AGGREGATES = {"sum": "sum", "mean": "avg", "median": "median", "min": "min", "max": "max"}


@frozen
class ChartTable:
    """The table of a chart: ``source`` is SQL for its ``rows`` rows; ``request`` is complete."""

    cursor: duckdb.DuckDBPyConnection
    source: str
    columns: Sequence[Column]
    rows: int
    request: ChartRequest

    def column(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.cursor.execute(query, list(values)).fetchall()

    def one(self, query: str) -> tuple[Any, ...]:
        return self.cursor.execute(query).fetchone() or ()

    def number(self, name: str) -> str:
        """Return SQL that gives the value of column ``name`` as a finite number, or NULL if it is not one."""
        column = self.column(name)
        if column.kind == "float":
            return f"(CASE WHEN isfinite({quoted(name)}) THEN CAST({quoted(name)} AS DOUBLE) END)"
        return f"CAST({quoted(name)} AS DOUBLE)" if column.numeric else f"TRY_CAST({quoted(name)} AS DOUBLE)"

    def time(self, name: str) -> str:
        """Return SQL for a time without zone or 24:00."""
        moment = quoted(name) if self.column(name).kind == "date" else f"CAST({quoted(name)} AS TIMESTAMP)"
        return f"(CASE WHEN isfinite({quoted(name)}) THEN {moment} END)"

    def label(self, name: str) -> str:
        """Return SQL for a value as a label, NULL included."""
        written = quoted(name) if self.column(name).type == "VARCHAR" else f"CAST({quoted(name)} AS VARCHAR)"
        empty = f"WHEN {written} = '' THEN '(empty)'"
        return f"(CASE WHEN {written} IS NULL THEN '{NULL}' {empty} ELSE left({written}, {LABEL_CHARS}) END)"

    def position(self, name: str) -> str:
        """Return SQL for a position on an axis of numbers or times."""
        return f"epoch({self.time(name)})" if self.is_time(name) else self.number(name)

    def is_time(self, name: str) -> bool:
        return self.column(name).kind in {"date", "timestamp"}

    def aggregated(self, name: str) -> str:
        """Return SQL for the aggregate of a numeric column."""
        return f"{_AGGREGATES[self.request.aggregate or 'sum']}({self.number(name)})"

    def lacking(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return sentences about rows with missing or undrawable values in these columns."""
        notes: list[str] = []
        for name in dict.fromkeys(filter(None, names)):
            column, written = self.column(name), quoted(name)
            endless = "0"
            if column.kind in {"float", "date", "timestamp"}:
                endless = f"count(*) FILTER (NOT isfinite({written}))"
            nulls, odd = self.one(f"SELECT count(*) FILTER ({written} IS NULL), {endless} FROM {self.source}")
            if nulls:
                notes.append(f"{nulls:,} of {self.rows:,} rows without {name} are left out.")
            if odd:
                notes.append(note_of(int(odd), "value", "of NaN or infinity", f"in {name}"))
        return tuple(notes)


def note_of(number: int, noun: str, what: str, where: str) -> str:
    """``3 values of NaN or infinity in x are left out.``"""
    return f"{number:,} {noun}{'' if number == 1 else 's'} {what} {where} {'is' if number == 1 else 'are'} left out."


BARS, TIMES, PLACES = 20, 40, 500
"""Most bars by category, bars by time, and points of a line."""
MOST_BARS = 200
HEAT_ROWS, HEAT_COLUMNS = 20, 24
OTHER = "\x01"
KEY, SERIES, ROW = '"\x01key"', '"\x01series"', '"\x01row"'
"""Names of computed columns. Their control character keeps them apart from the names that people write."""
NUMBERED_ROWS = 100_000
DWARFED = 3
"""When the combined category is this many times the largest one, it is not drawn."""
_UNITS: tuple[TimeUnit, ...] = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_CALENDARS = [
    [name.lower() for name in names if name]
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
]


@frozen
class ChartGroups:
    """Groups of a chart. ``unit``: the unit that times were rounded to; ``single``: each value is from one row."""

    axis: AxisKind
    series: tuple[ChartSeries, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    single: bool = False
    notes: tuple[str, ...] = ()


@frozen
class _Key:
    """The grouping key in SQL with its values; ``notes`` say how values were combined."""

    sql: str
    values: tuple[Any, ...] = ()
    axis: AxisKind = "category"
    unit: TimeUnit | None = None
    step: float = 0.0
    notes: tuple[str, ...] = ()
    ordered: bool = False
    """Whether the keys are ordered, as numbers and times are."""
    times: bool = False


def group_values(table: ChartTable) -> ChartGroups:
    """Aggregate the y columns by x and series."""
    request = table.request
    key = _key(table)
    series, series_notes = _series_key(table)
    counted = request.aggregate == "count"
    values = ["CAST(count(*) AS DOUBLE)"] if counted else [table.aggregated(name) for name in request.y]
    columns = ", ".join(f"{each} AS v{place}" for place, each in enumerate(values))
    # Numbering rows costs more than aggregating, and the order of millions of rows is not visible in a chart.
    numbered = not key.ordered and table.rows <= NUMBERED_ROWS
    first, place = (f"min({ROW})", f", row_number() OVER () AS {ROW}") if numbered else (KEY, "")
    needed = "" if counted else ", ".join(dict.fromkeys(map(quoted, request.y)))
    keys = f"{key.sql} AS {KEY}, {series.sql} AS {SERIES}{place}"
    inner = f"SELECT {keys}{', ' * bool(needed)}{needed} FROM {table.source}"
    shown = f"epoch({KEY})" if key.times else KEY
    query = (
        f"SELECT {shown}, {SERIES}, count(*), {columns} FROM ({inner}) WHERE {KEY} IS NOT NULL "
        f"GROUP BY {KEY}, {SERIES} ORDER BY {KEY if key.ordered else first}, {first}, {SERIES}"
    )
    rows = table.all(query, (*key.values, *series.values))
    if not counted and not key.ordered:
        rows = [row for row in rows if any(value is not None for value in row[3:])]
    single = not counted and all(row[2] == 1 for row in rows)
    lacking = table.lacking([*(() if counted else request.y), *([request.x] if key.axis != "category" else [])])
    rows, hidden = _without_rest(table, rows)
    notes = (*key.notes, *hidden, *series_notes, *lacking)
    unit = key.unit if key.unit and any("joined" in each for each in key.notes) else ""
    if key.axis != "category":
        return ChartGroups(key.axis, _placed(table, rows), unit=unit, single=single, notes=notes)
    found, labels = _labelled(table, rows, key, single=single)
    return ChartGroups("category", found, labels, unit, single, notes)


# Grouping keys


def _key(table: ChartTable) -> _Key:
    request = table.request
    lines = request.kind in {"line", "area"}

    def limit(most: int) -> int:
        return PLACES if lines else request.limit or (HEAT_COLUMNS if _hot(table) else most)

    if table.is_time(request.x):
        return _time_key(table, limit(TIMES))
    if table.column(request.x).numeric:
        return _number_key(table, limit(BARS))
    return _label_key(table, request.x, (request.limit if lines else 0) or limit(BARS))


def _hot(table: ChartTable) -> bool:
    return table.request.kind == "heatmap"


def _time_key(table: ChartTable, limit: int) -> _Key:
    """Return times unchanged when there are few, else rounded to the finest unit that gives few."""
    moment = table.time(table.request.x)
    low, high, different = table.one(
        f"SELECT epoch(min(t)), epoch(max(t)), count(t) FROM (SELECT DISTINCT {moment} AS t FROM {table.source})"
    )
    axis: AxisKind = "time" if table.request.kind in {"line", "area"} else "category"
    if low is None:
        return _Key(moment, axis=axis, ordered=True, unit="day", times=True)
    if different <= limit:
        return _Key(moment, axis=axis, ordered=True, times=True)
    units: list[TimeUnit] = [each for each in _UNITS if (high - low) / UNIT_SECONDS[each] < limit]
    unit: TimeUnit = units[0] if units else "year"
    note = f"{different:,} different times are joined by {unit}."
    return _Key(f"date_trunc('{unit}', {moment})", (), axis, unit, 0.0, (note,), ordered=True, times=True)


def _number_key(table: ChartTable, limit: int) -> _Key:
    """Return numbers unchanged when there are few, else in steps."""
    number = table.number(table.request.x)
    low, high, different = table.one(
        f"SELECT min({number}), max({number}), count(DISTINCT {number}) FROM {table.source}"
    )
    axis: AxisKind = "number" if table.request.kind in {"line", "area"} else "category"
    if low is None or different <= limit:
        return _Key(number, axis=axis, ordered=True)
    step = nice_step(high - low, limit - 1)
    note = f"{different:,} different values of {table.request.x} are joined in steps of {number_label(step)}."
    sql = f"(floor({number} / {step!r}) * {step!r})"
    return _Key(sql, (), axis, None, step, (note,), ordered=True)


def _label_key(table: ChartTable, name: str, limit: int) -> _Key:
    """Return the categories with the largest values; the others are combined."""
    label = table.label(name)
    request = table.request
    limit = max(2, min(limit, PLACES if request.kind in {"line", "area"} else MOST_BARS))
    total = table.one(f"SELECT count(*) FROM (SELECT DISTINCT {label} FROM {table.source})")[0]
    if total <= limit:
        return _Key(label)
    rank = table.aggregated(request.y[0]) if request.y and request.aggregate != "count" else "count(*)"
    query = (
        f"SELECT k FROM (SELECT {label} AS k, abs({rank}) AS r FROM {table.source} GROUP BY 1) "
        f"ORDER BY r DESC NULLS LAST, k LIMIT {limit - 1}"
    )
    kept = [row[0] for row in table.all(query)]
    note = f"{len(kept):,} of {total:,} values of {name} are shown; the other {total - len(kept):,} are joined."
    sql = f"(CASE WHEN list_contains(CAST(? AS VARCHAR[]), {label}) THEN {label} ELSE '{OTHER}' END)"
    return _Key(sql, (kept,), notes=(note,))


def _series_key(table: ChartTable) -> tuple[_Key, tuple[str, ...]]:
    request = table.request
    if not request.series:
        return _Key("''"), ()
    if _hot(table) and table.is_time(request.series):
        return _Key(f"CAST(date_trunc('month', {table.time(request.series)}) AS VARCHAR)"), ()
    key = _label_key(table, request.series, HEAT_ROWS if _hot(table) else MOST_SERIES)
    return key, key.notes


# Series from the groups


def _without_rest(
    table: ChartTable, rows: Sequence[tuple[Any, ...]]
) -> tuple[Sequence[tuple[Any, ...]], Sequence[str]]:
    """Drop the combined category when it would dwarf the named ones."""
    rest = [row for row in rows if row[0] == OTHER]
    sizes = [abs(value) for row in rows if row[0] != OTHER for value in row[3:] if value is not None]
    others = [value for row in rest for value in row[3:] if value is not None]
    if not others or not sizes or max(abs(value) for value in others) <= DWARFED * max(sizes):
        return rows, ()
    aggregate = table.request.aggregate
    what = f"their {aggregate} is {number_label(sum(others))}" if len(others) == 1 else "they are far larger together"
    return [row for row in rows if row[0] != OTHER], (f"The joined ones are not drawn: {what}.",)


def _placed(table: ChartTable, rows: Sequence[tuple[Any, ...]]) -> tuple[ChartSeries, ...]:
    """Return series on an axis of numbers or times."""
    found: list[ChartSeries] = []
    for name, place, own in _series(table, rows):
        points = [(row[0], row[3 + place]) for row in own]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            # Missing times are gaps only between existing ones.
            first, last = known[0][0], known[-1][0]
            points = [(x, y) for x, y in points if first <= x <= last]
            found.append(ChartSeries(name, tuple(float(x) for x, _ in points), tuple(_float(y) for _, y in points)))
    return tuple(found)


def _labelled(
    table: ChartTable, rows: Sequence[tuple[Any, ...]], key: _Key, *, single: bool
) -> tuple[tuple[ChartSeries, ...], tuple[str, ...]]:
    """Return series by label, in the requested order or the labels' own."""
    places: dict[Any, int] = {}
    for at in _order(table, rows, key, single=single):
        places.setdefault(at, len(places))
    found: list[ChartSeries] = []
    for name, place, own in _series(table, rows):
        points = sorted((places[row[0]], _float(row[3 + place])) for row in own)
        kept = [(float(x), y) for x, y in points if y is not None]
        if kept:
            found.append(ChartSeries(name, tuple(x for x, _ in kept), tuple(y for _, y in kept)))
    return tuple(found), tuple(_labels(list(places), table, key))


def _series(table: ChartTable, rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, int, Sequence[tuple[Any, ...]]]]:
    """Return name, positions and rows of each series; the combined one comes last."""
    request = table.request
    if not request.series:
        names = request.y if request.aggregate != "count" else ("rows",)
        return [(name, place, rows) for place, name in enumerate(names or ("rows",))]
    totals: dict[str, float] = {}
    for row in rows:
        totals[row[1]] = totals.get(row[1], 0.0) + abs(row[3] or 0.0)
    names = sorted(totals, key=lambda name: (name == OTHER, name if _hot(table) else "", -totals[name], name))
    return [("other" if name == OTHER else name, 0, [row for row in rows if row[1] == name]) for name in names]


def _order(table: ChartTable, rows: Sequence[tuple[Any, ...]], key: _Key, *, single: bool) -> list[Any]:
    """Return the keys of the categories in drawing order."""
    keys = list(dict.fromkeys(row[0] for row in rows))
    if key.ordered:
        return keys
    order = table.request.order
    known = next((names for names in _CALENDARS if all(str(each).lower() in names for each in keys)), None)
    if known and order is None:
        return sorted(keys, key=lambda each: known.index(str(each).lower()))
    if order is None:
        result = single and table.source.strip('"')[:1] == "R" and table.source.strip('"')[1:].isdigit()
        result = result and table.request.kind != "pie"
        order = "table" if result or table.request.kind in {"line", "area", "heatmap"} else "value"
    if order == "label":
        keys.sort(key=str)
    elif order == "value":
        totals = dict.fromkeys(keys, 0.0)
        for row in rows:
            totals[row[0]] += sum(value or 0.0 for value in row[3:])
        keys.sort(key=lambda each: -totals[each])
    return sorted(keys, key=lambda each: each == OTHER)


def _labels(keys: Sequence[Any], table: ChartTable, key: _Key) -> list[str]:
    if table.is_time(table.request.x):
        unit = key.unit or unit_of(keys)
        return [time_label(each, unit) for each in keys]
    if key.step:
        return [f"{number_label(each, key.step)} to {number_label(each + key.step, key.step)}" for each in keys]
    if key.ordered:
        plain = all(1500 <= each <= 2200 and each == math.floor(each) for each in keys)
        return [number_label(each, plain=plain) for each in keys]
    return ["other" if each == OTHER else str(each) for each in keys]


def _float(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


MOST_BINS = 40
MOST_POINTS = 2_000
ACROSS, DOWN = 80, 40
"""Cells across and down in which the points of many rows are combined."""
HEAT_ACROSS, HEAT_DOWN = 20, 12


def counted_bins(table: ChartTable) -> Chart:
    """Return the number of rows in each bin."""
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
        f"SELECT CAST(floor({number} / {step!r} + 1e-9) AS BIGINT), count(*) "
        f"FROM {table.source} WHERE {number} IS NOT NULL GROUP BY 1"
    )
    counts = {int(place): float(rows) for place, rows in table.all(query)}
    bins = range(first, last + 1)
    starts = tuple(each * step for each in bins)
    series = ChartSeries("rows", starts, tuple(counts.get(each, 0.0) for each in bins))
    return Chart(request, "number", request.x, "number of rows", (series,), step=step, notes=notes)


def _bin_width(table: ChartTable, low: float, high: float, known: int) -> float:
    """Return the bin width by Freedman and Diaconis, with 5 to 40 bins; whole numbers for integers."""
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
    """Return each row as a point; many rows are combined to the mean of each small cell."""
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
    """Return SQL for the cell of a value among ``count`` cells from ``low`` to ``high``."""
    span = (high - low) or 1.0
    return f"least({count - 1}, CAST(floor(({name} - {low!r}) / {span!r} * {count}) AS INTEGER))"


def heatmap_bins(table: ChartTable) -> Chart:
    """Return the number of rows in each cell of two numeric columns."""
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
    """Return a box for each value of x, the largest groups; without x one box for all rows."""
    request = table.request
    limit = request.limit or MOST_BOXES
    value = table.number(request.y[0])
    label = table.label(request.x) if request.x else f"'{request.y[0].replace(chr(39), chr(39) * 2)}'"
    wanted = f" AND {value} > 0" if request.log else ""
    inner = f"(SELECT {label} AS k, {value} AS v FROM {table.source} WHERE {value} IS NOT NULL{wanted})"
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
"""Most columns considered for a chart."""
COUNTED_ROWS = 100_000
"""First rows in which distinct values are counted."""


def compute_chart(
    database: Database, request: WorkerRequest, table: GridTable, arrangement: Arrangement, wanted: ChartRequest
) -> Chart:
    """Compute a chart of the rows that pass ``arrangement``. Raises HandlerFailed."""
    with database.shared(request, f"computing the chart of {table.name}") as cursor:
        source, rows = quoted(table.name), table.rows
        where, values = conditions(table, arrangement)
        if where:
            cursor.execute(f"CREATE OR REPLACE TEMP TABLE charted AS FROM {source} WHERE {where}", values)
            source = "charted"
            rows = fetch_number(cursor, "SELECT count(*) FROM charted")
        try:
            decided = complete_request(wanted, _facts(cursor, replace(table, rows=rows), source, wanted))
            chart = _computed(ChartTable(cursor, source, table.columns, rows, decided))
        except QueryFailed as error:
            raise failed(str(error), error.hint, error.kind) from error
        return replace(chart, rows=rows)


def _facts(cursor: duckdb.DuckDBPyConnection, table: GridTable, source: str, wanted: ChartRequest) -> TableFacts:
    """Return the approximate number of distinct values of each column."""
    named = {name.lower() for name in (wanted.x, wanted.series, *wanted.y)}
    looked = [each for place, each in enumerate(table.columns) if place < MOST_COLUMNS or each.name.lower() in named]
    some = source if table.rows <= COUNTED_ROWS else f"(FROM {source} LIMIT {COUNTED_ROWS})"
    counts = ", ".join(f"approx_count_distinct({quoted(each.name)})" for each in looked)
    found: Sequence[Any] = cursor.execute(f"SELECT {counts} FROM {some}").fetchone() or () if looked else ()
    distinct = {each.name: int(number) for each, number in zip(looked, found, strict=True)}

    def unique(one: str, other: str) -> bool:
        query = f"SELECT count(*) FROM (SELECT DISTINCT {quoted(one)}, {quoted(other)} FROM {some})"
        return fetch_number(cursor, query) == min(table.rows, COUNTED_ROWS)

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
            return _of_groups(table, group_values(table))


def _of_groups(table: ChartTable, found: ChartGroups) -> Chart:
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
    across = f"{request.x} ({found.unit})" if found.unit else request.x
    return Chart(request, found.axis, across, title, found.series, found.labels, notes=tuple(notes))


def _value_title(request: ChartRequest, *, single: bool) -> str:
    """Return the title of the values: "sum of amount", or the column's name when each value is from one row."""
    if request.aggregate == "count":
        return "number of rows"
    names = ", ".join(request.y)
    return names if single else f"{request.aggregate} of {names}"
