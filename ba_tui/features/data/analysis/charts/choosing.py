"""Completes the request for a chart: kind, columns and aggregate, by the columns of the table and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ba_tui.core.displays.charts import ChartKind, ChartRequest
from ba_tui.core.ports.tables import Column
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import QueryFailed

FEW = 12
"""Different numbers that are shown as categories rather than binned."""
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
    """A column and about how many different values it has."""

    column: Column
    distinct: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def measure(self) -> bool:
        """Whether its numbers mean amounts, not names."""
        return self.column.numeric and not _ID.search(self.name) and not _YEAR.search(self.name)

    @property
    def time(self) -> bool:
        return self.column.kind in {"date", "timestamp"}

    @property
    def year(self) -> bool:
        return self.column.kind == "integer" and bool(_YEAR.search(self.name))


@frozen
class TableFacts:
    """``unique``: whether two columns together name each row."""

    name: str
    columns: Sequence[ColumnFacts]
    rows: int
    unique: Callable[[str, str], bool]

    def column(self, name: str) -> ColumnFacts:
        """The column of this name, in any case. Raises QueryFailed with the nearest names."""
        found = next((each for each in self.columns if each.name.lower() == name.lower()), None)
        if found is None:
            names = [each.name for each in self.columns]
            close = nearest(name, names)
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            listed = one_line(", ".join(names[:MOST_NAMES]), 200)
            hint = f"Did you mean {close}?" if close else f"Columns: {listed}{more}."
            raise QueryFailed(f"{self.name} has no column {one_line(name, 80)}.", hint)
        return found

    def measures(self, without: Iterable[str] = ()) -> list[ColumnFacts]:
        """Return the columns that hold amounts; if none does, all columns of numbers."""
        left = [each for each in self.columns if each.name not in set(without)]
        return [each for each in left if each.measure] or [each for each in left if each.column.numeric]


def chosen(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Return ``request`` with kind, columns and aggregate filled in.

    Raises:
        QueryFailed: a column does not exist, or the chart can't be drawn of these columns.
    """
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
    """The request with names as the table writes them."""
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
    """The column that values are shown by: a time, a year, else a text with few values."""
    left = [each for each in table.columns if each.name not in set(without)]
    times = [each for each in left if each.time and each.distinct > 1] or [each for each in left if each.year]
    if times:
        return times[0]
    texts = [each for each in left if not each.column.numeric and not each.time]
    named = [each for each in texts if 1 < each.distinct <= MANY_BARS]
    few = [each for each in texts if 0 < each.distinct < max(2, table.rows)]
    return next(iter(named or few or texts), None)


def _grouped(request: ChartRequest, table: TableFacts) -> ChartRequest:
    """Bars, lines, areas and pies: a value, or several, for each x."""
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
    """The only other column of names, where it and x name each row, as in the result of GROUP BY with two columns."""
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
        # Times and texts are counted as bars.
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
    """``series`` makes the rows; two columns of numbers without it are binned and counted."""
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
    """Raises QueryFailed for columns that the kind can't draw."""
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
