"""Figures that a query computes wrongly: counts and bases without NULLs, truncated fractions, sums of floats, averages
of averages."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.ports.tables import TrapFinding
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probes import Prober, known, says, stems, words
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    ColumnOrigin,
    Node,
    Select,
    arguments,
    columns_in,
    conjuncts,
    home,
    is_call,
    walked,
)

RATIOS = known(
    "per percent percentage pct rate ratio share quote quota anteil prozent head proportion taux part pourcentage "
    "tasa porcentaje"
)
DIVISIONS = ("//", "divide")


def count_column(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find a COUNT of a column with NULLs whose name suggests a count of rows."""
    calls = list(select.aggregates())
    if any(is_call(call, "count_star") for call, _ in calls):
        return
    for call, item in calls:
        argument = arguments(call)
        if not is_call(call, "count") or call["distinct"] or call["filter"] or len(argument) != 1:
            continue
        if any(is_call(each, "/", *DIVISIONS) for each in walked(item, into=False)):
            continue
        if argument[0]["class"] != "COLUMN_REF" or not (owned := select.owner(argument[0])) or owned[0].optional:
            continue
        column = owned[1]
        if _meant(item["alias"], column):
            continue
        yield from _left_out(select, probe, call, item, column)


def _left_out(select: Select, probe: Prober, call: Node, item: Node, column: str) -> Iterator[TrapFinding]:
    argument = arguments(call)[0]
    value = select.query.text(argument)
    proof = (
        f"{select.prefix}SELECT count({value}) AS counted, count(*) AS all_rows FROM {select.source()}{select.where()}"
    )
    row = probe.one(proof)
    if row and row[0] < row[1]:
        table = home(select, argument)
        message = (
            f"{select.query.part(call)} leaves out NULLs: {row[0]:,} of {count(row[1], 'row')} of {table}. "
            "COUNT(*) counts all."
        )
        yield TrapFinding("count_column", table, message, f"SELECT * FROM ({proof}) WHERE counted < all_rows", column,
                      select.query.part(item) or select.query.part(call))  # fmt: skip


def _meant(alias: str, column: str) -> bool:
    """Return whether an output's name says that only rows with the column are counted."""
    if not alias:
        return False
    own, of = stems(alias), stems(column)
    near = any(one[:4] == other[:4] for one in own for other in of if min(len(one), len(other)) >= 4)
    return bool(own & of) or near or words(alias)[0] in {"with", "has", "non"} or words(alias)[-1].endswith("ed")


