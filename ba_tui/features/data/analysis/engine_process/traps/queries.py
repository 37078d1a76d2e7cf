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
from ba_tui.features.data.analysis.engine_process.database import quoted
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
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Query,
    Select,
    arguments,
    columns_in,
    conjuncts,
    is_call,
    reference,
    walked,
)
from ba_tui.processes.serving import WorkerRequest

NORMAL = "lower(trim(regexp_replace({}, '[\\s\\x{{00a0}}\\x{{3000}}\\x{{200b}}]+', ' ', 'g')))"


def key_variants(select: Select, probe: Prober) -> Iterator[Finding]:
    """Text keys that differ in case or blanks only, where a query groups, counts, compares or joins by them."""
    keys = [each for each in select.groups() if _is_key(each)]
    for call, _ in select.aggregates():
        if is_call(call, "count") and call["distinct"]:
            keys += [each for each in arguments(call) if each["class"] == "COLUMN_REF"]
    distinct = [each for each in select.node["modifiers"] if each["type"] == "DISTINCT_MODIFIER"]
    if distinct:
        keys += [each for each in select.items if each["class"] == "COLUMN_REF"]
    windows = [each for each in walked(select.items) if each.get("class") == "WINDOW"]
    keys += [each for window in windows for each in window["partitions"] if each["class"] == "COLUMN_REF"]
    told: set[tuple[str, str]] = set()
    for each in keys:
        origin = select.origin(columns_in(each)[0])
        if origin and all(item["class"] == "COLUMN_REF" for item in origin.expressions):
            place = (origin.table, origin.column)
            if place not in told and (found := _variants(probe, *place, _applied(each, origin.column))):
                told.add(place)
                yield found
    tests = walked([select.items, select.node["where_clause"], select.node["having"]], into=False)
    for each in tests:
        if each.get("type") in {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN"}:
            yield from _missed(select, probe, each, told)
    for join in select.joins:
        yield from _unjoined(select, probe, join, told)


def _is_key(node: Node) -> bool:
    """Whether a group is a column, or one of which functions make only the case or only the blanks alike."""
    if is_call(node, "lower", "upper", "lcase", "ucase", "trim", "ltrim", "rtrim") and len(arguments(node)) == 1:
        return _is_key(arguments(node)[0])
    return node["class"] == "COLUMN_REF"


def _applied(node: Node, column: str) -> str:
    """A key as SQL over ``column`` of its table."""
    if node["class"] == "COLUMN_REF":
        return quoted(column)
    return f"{node['function_name']}({_applied(arguments(node)[0], column)})"


def _is_text(probe: Prober, table: str, column: str) -> bool:
    row = probe.one(f"SELECT typeof({quoted(column)}) FROM {quoted(table)} LIMIT 1")
    return bool(row) and row[0] == "VARCHAR"


def _variants(probe: Prober, table: str, column: str, key: str) -> Finding | None:
    """``key``: what the query makes of the column, as SQL."""
    if not _is_text(probe, table, column):
        return None
    normal = NORMAL.format("key")
    proof = (
        f"SELECT list_sort(list(key)) AS variants, sum(n) AS n FROM (SELECT {key} AS key, count(*) AS n "
        f"FROM {quoted(table)} WHERE {quoted(column)} IS NOT NULL GROUP BY 1) GROUP BY {normal} "
        f"HAVING count(*) > 1 AND length({normal}) > 1 ORDER BY n DESC"
    )
    row = probe.one(proof)
    if not row:
        return None
    shown = ", ".join(f'"{value}"' for value in row[0][:4])
    message = f"{table}.{column} writes one key in several ways: {shown}; the query takes them for different ones."
    return Finding("key_variants", table, message, proof, column)


def _missed(select: Select, probe: Prober, test: Node, told: set[tuple[str, str]]) -> Iterator[Finding]:
    """A comparison with a text that misses other ways of writing it."""
    sides = [test["left"], test["right"]] if test["class"] == "COMPARISON" else test["children"]
    column = next((each for each in sides if each["class"] == "COLUMN_REF"), None)
    texts = [
        each["literal"]["text"]
        for each in sides
        if each["class"] == "CONSTANT" and each.get("literal", {}).get("kind") == "STRING"
    ]
    if column is None or not texts or test["type"] not in {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN"}:
        return
    origin = select.origin(column)
    if origin is None or (origin.table, origin.column) in told or not _is_text(probe, origin.table, origin.column):
        return
    listed = ", ".join("'" + each.replace("'", "''") + "'" for each in texts)
    wanted = ", ".join("'" + " ".join(each.lower().split()).replace("'", "''") + "'" for each in texts)
    name = quoted(origin.column)
    others = f"{NORMAL.format(name)} IN ({wanted}) AND {name} NOT IN ({listed})"
    if probe.rows(f"SELECT 1 FROM {quoted(origin.table)} WHERE {others} LIMIT 1"):
        told.add((origin.table, origin.column))
        proof = f"SELECT {name}, count(*) AS n FROM {quoted(origin.table)} WHERE {others} GROUP BY 1"
        message = f"The comparison misses values of {origin.table}.{origin.column} that differ in case or blanks only."
        yield Finding("key_variants", origin.table, message, proof, origin.column, select.query.part(test))


def _pairs(select: Select, join: Node) -> Iterator[tuple[Node, Node]]:
    """What a join compares for equality."""
    for each in (*conjuncts(join["condition"]), *select.conjuncts):
        if each.get("type") == "COMPARE_EQUAL" and len(select.touched(each)) == 2:
            yield each["left"], each["right"]
    for name in join["using_columns"]:
        owners = [each.alias for each in select.relations if name in select.names(each)]
        if len(owners) > 1:
            yield reference(owners[0], name), reference(owners[1], name)


def _unjoined(select: Select, probe: Prober, join: Node, told: set[tuple[str, str]]) -> Iterator[Finding]:
    """Keys that would join but for case or blanks."""
    for left, right in _pairs(select, join):
        if left["class"] != "COLUMN_REF" or right["class"] != "COLUMN_REF":
            continue
        one, other = select.origin(left), select.origin(right)
        if one is None or other is None or {(one.table, one.column), (other.table, other.column)} & told:
            continue
        if not _is_text(probe, one.table, one.column) or not _is_text(probe, other.table, other.column):
            continue
        a, b = quoted(one.column), quoted(other.column)
        proof = (
            f"SELECT DISTINCT a.{a} AS one, b.{b} AS other FROM {quoted(one.table)} a JOIN {quoted(other.table)} b "
            f"ON {NORMAL.format(f'a.{a}')} = {NORMAL.format(f'b.{b}')} WHERE a.{a} <> b.{b}"
        )
        if row := probe.one(proof):
            # The side with both ways of writing is the one to mend.
            mixed = probe.number(
                f"SELECT count(DISTINCT {a} = upper({a})) FROM {quoted(one.table)} WHERE lower({a}) <> upper({a})"
            )
            to_mend = one if mixed > 1 else other
            told.add((to_mend.table, to_mend.column))
            message = (
                f'{one.table}.{one.column} "{row[0]}" and {other.table}.{other.column} "{row[1]}" differ in case or '
                "blanks only, so they do not join."
            )
            yield Finding("key_variants", to_mend.table, message, proof, to_mend.column, select.query.part(join))


TRAP = "total_rows"
TAKEN_IN = ("sum", "avg", "mean", "median", "max")
"""Calls whose value a row with a total makes wrong."""


def total_rows(known: Callable[[str], Sequence[Finding]]) -> Callable[[Select, Prober], Iterator[Finding]]:
    """Return a check; ``known`` gives the findings in the rows of a table."""

    def check(select: Select, probe: Prober) -> Iterator[Finding]:
        calls = [call for call, _ in select.aggregates() if is_call(call, *TAKEN_IN) and not call["filter"]]
        if not calls or select.node["having"]:
            return
        for table in dict.fromkeys(each.table for each in select.relations if each.table):
            for each in known(table):
                if each.trap == TRAP and not _named(each.column, select.groups()):
                    yield from _taken_in(select, probe, calls, each)

    return check


def _taken_in(select: Select, probe: Prober, calls: Sequence[Node], known: Finding) -> Iterator[Finding]:
    call = next((each for each in calls if not _named(known.column, [each])), None)
    condition = known.proof.partition(" WHERE ")[2]
    if call is None or not condition:
        return
    proof = f"{select.prefix}SELECT * FROM {select.source()}{select.where(None, f'({condition})')}"
    if rows := int(probe.number(f"SELECT count(*) FROM ({proof})")):
        part, told = select.query.part(call), "row is a total" if rows == 1 else "rows are totals"
        message = f"{part} counts twice: {rows:,} {told} of the others, as {quoted(known.column)} says."
        yield Finding(TRAP, known.dataset, message, proof, known.column, part)


def _named(column: str, nodes: Sequence[Node]) -> bool:
    return any(each["column_names"][-1].lower() == column.lower() for node in nodes for each in columns_in(node))


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
