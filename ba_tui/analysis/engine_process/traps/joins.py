"""Joins that repeat rows or lose them, filters that undo an outer join, and keys written in several ways."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.analysis.engine_process.database import quoted
from ba_tui.analysis.engine_process.traps.probing import Prober
from ba_tui.analysis.engine_process.traps.syntax import (
    Node,
    Relation,
    Select,
    arguments,
    columns_in,
    conjuncts,
    is_call,
    reference,
)
from ba_tui.analysis.engine_process.traps.wording import stems
from ba_tui.core.ports.tables import Finding
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

SUMS = ("sum", "avg", "mean", "fsum", "kahan_sum", "median", "stddev")
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
    for call, item in outer.aggregates():
        if not is_call(call, *SUMS, "count", "count_star"):
            continue
        columns = [each for argument in arguments(call) for each in columns_in(argument)]
        found = [owned for each in columns if (owned := outer.owner(each))]
        if len(outer.relations) > 1:
            relations = tuple({relation.alias: relation for relation, _ in found}.values())
            groups = tuple(outer.query.text(each) for each in outer.groups())
            yield Measure(outer, relations, call, item, groups)
        elif len(outer.relations) == 1 and (inner := _joining(outer.relations[0].select)):
            items = [inner.item(name) for _, name in found]
            owners = [inner.owner(each) for item in items if item for each in columns_in(item)]
            relations = {owned[0].alias: owned[0] for owned in owners if owned}
            yield Measure(inner, tuple(relations.values()), call, item, ())


def _joining(select: Select | None) -> Select | None:
    """The SELECT with joins whose rows ``select`` gives one by one."""
    if select is None or select.groups() or any(select.aggregates()) or select.node["modifiers"]:
        return None
    if len(select.relations) > 1:
        return select
    return _joining(select.relations[0].select) if select.relations else None


def _repeats(probe: Prober, measure: Measure) -> dict[str, tuple[int, int]]:
    """By relation: rows of the join that hold one of its rows, and how many different ones, group by group."""
    select = measure.select
    parts: list[str] = []
    for each in select.relations:
        keys = ", ".join((*measure.groups, f"{quoted(each.alias)}.{each.row}"))
        parts += [
            f"count({quoted(each.alias)}.{each.row})",
            f"count(DISTINCT ({keys},)) FILTER ({quoted(each.alias)}.{each.row} IS NOT NULL)"
            if measure.groups
            else f"count(DISTINCT {keys})",
        ]
    row = probe.one(f"{select.prefix}SELECT {', '.join(parts)} FROM {select.source(select.relations)}{select.where()}")
    return {each.alias: (row[2 * place], row[2 * place + 1]) for place, each in enumerate(select.relations) if row}


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
        f"FROM {select.source((relation,))}{select.where()}"
    )
    message = (
        f"The join repeats rows of {table} ×{seen[0] / max(seen[1], 1):.2g} "
        f"({seen[0]:,} instead of {seen[1]:,}); {select.query.part(measure.call)} takes them several times."
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
        told.add(relation.alias)
        own = [select.query.text(each) for each in select.conjuncts if select.touched(each) == {relation.alias}]
        kept = f" WHERE {' AND '.join(own)}" if own else ""
        name = f"{quoted(relation.alias)}.{relation.row}"
        joined = f"SELECT DISTINCT {name} FROM {select.source((relation,), joined_only=True)}"
        base = Select.source(_alone(select, relation), (relation,))
        proof = f"{select.prefix}SELECT * FROM {base}{kept or ' WHERE true'} AND {name} NOT IN ({joined})"
        lost = probe.number(f"SELECT count(*) FROM ({proof})")
        all_rows = probe.number(f"{select.prefix}SELECT count(*) FROM {base}{kept}")
        if lost:
            join = _join_of(select, relation)
            message = f"The inner join drops {int(lost):,} of {count(int(all_rows), 'row')} of {table}: no match."
            yield Finding("join_loses_rows", table, message, proof, part=select.query.part(join) if join else "")


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


NORMAL = "lower(trim(regexp_replace({}, '\\s+', ' ', 'g')))"


def key_variants(select: Select, probe: Prober) -> Iterator[Finding]:
    """Text keys that differ in case or blanks only, where a query groups, counts, compares or joins by them."""
    keys = [each for each in select.groups() if each["class"] == "COLUMN_REF"]
    for call, _ in select.aggregates():
        if is_call(call, "count") and call["distinct"]:
            keys += [each for each in arguments(call) if each["class"] == "COLUMN_REF"]
    told: set[tuple[str, str]] = set()
    for each in keys:
        origin = select.origin(each)
        if origin and all(item["class"] == "COLUMN_REF" for item in origin.expressions):
            place = (origin.table, origin.column)
            if place not in told and (found := _variants(probe, *place)):
                told.add(place)
                yield found
    for each in select.conjuncts:
        if each.get("class") in {"COMPARISON", "OPERATOR"}:
            yield from _missed(select, probe, each, told)
    for join in select.joins:
        yield from _unjoined(select, probe, join, told)


def _variants(probe: Prober, table: str, column: str, test: str = "") -> Finding | None:
    name = quoted(column)
    normal = NORMAL.format(name)
    where = f"{name} IS NOT NULL{test and f' AND {test}'}"
    proof = (
        f"SELECT list_sort(list(DISTINCT {name})) AS variants, count(*) AS n FROM {quoted(table)} "
        f"WHERE {where} GROUP BY {normal} HAVING count(DISTINCT {name}) > 1 AND length({normal}) > 1 ORDER BY n DESC"
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
    if origin is None or (origin.table, origin.column) in told:
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
