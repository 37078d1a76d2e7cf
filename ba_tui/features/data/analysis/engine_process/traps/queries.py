"""All checks of a query, run after it for at most as long as it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TypeAlias

import duckdb

from ba_tui.core.ports.tables import Finding
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.traps.averages import average_of_averages
from ba_tui.features.data.analysis.engine_process.traps.figures import (
    count_column,
    float_sums,
    integer_division,
    null_base,
    null_not_in,
    top_without_order,
)
from ba_tui.features.data.analysis.engine_process.traps.joins import join_loses_rows, join_multiplies, left_join_filter
from ba_tui.features.data.analysis.engine_process.traps.periods import mixed_by_column, partial_comparison
from ba_tui.features.data.analysis.engine_process.traps.probing import OutOfTime, Prober
from ba_tui.features.data.analysis.engine_process.traps.syntax import Query, Select
from ba_tui.features.data.analysis.engine_process.traps.totals import total_rows
from ba_tui.features.data.analysis.engine_process.traps.variants import key_variants
from ba_tui.processes.serving import WorkerRequest

Check: TypeAlias = Callable[[Select, Prober], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    null_not_in,
    count_column,
    top_without_order,
    integer_division,
    join_multiplies,
    join_loses_rows,
    left_join_filter,
    average_of_averages,
    null_base,
    mixed_by_column,
    float_sums,
    key_variants,
)
"""Cheap ones first."""
SMALL_ROWS = 50_000
SMALL_SECONDS, LEAST_SECONDS = 2.0, 0.1
"""Checks may take as long as the query, but always this. Small tables are checked whole even on a busy machine."""


@frozen
class CheckedQuery:
    """``tables``: names in lower case to tables; ``columns``: a table's columns; ``today``: the day on which a table is
    as it is; ``seconds``: how long the query ran; ``rows``: how many a table has; ``known``: the findings in a table's
    rows."""

    sql: str
    tables: Mapping[str, str]
    columns: Callable[[str], Sequence[str]]
    today: Callable[[str], date]
    seconds: float
    rows: Callable[[str], int]
    known: Callable[[str], Sequence[Finding]]


def findings_of_query(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, checked: CheckedQuery
) -> tuple[tuple[Finding, ...], str]:
    """Return the traps that a query met, and a sentence where the time did not suffice to look for all."""
    began = time.monotonic()
    try:
        query = Query(cursor, checked.sql, checked.tables, checked.columns)
    except (duckdb.Error, LookupError, TypeError):
        # A PIVOT and a few others have no tree.
        return (), ""
    read = {each.table for select in query.selects for each in select.relations if each.table}
    large = [name for name in sorted(read) if checked.rows(name) > SMALL_ROWS]
    seconds = max(LEAST_SECONDS if large else SMALL_SECONDS, checked.seconds)
    probe = Prober(cursor, request, seconds - (time.monotonic() - began))
    found: dict[tuple[str, str, str], Finding] = {}
    try:
        for name in large if any(select.joins or len(select.relations) > 1 for select in query.selects) else ():
            query.samples[name] = probe.sample(name, checked.rows(name))
        for check in (total_rows(checked.known), *CHECKS, partial_comparison(checked.today)):
            for select in query.selects:
                # A form of SQL that a check did not expect must not cost the result.
                with suppress(*Prober.forgiven()):
                    for each in check(select, probe):
                        found.setdefault((each.trap, each.dataset, each.column), each)
    except OutOfTime:
        return tuple(found.values()), f"The checks for traps ended after {seconds:.1g} s; some were left out."
    return tuple(found.values()), ""
