"""Values by group: bars, lines, areas, pies and heatmaps. Of many groups the largest stay, and the rest is joined."""

from __future__ import annotations

import calendar
import math
from collections.abc import Sequence
from typing import Any

from ba_tui.core.displays.charts import AxisKind, ChartSeries
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.charts.choosing import MOST_SERIES
from ba_tui.features.data.analysis.engine_process.chart_values import ChartTable
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.plotting.scales import UNIT_SECONDS, TimeUnit, nice_step, number_label, time_label, unit_of

BARS, TIMES, PLACES = 20, 40, 500
"""Most categories of bars by name, of bars by time, and points of a line."""
MOST_BARS = 200
HEAT_ROWS, HEAT_COLUMNS = 20, 24
OTHER = "\x01"
NUMBERED_ROWS = 100_000
DWARFED = 3
"""Times the largest category, beyond which all others are not drawn beside it."""
_UNITS: tuple[TimeUnit, ...] = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_CALENDARS = [
    [name.lower() for name in names if name]
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
]


@frozen
class Grouped:
    """``unit``: what times were joined to; ``single``: each value is that of one row."""

    axis: AxisKind
    series: tuple[ChartSeries, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    single: bool = False
    notes: tuple[str, ...] = ()


@frozen
class _Key:
    """SQL for what rows are grouped by, with its values; what was done to it in ``notes``."""

    sql: str
    values: tuple[Any, ...] = ()
    axis: AxisKind = "category"
    unit: TimeUnit | None = None
    step: float = 0.0
    notes: tuple[str, ...] = ()
    ordered: bool = False
    """Whether the keys have an order of their own, as numbers and times do."""
    times: bool = False


def grouped(table: ChartTable) -> Grouped:
    """Aggregate the y columns by x and series."""
    request = table.request
    key = _key(table)
    series, series_notes = _series_key(table)
    counted = request.aggregate == "count"
    values = ["CAST(count(*) AS DOUBLE)"] if counted else [table.aggregated(name) for name in request.y]
    columns = ", ".join(f"{each} AS v{place}" for place, each in enumerate(values))
    # Numbering rows costs more than aggregating them, and their order can't be seen in a chart of millions.
    numbered = not key.ordered and table.rows <= NUMBERED_ROWS
    first, place = ("min(o)", ", row_number() OVER () AS o") if numbered else ("k", "")
    needed = "" if counted else ", ".join(dict.fromkeys(map(quoted, request.y)))
    inner = f"SELECT {key.sql} AS k, {series.sql} AS s{place}{', ' * bool(needed)}{needed} FROM {table.source}"
    shown = "epoch(k)" if key.times else "k"
    query = (
        f"SELECT {shown}, s, count(*) AS n, {columns} "
        f"FROM ({inner}) WHERE k IS NOT NULL GROUP BY k, s ORDER BY {'k' if key.ordered else first}, {first}, s"
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
        return Grouped(key.axis, _placed(table, rows), unit=unit, single=single, notes=notes)
    found, labels = _labelled(table, rows, key, single=single)
    return Grouped("category", found, labels, unit, single, notes)


# What rows are grouped by


def _key(table: ChartTable) -> _Key:
    request, column = table.request, table.column(table.request.x)
    lines = request.kind in {"line", "area"}
    if table.is_time(request.x):
        return _time_key(table, limit=PLACES if lines else request.limit or (HEAT_COLUMNS if _hot(table) else TIMES))
    if column.numeric:
        return _number_key(table, limit=PLACES if lines else request.limit or (HEAT_COLUMNS if _hot(table) else BARS))
    return _label_key(table, request.x, request.limit or (HEAT_COLUMNS if _hot(table) else PLACES if lines else BARS))


def _hot(table: ChartTable) -> bool:
    return table.request.kind == "heatmap"


def _time_key(table: ChartTable, limit: int) -> _Key:
    """Times as they are where there are few, else joined by the finest unit that leaves few."""
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
    """Numbers as they are where there are few, else in steps."""
    number = table.number(table.request.x)
    low, high, different = table.one(
        f"SELECT min({number}), max({number}), count(DISTINCT {number}) FROM {table.source}"
    )
    lines = table.request.kind in {"line", "area"}
    axis: AxisKind = "number" if lines else "category"
    if low is None or different <= limit:
        return _Key(number, axis=axis, ordered=True)
    step = nice_step(high - low, limit - 1)
    note = f"{different:,} different values of {table.request.x} are joined in steps of {number_label(step)}."
    sql = f"(floor({number} / {step!r}) * {step!r})"
    return _Key(sql, (), axis, None, step, (note,), ordered=True)


def _label_key(table: ChartTable, name: str, limit: int) -> _Key:
    """The categories with the largest values; all others are one more."""
    label = table.label(name)
    request, limit = (
        table.request,
        max(2, min(limit, MOST_BARS if table.request.kind not in {"line", "area"} else PLACES)),
    )
    total = table.one(f"SELECT count(*) FROM (SELECT DISTINCT {label} FROM {table.source})")[0]
    if total <= limit:
        return _Key(label)
    rank = table.aggregated(request.y[0]) if request.y and request.aggregate != "count" else "count(*)"
    query = (
        f"SELECT k FROM (SELECT {label} AS k, abs({rank}) AS r FROM {table.source} GROUP BY k) "
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


# What was found


def _without_rest(
    table: ChartTable, rows: Sequence[tuple[Any, ...]]
) -> tuple[Sequence[tuple[Any, ...]], Sequence[str]]:
    """The rows without the category of all others where it would dwarf those that have names."""
    rest = [row for row in rows if row[0] == OTHER]
    sizes = [abs(value) for row in rows if row[0] != OTHER for value in row[3:] if value is not None]
    others = [value for row in rest for value in row[3:] if value is not None]
    if not others or not sizes or max(abs(value) for value in others) <= DWARFED * max(sizes):
        return rows, ()
    aggregate = table.request.aggregate
    what = f"their {aggregate} is {number_label(sum(others))}" if len(others) == 1 else "they are far larger together"
    return [row for row in rows if row[0] != OTHER], (f"The joined ones are not drawn: {what}.",)


def _placed(table: ChartTable, rows: Sequence[tuple[Any, ...]]) -> tuple[ChartSeries, ...]:
    """Series on an axis of numbers or times."""
    found: list[ChartSeries] = []
    for name, place, own in _series(table, rows):
        points = [(row[0], row[3 + place]) for row in own]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            # Times without a value are gaps only between others.
            first, last = known[0][0], known[-1][0]
            points = [(x, y) for x, y in points if first <= x <= last]
            found.append(ChartSeries(name, tuple(float(x) for x, _ in points), tuple(_float(y) for _, y in points)))
    return tuple(found)


def _labelled(
    table: ChartTable, rows: Sequence[tuple[Any, ...]], key: _Key, *, single: bool
) -> tuple[tuple[ChartSeries, ...], tuple[str, ...]]:
    """Series by label, in the order that was asked for or that the labels have."""
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
    """The name of each series, the place of its values, and its rows; the one of all others comes last."""
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
    """The keys of the categories in the order in which they are drawn."""
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
