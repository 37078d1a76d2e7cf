"""Keys that are written in several ways: in upper and lower case, or with blanks around them."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.ports.tables import Finding
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probing import Prober
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Select,
    arguments,
    columns_in,
    conjuncts,
    is_call,
    reference,
    walked,
)

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
