"""Joins that repeat rows or lose them, and filters that undo an outer join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ba_tui.core.ports.tables import Finding
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probing import Prober
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Relation,
    Select,
    arguments,
    columns_in,
    is_call,
    walked,
)
from ba_tui.features.data.analysis.engine_process.traps.wording import stems

SUMS = ("sum", "avg", "mean", "fsum", "kahan_sum", "median", "stddev")
PICKS = frozenset({"COMPARE_EQUAL", "COMPARE_IN"})
PLAIN = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "OUTER"})


@frozen
class Measure:
    """An aggregate over a join: the SELECT that joins, the relations it takes values from, and its item.

    ``call`` may stand in another SELECT around ``select``.
    """

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
    """The aggregates of a SELECT over joins, its own or that of a subquery that only picks rows."""
    for call, item in (*outer.aggregates(), *_windows(outer)):
        if not is_call(call, *SUMS, "count", "count_star"):
            continue
        columns = [each for argument in arguments(call) for each in _values(argument)]
        found = [owned for each in columns if (owned := outer.owner(each))]
        if len(outer.relations) > 1:
            relations = tuple({relation.alias: relation for relation, _ in found}.values()) or _named(outer, call, item)
            groups = tuple(outer.query.text(each) for each in outer.groups())
            yield Measure(outer, relations, call, item, groups)
        elif len(outer.relations) == 1 and (inner := _joining(outer.relations[0].select)):
            items = [inner.item(name) for _, name in found]
            owners = [inner.owner(each) for item in items if item for each in columns_in(item)]
            relations = {owned[0].alias: owned[0] for owned in owners if owned}
            yield Measure(inner, tuple(relations.values()), call, item, ())


def _windows(select: Select) -> Iterator[tuple[Node, Node]]:
    """Aggregates over windows, as if they were calls."""
    for item in select.items:
        for each in walked(item):
            if each.get("class") == "WINDOW" and each["type"] == "WINDOW_AGGREGATE" and not each["orders"]:
                yield {**each, "class": "FUNCTION", "filter": each["filter_expr"]}, item


def _values(node: Node) -> list[Node]:
    """The references to columns that give an expression its value, without those that a CASE only tests."""
    if node["class"] == "CASE":
        parts = [*(each["then_expr"] for each in node["case_checks"]), node["else_expr"]]
        return [each for part in parts if part for each in _values(part)] or columns_in(node)
    return columns_in(node)


def _named(select: Select, call: Node, item: Node) -> tuple[Relation, ...]:
    """The relation that COUNT(*) counts by the name that it is given, as ``orders`` or ``n_orders``."""
    named = stems(item["alias"]) - GENERIC
    if not is_call(call, "count_star") or not named or len(named) > 1:
        return ()
    found = [each for each in select.relations if named & stems(select.table_of(each))]
    return (found[0],) if len(found) == 1 else ()


def _joining(select: Select | None) -> Select | None:
    """The SELECT with joins whose rows ``select`` gives one by one."""
    if select is None or select.groups() or any(select.aggregates()) or select.node["modifiers"]:
        return None
    if len(select.relations) > 1:
        return select
    return _joining(select.relations[0].select) if select.relations else None


def _repeats(probe: Prober, measure: Measure) -> dict[str, tuple[int, int]]:
    """By relation: rows of the join that hold one of its rows, and how many different ones, group by group. A large
    table is asked by a sample, joined with all of the others."""
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


def _names(measure: Measure) -> str:
    return str(measure.item["alias"])


def join_multiplies(outer: Select, probe: Prober) -> Iterator[Finding]:
    """Tables whose rows a join repeats before they are summed or counted."""
    told: set[str] = set()
    for measure in measures(outer):
        if measure.distinct or not any(join["join_type"] in PLAIN for join in measure.select.joins):
            continue
        repeats = _repeats(probe, measure)
        relations = measure.relations or tuple(measure.select.relations)
        if not repeats or any(repeats[each.alias][0] <= repeats[each.alias][1] for each in relations):
            continue
        for each in relations:
            table = measure.select.table_of(each)
            if table in told or not table or (len(relations) > 1 and each is not relations[0]):
                continue
            told.add(table)
            yield _multiplied(measure, each, repeats[each.alias])


def _multiplied(measure: Measure, relation: Relation, seen: tuple[int, int]) -> Finding:
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
    return Finding("join_multiplies", table, message, proof, part=select.query.part(join) if join else "")


def _join_of(select: Select, relation: Relation) -> Node | None:
    """The join that brings another table to a relation, the last of several."""
    others = [join for join in select.joins if len(select.joins) == 1 or join["right"] is not relation.node]
    return others[-1] if others else None


def _word(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name)


def join_loses_rows(outer: Select, probe: Prober) -> Iterator[Finding]:
    """Measured tables of which an inner join drops rows that have no match."""
    told: set[str] = set()
    for measure in measures(outer):
        select = measure.select
        if any(each["join_type"] not in PLAIN or each["ref_type"] == "POSITIONAL" for each in select.joins):
            continue
        relation = _measured(probe, measure)
        if relation is None or relation.optional or relation.alias in told or not (table := select.table_of(relation)):
            continue
        if _narrowed(select, relation):
            continue
        told.add(relation.alias)
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
            yield Finding("join_loses_rows", table, message, proof, part=select.query.part(join) if join else "")


def _unmatched(select: Select, relation: Relation, kept: str, *, whole: bool) -> str:
    """A query for the rows of a relation that a join drops."""
    name = f"{quoted(relation.alias)}.{relation.row}"
    joined = f"SELECT DISTINCT {name} FROM {select.source((relation,), joined_only=True, whole=whole)}"
    base = _alone(select, relation).source((relation,), whole=whole)
    return f"{select.prefix}SELECT * FROM {base}{kept or ' WHERE true'} AND {name} NOT IN ({joined})"


def _narrowed(select: Select, relation: Relation) -> bool:
    """Whether WHERE asks for values of another table: a row without a match has none of them."""
    return any(
        touched and relation.alias not in touched and each.get("type") in PICKS
        for each in select.conjuncts
        if (touched := select.touched(each))
    )


def _alone(select: Select, relation: Relation) -> Select:
    """``select`` as if it read nothing but ``relation``."""
    alone = object.__new__(Select)
    alone.__dict__.update(select.__dict__)
    alone.node = {**select.node, "from_table": relation.node}
    alone.relations = [relation]
    alone.joins = []
    return alone


def _measured(probe: Prober, measure: Measure) -> Relation | None:
    """The relation whose rows an aggregate means: of several the one that the join does not repeat."""
    relations = measure.relations or tuple(measure.select.relations)
    if len(relations) > 1:
        repeats = _repeats(probe, measure)
        relations = tuple(each for each in relations if repeats and repeats[each.alias][0] == repeats[each.alias][1])
    if not relations:
        return None
    relation = relations[0]
    if not measure.rows:
        return relation
    # "members_with_locker" says that the join is a filter; "orders" says that all of them are meant.
    named = stems(_names(measure))
    own = stems(measure.select.table_of(relation)) | stems(relation.alias)
    others = [stems(measure.select.table_of(each)) for each in measure.select.relations if each is not relation]
    if any(named & other - own for other in others):
        return None
    return relation if not named or named <= own | GENERIC else None


GENERIC = stems("n cnt count number num total rows records of all")


def left_join_filter(select: Select, probe: Prober) -> Iterator[Finding]:
    """Conditions of WHERE on the right table of a left join that drop rows of the left one."""
    optional = {each.alias: each for each in select.relations if each.optional}
    kept = [each for each in select.relations if not each.optional]
    if not optional or not kept or not any(join["join_type"] in {"LEFT", "RIGHT"} for join in select.joins):
        return
    left = kept[0]
    name = f"{quoted(left.alias)}.{left.row}"
    for each in select.conjuncts:
        touched = select.touched(each)
        if len(touched) != 1 or not touched <= set(optional) or _null_test(each):
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
        yield Finding("left_join_filter", table, message, proof, column, part)


def _null_test(node: Node) -> bool:
    return node.get("type") in {"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"}
