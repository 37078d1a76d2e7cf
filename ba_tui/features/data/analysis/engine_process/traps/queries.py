"""All checks of a query, run after it for at most the time that it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TypeAlias

import duckdb

from ba_tui.core.ports.tables import TrapFinding
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.store import DataStore
from ba_tui.features.data.analysis.engine_process.traps.figures import (
    average_of_averages,
    count_column,
    float_sums,
    integer_division,
    null_base,
    null_not_in,
    top_without_order,
)
from ba_tui.features.data.analysis.engine_process.traps.periods import mixed_by_column, partial_comparison
from ba_tui.features.data.analysis.engine_process.traps.probes import OutOfTime, Prober, stems
from ba_tui.features.data.analysis.engine_process.traps.series import today_of
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Query,
    Relation,
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


def key_variants(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find text keys that differ only in case or spaces, where a query groups, counts, compares or joins by them."""
    keys = [each for each in select.groups() if _is_key(each)]
    for call, _ in select.aggregates():
        if is_call(call, "count") and call["distinct"]:
            keys += [each for each in arguments(call) if each["class"] == "COLUMN_REF"]
    distinct = [each for each in select.node["modifiers"] if each["type"] == "DISTINCT_MODIFIER"]
    if distinct:
        keys += [each for each in select.items if each["class"] == "COLUMN_REF"]
    windows = [each for each in walked(select.items) if each.get("class") == "WINDOW"]
    keys += [each for window in windows for each in window["partitions"] if each["class"] == "COLUMN_REF"]
    reported: set[tuple[str, str]] = set()
    for each in keys:
        origin = select.origin(columns_in(each)[0])
        if origin and all(item["class"] == "COLUMN_REF" for item in origin.expressions):
            place = (origin.table, origin.column)
            if place not in reported and (found := _variants(probe, *place, _applied(each, origin.column))):
                reported.add(place)
                yield found
    tests = walked([select.items, select.node["where_clause"], select.node["having"]], into=False)
    for each in tests:
        if each.get("type") in {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN"}:
            yield from _missed(select, probe, each, reported)
    for join in select.joins:
        yield from _unjoined(select, probe, join, reported)


def _is_key(node: Node) -> bool:
    """Return whether a group is a column, or a column under functions that unify only case or only spaces."""
    if is_call(node, "lower", "upper", "lcase", "ucase", "trim", "ltrim", "rtrim") and len(arguments(node)) == 1:
        return _is_key(arguments(node)[0])
    return node["class"] == "COLUMN_REF"


def _applied(node: Node, column: str) -> str:
    """Return a key as SQL over ``column`` of its table."""
    if node["class"] == "COLUMN_REF":
        return quoted(column)
    return f"{node['function_name']}({_applied(arguments(node)[0], column)})"


def _is_text(probe: Prober, table: str, column: str) -> bool:
    row = probe.one(f"SELECT typeof({quoted(column)}) FROM {quoted(table)} LIMIT 1")
    return bool(row) and row[0] == "VARCHAR"


def _variants(probe: Prober, table: str, column: str, key: str) -> TrapFinding | None:
    """Find variants of one key. ``key`` is the query's expression of the column, as SQL."""
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
    return TrapFinding("key_variants", table, message, proof, column)


def _missed(select: Select, probe: Prober, test: Node, reported: set[tuple[str, str]]) -> Iterator[TrapFinding]:
    """Find a comparison with a text that misses other spellings of it."""
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
    if origin is None or (origin.table, origin.column) in reported or not _is_text(probe, origin.table, origin.column):
        return
    listed = ", ".join("'" + each.replace("'", "''") + "'" for each in texts)
    wanted = ", ".join("'" + " ".join(each.lower().split()).replace("'", "''") + "'" for each in texts)
    name = quoted(origin.column)
    others = f"{NORMAL.format(name)} IN ({wanted}) AND {name} NOT IN ({listed})"
    if probe.rows(f"SELECT 1 FROM {quoted(origin.table)} WHERE {others} LIMIT 1"):
        reported.add((origin.table, origin.column))
        proof = f"SELECT {name}, count(*) AS n FROM {quoted(origin.table)} WHERE {others} GROUP BY 1"
        message = f"The comparison misses values of {origin.table}.{origin.column} that differ in case or blanks only."
        yield TrapFinding("key_variants", origin.table, message, proof, origin.column, select.query.part(test))


def _pairs(select: Select, join: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs that a join compares for equality."""
    for each in (*conjuncts(join["condition"]), *select.conjuncts):
        if each.get("type") == "COMPARE_EQUAL" and len(select.touched(each)) == 2:
            yield each["left"], each["right"]
    for name in join["using_columns"]:
        owners = [each.alias for each in select.relations if name in select.names(each)]
        if len(owners) > 1:
            yield reference(owners[0], name), reference(owners[1], name)


def _unjoined(select: Select, probe: Prober, join: Node, reported: set[tuple[str, str]]) -> Iterator[TrapFinding]:
    """Find keys that would join except for case or spaces."""
    for left, right in _pairs(select, join):
        if left["class"] != "COLUMN_REF" or right["class"] != "COLUMN_REF":
            continue
        one, other = select.origin(left), select.origin(right)
        if one is None or other is None or {(one.table, one.column), (other.table, other.column)} & reported:
            continue
        if not _is_text(probe, one.table, one.column) or not _is_text(probe, other.table, other.column):
            continue
        a, b = quoted(one.column), quoted(other.column)
        proof = (
            f"SELECT DISTINCT a.{a} AS one, b.{b} AS other FROM {quoted(one.table)} a JOIN {quoted(other.table)} b "
            f"ON {NORMAL.format(f'a.{a}')} = {NORMAL.format(f'b.{b}')} WHERE a.{a} <> b.{b}"
        )
        if row := probe.one(proof):
            # The side that mixes both spellings is the one to correct.
            mixed = probe.number(
                f"SELECT count(DISTINCT {a} = upper({a})) FROM {quoted(one.table)} WHERE lower({a}) <> upper({a})"
            )
            to_mend = one if mixed > 1 else other
            reported.add((to_mend.table, to_mend.column))
            message = (
                f'{one.table}.{one.column} "{row[0]}" and {other.table}.{other.column} "{row[1]}" differ in case or '
                "blanks only, so they do not join."
            )
            yield TrapFinding("key_variants", to_mend.table, message, proof, to_mend.column, select.query.part(join))


TRAP = "total_rows"
TAKEN_IN = ("sum", "avg", "mean", "median", "max")
"""Aggregates that a row of totals makes wrong."""


def total_rows(known: Callable[[str], Sequence[TrapFinding]]) -> Callable[[Select, Prober], Iterator[TrapFinding]]:
    """Return a check; ``known`` returns the findings in the rows of a table."""

    def check(select: Select, probe: Prober) -> Iterator[TrapFinding]:
        calls = [call for call, _ in select.aggregates() if is_call(call, *TAKEN_IN) and not call["filter"]]
        if not calls or select.node["having"]:
            return
        for table in dict.fromkeys(each.table for each in select.relations if each.table):
            for each in known(table):
                if each.trap == TRAP and not _named(each.column, select.groups()):
                    yield from _taken_in(select, probe, calls, each)

    return check


def _taken_in(select: Select, probe: Prober, calls: Sequence[Node], known: TrapFinding) -> Iterator[TrapFinding]:
    call = next((each for each in calls if not _named(known.column, [each])), None)
    condition = known.proof.partition(" WHERE ")[2]
    if call is None or not condition:
        return
    proof = f"{select.prefix}SELECT * FROM {select.source()}{select.where(None, f'({condition})')}"
    if rows := int(probe.number(f"SELECT count(*) FROM ({proof})")):
        part, reported = select.query.part(call), "row is a total" if rows == 1 else "rows are totals"
        message = f"{part} counts twice: {rows:,} {reported} of the others, as {quoted(known.column)} says."
        yield TrapFinding(TRAP, known.dataset, message, proof, known.column, part)


def _named(column: str, nodes: Sequence[Node]) -> bool:
    return any(each["column_names"][-1].lower() == column.lower() for node in nodes for each in columns_in(node))


# Joins.


SUMS = ("sum", "avg", "mean", "fsum", "kahan_sum", "median", "stddev")
PICKS = frozenset({"COMPARE_EQUAL", "COMPARE_IN"})
PLAIN = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "OUTER"})


@frozen
class Measure:
    """An aggregate over a join: the SELECT with the join, the relations of its values, and its item. ``call`` may be in
    another SELECT around ``select``."""

    select: Select
    relations: tuple[Relation, ...]
    call: Node
    item: Node
    groups: tuple[str, ...]

    @property
    def rows(self) -> bool:
        return is_call(self.call, "count", "count_star")

    @property
    def distinct(self) -> bool:
        return bool(self.call["distinct"])


def measures(outer: Select) -> Iterator[Measure]:
    """Return the aggregates of a SELECT over joins, its own or those of a subquery that only selects rows."""
    for call, item in (*outer.aggregates(), *_windows(outer)):
        if not is_call(call, *SUMS, "count", "count_star"):
            continue
        columns = [each for argument in arguments(call) for each in _values(argument)]
        found = [owned for each in columns if (owned := outer.owner(each))]
        if len(outer.relations) > 1:
            relations = tuple({relation.alias: relation for relation, _ in found}.values()) or _relation_named(
                outer, call, item
            )
            groups = tuple(outer.query.text(each) for each in outer.groups())
            yield Measure(outer, relations, call, item, groups)
        elif len(outer.relations) == 1 and (inner := _joining(outer.relations[0].select)):
            items = [inner.item(name) for _, name in found]
            owners = [inner.owner(each) for item in items if item for each in columns_in(item)]
            relations = {owned[0].alias: owned[0] for owned in owners if owned}
            yield Measure(inner, tuple(relations.values()), call, item, ())


def _windows(select: Select) -> Iterator[tuple[Node, Node]]:
    """Return aggregates over windows as calls."""
    for item in select.items:
        for each in walked(item):
            if each.get("class") == "WINDOW" and each["type"] == "WINDOW_AGGREGATE" and not each["orders"]:
                yield {**each, "class": "FUNCTION", "filter": each["filter_expr"]}, item


def _values(node: Node) -> list[Node]:
    """Return the column references that determine an expression's value, without those only tested by a CASE."""
    if node["class"] == "CASE":
        parts = [*(each["then_expr"] for each in node["case_checks"]), node["else_expr"]]
        return [each for part in parts if part for each in _values(part)] or columns_in(node)
    return columns_in(node)


def _relation_named(select: Select, call: Node, item: Node) -> tuple[Relation, ...]:
    """Return the relation that a COUNT(*) counts according to its name, such as ``orders`` or ``n_orders``."""
    named = stems(item["alias"]) - GENERIC
    if not is_call(call, "count_star") or not named or len(named) > 1:
        return ()
    found = [each for each in select.relations if named & stems(select.table_of(each))]
    return (found[0],) if len(found) == 1 else ()


def _joining(select: Select | None) -> Select | None:
    """Return the SELECT with joins whose rows ``select`` returns one by one."""
    if select is None or select.groups() or any(select.aggregates()) or select.node["modifiers"]:
        return None
    if len(select.relations) > 1:
        return select
    return _joining(select.relations[0].select) if select.relations else None


def _repeats(probe: Prober, measure: Measure) -> dict[str, tuple[int, int]]:
    """Return, by relation, for each group the joined rows that contain one of its rows, and how many distinct ones.
    Large tables are sampled and joined with the whole of the others."""
    select = measure.select
    if any(each.table in select.query.samples for each in select.relations):
        found = [_counted(probe, measure, (each,)) for each in select.relations]
        return {alias: seen for each in found for alias, seen in each.items()} if all(found) else {}
    return _counted(probe, measure, select.relations)


def _counted(probe: Prober, measure: Measure, relations: Sequence[Relation]) -> dict[str, tuple[int, int]]:
    select = measure.select
    parts: list[str] = []
    for each in relations:
        keys = ", ".join((*measure.groups, f"{quoted(each.alias)}.{each.row}"))
        parts += [
            f"count({quoted(each.alias)}.{each.row})",
            f"count(DISTINCT ({keys},)) FILTER ({quoted(each.alias)}.{each.row} IS NOT NULL)"
            if measure.groups
            else f"count(DISTINCT {keys})",
        ]
    row = probe.one(f"{select.prefix}SELECT {', '.join(parts)} FROM {select.source(relations)}{select.where()}")
    return {each.alias: (row[2 * place], row[2 * place + 1]) for place, each in enumerate(relations) if row}


def join_multiplies(outer: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find tables whose rows a join repeats before they are summed or counted."""
    reported: set[str] = set()
    for measure in measures(outer):
        if measure.distinct or not any(join["join_type"] in PLAIN for join in measure.select.joins):
            continue
        repeats = _repeats(probe, measure)
        relations = measure.relations or tuple(measure.select.relations)
        if not repeats or any(repeats[each.alias][0] <= repeats[each.alias][1] for each in relations):
            continue
        for each in relations:
            table = measure.select.table_of(each)
            if table in reported or not table or (len(relations) > 1 and each is not relations[0]):
                continue
            reported.add(table)
            yield _multiplied(measure, each, repeats[each.alias])


def _multiplied(measure: Measure, relation: Relation, seen: tuple[int, int]) -> TrapFinding:
    select = measure.select
    table, join = select.table_of(relation), _join_of(select, relation)
    name = f"{quoted(relation.alias)}.{relation.row}"
    proof = (
        f"{select.prefix}SELECT count({name}) AS joined_rows, count(DISTINCT {name}) AS rows_of_{_word(table)} "
        f"FROM {select.source((relation,), whole=True)}{select.where()}"
    )
    sampled = " in a sample" if relation.table in select.query.samples else ""
    message = (
        f"The join repeats rows of {table} ×{seen[0] / max(seen[1], 1):.2g} "
        f"({seen[0]:,} instead of {seen[1]:,}{sampled}); {select.query.part(measure.call)} takes them several times."
    )
    return TrapFinding("join_multiplies", table, message, proof, part=select.query.part(join) if join else "")


def _join_of(select: Select, relation: Relation) -> Node | None:
    """Return the join that connects another table to a relation, the last of several."""
    others = [join for join in select.joins if len(select.joins) == 1 or join["right"] is not relation.node]
    return others[-1] if others else None


def _word(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name)


def join_loses_rows(outer: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find measured tables of which an inner join drops rows without a match."""
    reported: set[str] = set()
    for measure in measures(outer):
        select = measure.select
        if any(each["join_type"] not in PLAIN or each["ref_type"] == "POSITIONAL" for each in select.joins):
            continue
        relation = _measured(probe, measure)
        if (
            relation is None
            or relation.optional
            or relation.alias in reported
            or not (table := select.table_of(relation))
        ):
            continue
        if _narrowed(select, relation):
            continue
        reported.add(relation.alias)
        own = [select.query.text(each) for each in select.conjuncts if select.touched(each) == {relation.alias}]
        kept = f" WHERE {' AND '.join(own)}" if own else ""
        lost = probe.number(f"SELECT count(*) FROM ({_unmatched(select, relation, kept, whole=False)})")
        base = _alone(select, relation).source((relation,))
        all_rows = probe.number(f"{select.prefix}SELECT count(*) FROM {base}{kept}")
        if lost:
            proof = _unmatched(select, relation, kept, whole=True)
            join = _join_of(select, relation)
            sampled = ", in a sample" if relation.table in select.query.samples else ""
            rows = count(int(all_rows), "row")
            message = f"The inner join drops {int(lost):,} of {rows} of {table}{sampled}: no match."
            yield TrapFinding("join_loses_rows", table, message, proof, part=select.query.part(join) if join else "")


def _unmatched(select: Select, relation: Relation, kept: str, *, whole: bool) -> str:
    """Return a query for the rows of a relation that a join drops."""
    name = f"{quoted(relation.alias)}.{relation.row}"
    joined = f"SELECT DISTINCT {name} FROM {select.source((relation,), joined_only=True, whole=whole)}"
    base = _alone(select, relation).source((relation,), whole=whole)
    return f"{select.prefix}SELECT * FROM {base}{kept or ' WHERE true'} AND {name} NOT IN ({joined})"


def _narrowed(select: Select, relation: Relation) -> bool:
    """Return whether WHERE tests values of another table, which rows without a match lack."""
    return any(
        touched and relation.alias not in touched and each.get("type") in PICKS
        for each in select.conjuncts
        if (touched := select.touched(each))
    )


def _alone(select: Select, relation: Relation) -> Select:
    """Return ``select`` reduced to ``relation``."""
    alone = object.__new__(Select)
    alone.__dict__.update(select.__dict__)
    alone.node = {**select.node, "from_table": relation.node}
    alone.relations = [relation]
    alone.joins = []
    return alone


def _measured(probe: Prober, measure: Measure) -> Relation | None:
    """Return the relation whose rows an aggregate measures: of several, the one that the join does not repeat."""
    relations = measure.relations or tuple(measure.select.relations)
    if len(relations) > 1:
        repeats = _repeats(probe, measure)
        relations = tuple(each for each in relations if repeats and repeats[each.alias][0] == repeats[each.alias][1])
    if not relations:
        return None
    relation = relations[0]
    if not measure.rows:
        return relation
    # "members_with_locker" shows that the join is a filter; "orders" that all of them are meant.
    named = stems(str(measure.item["alias"]))
    own = stems(measure.select.table_of(relation)) | stems(relation.alias)
    others = [stems(measure.select.table_of(each)) for each in measure.select.relations if each is not relation]
    if any(named & other - own for other in others):
        return None
    return relation if not named or named <= own | GENERIC else None


GENERIC = stems("n cnt count number num total rows records of all")


def left_join_filter(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find WHERE conditions on the right table of a left join that drop rows of the left one."""
    optional = {each.alias: each for each in select.relations if each.optional}
    kept = [each for each in select.relations if not each.optional]
    if not optional or not kept or not any(join["join_type"] in {"LEFT", "RIGHT"} for join in select.joins):
        return
    left = kept[0]
    name = f"{quoted(left.alias)}.{left.row}"
    for each in select.conjuncts:
        touched = select.touched(each)
        null_test = each.get("type") in {"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"}
        if len(touched) != 1 or not touched <= set(optional) or null_test:
            continue
        relation = optional[next(iter(touched))]
        right, test = f"{quoted(relation.alias)}.{relation.row}", select.query.text(each)
        source = f"{select.prefix}SELECT {{}} FROM {select.source((left, relation))}"
        figures = probe.one(
            source.format(
                f"count(DISTINCT {name}), count(DISTINCT {name}) FILTER ({test}), "
                f"count(*) FILTER ({right} IS NULL AND {test}), count(*) FILTER ({right} IS NULL), "
                f"count(*) FILTER ({right} IS NOT NULL) - count(DISTINCT {name}) FILTER ({right} IS NOT NULL)"
            )
            + select.where(each)
        )
        if not figures or figures[2] or figures[0] == figures[1] or not (figures[3] or figures[4]):
            continue
        table, column = select.table_of(relation), columns_in(each)[0]["column_names"][-1]
        lost, base = figures[0] - figures[1], select.table_of(left)
        message = (
            f"The filter on {table}.{column} undoes the left join: {lost:,} of {count(figures[0], 'row')} of {base} "
            "are dropped. Put it into ON to keep them."
        )
        proof = source.format(
            f"count(DISTINCT {name}) AS all_rows, count(DISTINCT {name}) FILTER ({test}) AS kept_rows"
        ) + select.where(each)
        only = len(select.conjuncts) == 1
        part = f"WHERE {select.query.part(each)}" if only else select.query.part(each)
        yield TrapFinding("left_join_filter", table, message, proof, column, part)


Check: TypeAlias = Callable[[Select, Prober], Iterator[TrapFinding]]
CHECKS: tuple[Check, ...] = (
    null_not_in, count_column, top_without_order, integer_division, join_multiplies, join_loses_rows, left_join_filter,
    average_of_averages, null_base, mixed_by_column, float_sums, key_variants,
)  # fmt: skip
"""The cheapest first."""
SMALL_ROWS = 50_000
SMALL_SECONDS, LEAST_SECONDS = 2.0, 0.1
"""Checks may take as long as the query, and at least this. Small tables are checked completely even on a busy
machine."""


def findings_of_query(
    cursor: duckdb.DuckDBPyConnection,
    request: WorkerRequest,
    sql: str,
    tables: Mapping[str, str],
    store: DataStore,
    seconds: float,
) -> tuple[tuple[TrapFinding, ...], str]:
    """Return the traps of a query, and a note when time ran out. ``tables`` maps lower-case names to tables of
    ``store``; ``seconds`` is the query's duration."""

    def today(table: str) -> date:
        stored = store.dataset(table)
        return today_of(stored.dataset) if stored else date.max

    began = time.monotonic()
    try:
        query = Query(cursor, sql, tables, store.column_names)
    except (duckdb.Error, LookupError, TypeError):
        # Some statements, such as PIVOT, have no tree.
        return (), ""
    read = {each.table for select in query.selects for each in select.relations if each.table}
    large = [name for name in sorted(read) if store.rows(name) > SMALL_ROWS]
    limit = max(LEAST_SECONDS if large else SMALL_SECONDS, seconds)
    probe = Prober(cursor, request, limit - (time.monotonic() - began))
    found: dict[tuple[str, str, str], TrapFinding] = {}
    try:
        for name in large if any(select.joins or len(select.relations) > 1 for select in query.selects) else ():
            query.samples[name] = probe.sample(name, store.rows(name))
        for check in (total_rows(store.findings), *CHECKS, partial_comparison(today)):
            for select in query.selects:
                # Unexpected SQL must not make the query fail.
                with suppress(*Prober.forgiven()):
                    for each in check(select, probe):
                        found.setdefault((each.trap, each.dataset, each.column), each)
    except OutOfTime:
        return tuple(found.values()), f"The checks for traps ended after {limit:.1g} s; some were left out."
    return tuple(found.values()), ""
