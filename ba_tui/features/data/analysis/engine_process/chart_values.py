"""The table of a chart, and SQL for its values: finite numbers, times in seconds, labels, aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ba_tui.core.displays.charts import ChartRequest
from ba_tui.core.ports.tables import Column
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted

LABEL_CHARS = 60
NULL = "NULL"
_AGGREGATES = {"sum": "sum", "mean": "avg", "median": "median", "min": "min", "max": "max"}


@frozen
class ChartTable:
    """``source`` is SQL for the rows, ``rows`` their number; ``request`` has everything decided."""

    cursor: duckdb.DuckDBPyConnection
    source: str
    columns: Sequence[Column]
    rows: int
    request: ChartRequest

    def column(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.cursor.execute(query, list(values)).fetchall()

    def one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        return self.cursor.execute(query, list(values)).fetchone() or ()

    def number(self, name: str) -> str:
        """Return SQL that gives the value of column ``name`` as a finite number, or NULL if it is not one."""
        column = self.column(name)
        if column.kind == "float":
            return f"(CASE WHEN isfinite({quoted(name)}) THEN CAST({quoted(name)} AS DOUBLE) END)"
        return f"CAST({quoted(name)} AS DOUBLE)" if column.numeric else f"TRY_CAST({quoted(name)} AS DOUBLE)"

    def time(self, name: str) -> str:
        """SQL for a time, which has neither a zone nor an end of days."""
        moment = quoted(name) if self.column(name).kind == "date" else f"CAST({quoted(name)} AS TIMESTAMP)"
        return f"(CASE WHEN isfinite({quoted(name)}) THEN {moment} END)"

    def label(self, name: str) -> str:
        """SQL for a value as a label; NULL is one, too."""
        written = quoted(name) if self.column(name).type == "VARCHAR" else f"CAST({quoted(name)} AS VARCHAR)"
        empty = f"WHEN {written} = '' THEN '(empty)'"
        return f"(CASE WHEN {written} IS NULL THEN '{NULL}' {empty} ELSE left({written}, {LABEL_CHARS}) END)"

    def position(self, name: str) -> str:
        """SQL for where a value lies on an axis of numbers or times."""
        return f"epoch({self.time(name)})" if self.is_time(name) else self.number(name)

    def is_time(self, name: str) -> bool:
        return self.column(name).kind in {"date", "timestamp"}

    def aggregated(self, name: str) -> str:
        """SQL for the aggregate of a column of numbers."""
        return f"{_AGGREGATES[self.request.aggregate or 'sum']}({self.number(name)})"

    def lacking(self, names: Sequence[str]) -> tuple[str, ...]:
        """Sentences about rows without a value in these columns, or with one that can't be drawn."""
        notes: list[str] = []
        for name in dict.fromkeys(filter(None, names)):
            column, written = self.column(name), quoted(name)
            endless = f"count(*) FILTER (NOT isfinite({written}))" if _may_be_endless(column) else "0"
            nulls, odd = self.one(f"SELECT count(*) FILTER ({written} IS NULL), {endless} FROM {self.source}")
            if nulls:
                notes.append(f"{nulls:,} of {self.rows:,} rows without {name} are left out.")
            if odd:
                notes.append(note_of(int(odd), "value", "of NaN or infinity", f"in {name}"))
        return tuple(notes)


def _may_be_endless(column: Column) -> bool:
    return column.kind in {"float", "date", "timestamp"}


def note_of(number: int, noun: str, what: str, where: str) -> str:
    """``3 values of NaN or infinity in x are left out.``"""
    return f"{number:,} {noun}{'' if number == 1 else 's'} {what} {where} {'is' if number == 1 else 'are'} left out."
