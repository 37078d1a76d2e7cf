"""Charts of tables: decides what is drawn, and brings together what the queries of ``chart_queries`` find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb

from ba_tui.core.displays.charts import Chart, ChartRequest
from ba_tui.core.ports.tables import Arrangement
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.charts.choosing import MOST_SERIES, MOST_SLICES, ColumnFacts, TableFacts, chosen
from ba_tui.features.data.analysis.engine_process.arranging import Table, conditions
from ba_tui.features.data.analysis.engine_process.chart_boxes import boxes
from ba_tui.features.data.analysis.engine_process.chart_groups import Grouped, grouped
from ba_tui.features.data.analysis.engine_process.chart_points import counted_bins, heatmap_bins, points
from ba_tui.features.data.analysis.engine_process.chart_values import ChartTable, note_of
from ba_tui.features.data.analysis.engine_process.database import Database, quoted
from ba_tui.features.data.analysis.engine_process.failures import failed
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.processes.serving import WorkerRequest

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