def null_base(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find percentages and per-head means whose base has only the rows with a value."""
    for call, item in select.aggregates():
        if is_call(call, "avg", "mean") and not call["distinct"]:
            argument = arguments(call)[0]
            if _is_flag(argument) or (
                argument["class"] == "COLUMN_REF"
                and (
                    set(words(item["alias"])) & RATIOS
                    or _in_percent(item, call)
                    or _zero_or_one(select, probe, select.query.text(argument))
                )
            ):
                yield from _without_nulls(select, probe, call, argument)
    for item in select.items:
        for each in walked(item, into=False):
            if is_call(each, "/") and (below := _count_below(arguments(each)[1])):
                argument = arguments(below)[0]
                shown = any(other is not item and _counts(other, argument) for other in select.items)
                if not shown and _is_part(arguments(each)[0]):
                    yield from _without_nulls(select, probe, below, argument)


def _zero_or_one(select: Select, probe: Prober, value: str) -> bool:
    """Return whether a column has only 0 and 1, so that its mean is a share."""
    held = f"list_sort(list(DISTINCT CAST({value} AS VARCHAR)) FILTER ({value} IS NOT NULL))"
    row = probe.one(f"{select.prefix}SELECT {held} FROM {select.source()}{select.where()}")
    return bool(row) and row[0] == ["0", "1"]


def _in_percent(item: Node, call: Node) -> bool:
    """Return whether a mean is multiplied by 100."""
    for each in walked(item, into=False):
        if is_call(each, "*") and any(call is below for argument in arguments(each) for below in walked(argument)):
            return bool({"100", "100.0"} & set(map(_constant, arguments(each))))
    return False


def _constant(node: Node) -> str:
    return str(node.get("literal", {}).get("text", ""))


def _is_flag(node: Node) -> bool:
    """Return whether this is a CASE of constants without ELSE, or a condition used as a number."""
    if node["class"] == "CAST":
        return node["child"]["class"] in {"COLUMN_REF", "COMPARISON"}
    if node["class"] != "CASE":
        return False
    results = [each["then_expr"] for each in node["case_checks"]]
    otherwise = node["else_expr"]
    null = otherwise is None or otherwise.get("literal", {}).get("kind") == "NULL_LITERAL"
    return null and len(results) > 1 and all(each["class"] == "CONSTANT" for each in results)


def _count_below(node: Node) -> Node | None:
    """Return the COUNT of a column that a ratio divides by."""
    found = [each for each in walked(node, into=False) if is_call(each, "count")]
    plain = len(found) == 1 and not found[0]["distinct"] and not found[0]["filter"] and arguments(found[0])
    return found[0] if plain and arguments(found[0])[0]["class"] == "COLUMN_REF" else None


def _counts(item: Node, argument: Node) -> bool:
    return is_call(item, "count") and any(
        each["column_names"][-1] == argument["column_names"][-1] for each in columns_in(item)
    )


def _is_part(node: Node) -> bool:
    """Return whether a numerator counts or sums."""
    return any(is_call(each, "count", "count_star", "count_if", "sum") for each in walked(node, into=False))


def _without_nulls(select: Select, probe: Prober, call: Node, argument: Node) -> Iterator[TrapFinding]:
    value = select.query.text(argument)
    columns = columns_in(argument)
    if not columns or any((owned := select.owner(each)) and owned[0].optional for each in columns):
        return
    if argument["class"] == "CAST" and argument["child"]["class"] == "COLUMN_REF":
        kind = probe.one(f"{select.prefix}SELECT typeof({select.query.text(argument['child'])}) FROM {select.source()}")
        if not kind or kind[0] != "BOOLEAN":
            return
    proof = f"{select.prefix}SELECT count({value}) AS base, count(*) AS all_rows FROM {select.source()}{select.where()}"
    row = probe.one(proof)
    if row and row[0] < row[1]:
        column = columns[0]["column_names"][-1]
        message = (
            f"The base of {select.query.part(call)} is {row[0]:,} of {count(row[1], 'row')}: "
            f"those where {column} is NULL are left out."
        )
        proof = f"SELECT * FROM ({proof}) WHERE base < all_rows"
        yield TrapFinding("null_base", home(select, columns[0]), message, proof, column, select.query.part(call))


def integer_division(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find integer divisions whose fraction the result needs."""
    groups = [select.query.text(each) for each in select.groups()]
    tests = [*select.conjuncts, *conjuncts(select.node["having"]), *select.node["modifiers"]]
    for item in (*select.items, *tests):
        for each in walked(item, into=False):
            if not is_call(each, *DIVISIONS) or len(arguments(each)) != 2:
                continue
            over, below = (select.query.text(argument) for argument in arguments(each))
            text = select.query.text(each)
            if _wanted(select, item, each, below) or any(text in group for group in groups):
                continue
            kept = select.where() if any(item is one for one in select.items) else ""
            yield from _cut(select, probe, each, (over, below, kept))


def _wanted(select: Select, item: Node, division: Node, below: str) -> bool:
    """Return whether truncation is intended: buckets, or the remainder is shown too."""
    constant = arguments(division)[1]["class"] == "CONSTANT"
    if constant and below not in {"100", "1000"}:
        return True
    if constant and set(words(select.query.text(arguments(division)[0]))) & {"year", "jahr", "date"}:
        return True
    texts = [select.query.text(each) for each in walked(select.items, into=False) if is_call(each, "%", "mod", "fmod")]
    if any(text.rstrip(")").endswith(below.rstrip(")")) for text in texts):
        return True
    for each in walked(item, into=False):
        if is_call(each, "*") and any(argument is division for argument in arguments(each)):
            return any(select.query.text(argument) == below for argument in arguments(each))
    return False


def _cut(select: Select, probe: Prober, division: Node, sides: tuple[str, str, str]) -> Iterator[TrapFinding]:
    over, below, kept = sides
    grouped = ", ".join(select.query.text(each) for each in select.groups())
    inner = any(is_call(each, "count", "count_star", "sum", "min", "max") for each in walked(division, into=False))
    rest = (
        f"{select.prefix}SELECT {over} AS dividend, {below} AS divisor, {over} % {below} AS lost FROM "
        f"{select.source()}{kept}{f' GROUP BY {grouped}' if grouped and inner else ''}"
    )
    proof = f"SELECT * FROM ({rest}) WHERE lost <> 0"
    if probe.rows(f"{proof} LIMIT 1"):
        part = select.query.part(division)
        message = f"{part} cuts off the fraction; write / to keep it."
        columns = columns_in(division)
        table = home(select, columns[0]) if columns else select.table
        yield TrapFinding("integer_division", table, message, proof, part=part)


def top_without_order(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find LIMIT without ORDER BY on rows that look like a ranking or are used in further computation."""
    modifiers = {each["type"]: each for each in select.node["modifiers"]}
    limit = modifiers.get("LIMIT_MODIFIER")
    if limit is None or "ORDER_MODIFIER" in modifiers or limit.get("limit_type", "ROW_COUNT") != "ROW_COUNT":
        return
    if not limit["limit"] or limit["limit"]["class"] != "CONSTANT" or select.role == "EXISTS":
        return
    inner = select.relations[0].select if len(select.relations) == 1 else None
    if inner and any(each["type"] == "ORDER_MODIFIER" for each in inner.node["modifiers"]):
        return
    bare = all(each["class"] == "STAR" for each in select.items)
    if not select.table or (select.role == "top" and bare) or not _ranks(select, probe):
        return
    own = {**select.own, "modifiers": [each for each in select.node["modifiers"] if each is not limit]}
    whole = f"{select.prefix}{select.query.whole(own)}"
    shown = int(limit["limit"]["literal"]["text"])
    proof = f"SELECT * FROM (SELECT count(*) AS all_rows FROM ({whole})) WHERE all_rows > {shown}"
    if row := probe.one(proof):
        part = f"LIMIT {shown}"
        message = f"{part} without ORDER BY keeps any {shown:,} of {count(row[0], 'row')}, not the largest or first."
        yield TrapFinding("top_without_order", select.table, message, proof, part=part)


def _ranks(select: Select, probe: Prober) -> bool:
    """Return whether rows have a number to rank them by."""
    if select.role != "top" or select.groups():
        return True
    whole = select.query.whole({**select.own, "modifiers": []})
    found = probe.rows(f"DESCRIBE {select.prefix}{whole}")
    numeric = [str(row[0]) for row in found if str(row[1]).startswith(("BIGINT", "INT", "DOUBLE", "DECIMAL", "HUGE"))]
    return any(not set(words(name)) & {"id", "no", "year", "nr", "number"} for name in numeric) and len(found) < 6


def null_not_in(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find NOT IN with NULL in its list or on its left side."""
    places = [select.node["where_clause"], select.node["having"], select.node["qualify"], *select.items]
    for test in (each for each in walked(places, into=False, keep="ANY") if each.get("type") == "OPERATOR_NOT"):
        inner = test["children"][0]
        if inner.get("class") == "SUBQUERY" and inner["subquery_type"] == "ANY":
            yield from _null_in_list(select, probe, test, inner)
        elif inner.get("type") == "COMPARE_IN" and any(test is each for each in select.conjuncts):
            left = inner["children"][0]
            if left["class"] == "COLUMN_REF":
                yield from _null_on_left(select, probe, test, left)


def _null_in_list(select: Select, probe: Prober, test: Node, inner: Node) -> Iterator[TrapFinding]:
    node = inner["subquery"]["node"]
    listed = next((each for each in select.query.selects if each.node is node), None)
    if listed is None or len(listed.items) != 1:
        return
    proof = (
        f"SELECT count(*) AS nulls FROM ({listed.prefix}{listed.query.whole(listed.own)}) AS listed(value) "
        "WHERE value IS NULL HAVING count(*) > 0"
    )
    if nulls := probe.number(proof):
        columns = columns_in(listed.items[0])
        origin = listed.origin(columns[0]) if columns else None
        table, column = (origin.table, origin.column) if origin else (listed.table, "")
        message = f"NOT IN meets {count(int(nulls), 'NULL')} in {table}.{column}, so it is true for no row."
        part = select.query.part(test)
        yield TrapFinding(
            "null_not_in", table, message, proof, column, part[part.upper().find("NOT IN") :] if part else ""
        )


def _null_on_left(select: Select, probe: Prober, test: Node, left: Node) -> Iterator[TrapFinding]:
    value = select.query.text(left)
    proof = (
        f"{select.prefix}SELECT count(*) AS rows_with_null FROM {select.source()}"
        f"{select.where(test, f'{value} IS NULL')} HAVING count(*) > 0"
    )
    if nulls := probe.number(proof):
        table, column = home(select, left), left["column_names"][-1]
        message = f"NOT IN drops {count(int(nulls), 'row')} of {table} where {column} is NULL."
        yield TrapFinding("null_not_in", table, message, proof, column, select.query.part(test))


def float_sums(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find sums of floats that are compared for equality, or that lose cents."""
    reported: set[str] = set()
    tests = [each for key in ("where_clause", "having") for each in conjuncts(select.node[key])]
    for each in (*walked(select.items, into=False), *tests):
        if each.get("type") in {"COMPARE_EQUAL", "COMPARE_NOTEQUAL"} and "left" in each:
            for found in _compared(select, probe, each):
                if found.dataset not in reported:
                    reported.add(found.dataset)
                    yield found
    for call, _ in select.aggregates():
        if is_call(call, "sum") and arguments(call)[0]["class"] == "CAST":
            yield from _lost_cents(select, probe, call)


def _compared(select: Select, probe: Prober, test: Node) -> Iterator[TrapFinding]:
    for side in (test["left"], test["right"]):
        owner, call = select, side
        if side["class"] == "SUBQUERY":
            node = side["subquery"]["node"]
            inner = next((each for each in select.query.selects if each.node is node), None)
            if inner is None or len(inner.items) != 1:
                continue
            owner, call = inner, inner.items[0]
        if (origin := _summed(owner, call)) is None:
            continue
        name, table = quoted(origin.column), quoted(origin.table)
        proof = (
            f"SELECT DISTINCT typeof({name}) AS type FROM {table} WHERE typeof({name}) IN ('DOUBLE', 'FLOAT') "
            f"AND abs({name}) < 1e12 AND {name} <> trunc({name})"
        )
        if probe.rows(proof):
            message = (
                f"{select.query.part(test)} compares sums of floats for equality, which rounding alone decides; "
                f"cast {origin.column} to DECIMAL."
            )
            yield TrapFinding("float_sums", origin.table, message, proof, origin.column, select.query.part(test))


def _summed(select: Select, node: Node) -> ColumnOrigin | None:
    """Return the column whose unrounded sum is one side of a comparison, here or in another SELECT."""
    parts = list(walked(node, into=False))
    if any(is_call(each, "round", "count", "count_star") or each.get("class") == "CAST" for each in parts):
        return None
    for each in parts:
        if is_call(each, "sum") and (columns := columns_in(each)):
            return select.origin(columns[0])
        if each.get("class") == "COLUMN_REF" and (origin := select.origin(each)):
            made = [one for item in origin.expressions for one in walked(item, into=False)]
            calls = [one for one in made if one.get("class") in {"FUNCTION", "CAST"}]
            if calls and all(is_call(one, "sum", "+", "-", "*") for one in calls):
                return origin
    return None


def _lost_cents(select: Select, probe: Prober, call: Node) -> Iterator[TrapFinding]:
    cast = arguments(call)[0]
    columns = columns_in(cast)
    inner, value = select.query.text(cast["child"]), select.query.text(cast)
    proof = (
        f"{select.prefix}SELECT sum({value}) AS as_float, sum(CAST({inner} AS DECIMAL(38, 6))) AS exact "
        f"FROM {select.source()}{select.where()} HAVING abs(as_float - exact::DOUBLE) >= 0.005"
    )
    if columns and (row := probe.one(proof)):
        part = select.query.part(call)
        message = f"{part} loses cents: {row[0]:.2f} instead of {row[1]:.2f}."
        yield TrapFinding("float_sums", home(select, columns[0]), message, proof, columns[0]["column_names"][-1], part)


MEANS = known(
    "mean avg average rate ratio percent pct percentage share expectancy durchschnitt mittel mittelwert quote anteil "
    "schnitt capita moyenne moyen taux promedio media tasa medio 平均 平均值 平均分 均价 人均"
)
COUNTS = stems(
    "n count cnt number population pop people persons inhabitants size receipts orders visits sessions "
    "impressions members respondents customers units votes calls cases students pupils employees headcount "
    "patients tickets transactions clicks users beds households weight enrolment enrollment workers staff "
    "voters electorate eligible seats rooms guests passengers flights trips tests samples obs observations "
    "reviews ratings responses applicants sold qty quantity volume plays views games matches hours deliveries "
    "births loans accounts items learners participants anzahl menge einwohner schüler schueler mitarbeiter "
    "kunden stimmen wähler besucher gäste fälle befragte effectif effectifs nombre habitants élèves eleves "
    "clients salariés alumnos habitantes población empleados clientes 人数 人口 数量 学生数 订单数 客户数 "
    "样本数"
)


def average_of_averages(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find means of means or ratios whose groups have different sizes."""
    for call, _ in select.aggregates():
        if not is_call(call, "avg", "mean"):
            continue
        argument = arguments(call)[0]
        part = select.query.part(call)
        if argument["class"] == "COLUMN_REF" and (origin := select.origin(argument)):
            found = _of_groups(probe, origin, part) if origin.selects else _of_means(select, probe, origin, part)
            if found:
                yield found
        elif is_call(argument, "/") and len(arguments(argument)) == 2:
            yield from _of_ratios(select, probe, call)
        elif groups := _mean_below(select, argument):
            yield from filter(None, [_of_groups(probe, groups, part)])
    yield from _of_windows(select, probe)
    yield from _of_sums(select, probe)


def _mean_below(select: Select, argument: Node) -> ColumnOrigin | None:
    """Return the source of the groups' means in an expression around their column, such as ``round(mean, 1)``."""
    if any(is_call(each, "*") for each in walked(argument, into=False)):
        return None
    origins = [origin for each in columns_in(argument) if (origin := select.origin(each))]
    return origins[0] if len(origins) == 1 and origins[0].selects else None


def _of_windows(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find a window that averages the means of its own SELECT's groups."""
    for item in select.items:
        for each in walked(item):
            if each.get("class") != "WINDOW" or each["function_name"].lower() not in {"avg", "mean"}:
                continue
            made = arguments(each)[0]
            columns = columns_in(made)
            origin = select.origin(columns[0]) if columns else None
            if origin:
                whole = ColumnOrigin(origin.table, origin.column, (select,), (made,))
                yield from filter(None, [_of_groups(probe, whole, select.query.part(each))])


def _of_sums(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find the sum of means divided by their number."""
    for item in select.items:
        for each in walked(item, into=False):
            if not is_call(each, "/") or len(arguments(each)) != 2:
                continue
            over, below = arguments(each)
            sums = [call for call in walked(over, into=False) if is_call(call, "sum")]
            counts = [call for call in walked(below, into=False) if is_call(call, "count", "count_star")]
            argument = arguments(sums[0])[0] if len(sums) == 1 and counts else None
            origin = select.origin(argument) if argument is not None and argument["class"] == "COLUMN_REF" else None
            if origin and origin.selects:
                yield from filter(None, [_of_groups(probe, origin, select.query.part(each))])


def _averages(made: Node) -> bool:
    """Return whether an expression is the mean or ratio of a group."""
    for each in walked(made, into=False):
        if is_call(each, "avg", "mean"):
            return True
        if is_call(each, "/") and len(arguments(each)) == 2:
            sides = [
                any(is_call(call, "sum", "count", "count_star") for call in walked(side, into=False))
                for side in arguments(each)
            ]
            if all(sides):
                return True
    return False


def _of_groups(probe: Prober, origin: ColumnOrigin, part: str) -> TrapFinding | None:
    """Find a mean over the groups of a subquery that computes a mean for each."""
    for select, made in zip(origin.selects, origin.expressions, strict=True):
        groups = select.groups()
        if not groups or not _averages(made):
            continue
        keys = ", ".join(select.query.text(each) for each in groups)
        proof = (
            f"SELECT min(n) AS smallest, max(n) AS largest FROM ({select.prefix}SELECT count(*) AS n "
            f"FROM {select.source()}{select.where()} GROUP BY {keys}) HAVING min(n) < max(n)"
        )
        if row := probe.one(proof):
            message = f"{part} averages means of groups of {row[0]:,} to {row[1]:,} rows without weights."
            return TrapFinding("average_of_averages", origin.table, message, proof, origin.column, part)
    return None


def _of_means(select: Select, probe: Prober, origin: ColumnOrigin, part: str) -> TrapFinding | None:
    """Find a mean of a column of means in a table that also has the group sizes."""
    if not says(origin.column, MEANS) and not stems(origin.column) >= {"life", "exp"}:
        return None
    base = stems(origin.column)
    for name in select.query.columns(origin.table):
        if name == origin.column or not stems(name) & (COUNTS | base) or says(name, MEANS):
            continue
        value, weight = quoted(origin.column), quoted(name)
        proof = (
            f"SELECT avg({value}) AS plain, sum({value} * {weight}) / sum({weight}) AS weighted "
            f"FROM {quoted(origin.table)} HAVING abs(plain - weighted) > 0.001 * abs(plain) AND min({weight}) >= 0"
        )
        if row := probe.one(proof):
            message = (
                f"{part} gives each {origin.column} the same weight; weighted by {name}, the mean of the table is "
                f"{row[1]:.4g} instead of {row[0]:.4g}."
            )
            return TrapFinding("average_of_averages", origin.table, message, proof, origin.column, part)
    return None


def _of_ratios(select: Select, probe: Prober, call: Node) -> Iterator[TrapFinding]:
    over, below = arguments(arguments(call)[0])
    if over["class"] != "COLUMN_REF" or below["class"] != "COLUMN_REF":
        return
    one, other = select.query.text(over), select.query.text(below)
    proof = (
        f"{select.prefix}SELECT avg({one} / {other}) AS plain, sum({one}) / sum({other}) AS weighted "
        f"FROM {select.source()}{select.where()} HAVING abs(plain - weighted) > 0.005 * abs(weighted)"
    )
    if row := probe.one(proof):
        part = select.query.part(call)
        message = f"{part} averages ratios without weights: {row[0]:.4g}; the ratio of the sums is {row[1]:.4g}."
        yield TrapFinding("average_of_averages", home(select, over), message, proof, over["column_names"][-1], part)
