"""Queries that compare a complete period with an incomplete one, or combine amounts of different units, currencies or
time zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from ba_tui.core.ports.tables import TrapFinding
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probes import Prober, known, words
from ba_tui.features.data.analysis.engine_process.traps.series import Period, period
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Select,
    arguments,
    columns_in,
    is_call,
    reference,
    walked,
)

ADDED = ("sum", "count", "count_star", "fsum")
TIME_WORDS = frozenset(["year", "month", "quarter", "week", "day", "date", "jahr", "monat", "period"])
TIME_CALLS = frozenset(["year", "month", "quarter", "week", "date_part", "date_trunc", "strftime", "dayofyear"])
WHOLE = {
    ("year", "month"): 12,
    ("year", "quarter"): 4,
    ("quarter", "month"): 3,
    ("week", "day"): 7,
    ("year", "week"): 52,
}
KINDS: Mapping[str, tuple[str, frozenset[str]]] = {
    "mixed_currency": (
        "currencies",
        known("currency curr cur ccy waehrung währung devise moneda valuta 币种 货币"),
    ),
    "mixed_units": ("units", known("unit units uom einheit unite unité unidad unita unità 单位")),
    "mixed_timezones": ("zones", known("timezone tz tzone zone zeitzone 时区")),
}

BUSINESS = known("business org organisation organization housing id price cost")
"""Kinds of units other than physical ones."""
RATES = known("rate rates fx kurs wechselkurs exchange conversion factor taux cambio tasa 汇率")
CONVERTED = known("usd eur gbp chf jpy cny kg g t lb lbs km mi m l")
"""A name such as ``amount_eur`` shows that the values are in one unit already."""
MEASURED = ("sum", "avg", "mean", "median", "min", "max")


@frozen
class Group:
    """A group of a query: its label, and the distinct periods of its data."""

    name: str
    periods: tuple[Period, ...]


def partial_comparison(today: Callable[[str], date]) -> Callable[[Select, Prober], Iterator[TrapFinding]]:
    """Return the check; ``today`` returns the date of a table."""

    def check(select: Select, probe: Prober) -> Iterator[TrapFinding]:
        if select is select.query.selects[-1]:
            for sources, column in _picked(select):
                groups = _picked_groups(probe, sources, column)
                yield from _partial(sources[0][0], column, groups, today) if len(groups) > 1 else ()
        if not any(is_call(call, *ADDED) for call, _ in select.aggregates()) or not select.groups():
            return
        for column in _times(select):
            groups = _groups(select, probe, column)
            if groups:
                yield from _partial(select, column, groups, today)
                return

    return check


def _picked(last: Select) -> Iterator[tuple[list[tuple[Select, str]], Node]]:
    """Return periods selected by conditions, each with its time column: FILTER and CASE of one SELECT, or WHERE of
    several on one table."""
    whole: list[tuple[Select, str, Node]] = []
    for select in last.query.selects:
        if select.groups() or not any(is_call(call, *ADDED) for call, _ in select.aggregates()):
            continue
        inside: list[tuple[Select, str, Node]] = []
        for call, _ in select.aggregates():
            if not is_call(call, *ADDED, "count_if"):
                continue
            tests = [call["filter"]] if call["filter"] else []
            for each in walked(list(arguments(call)), into=False):
                tests += [check["when_expr"] for check in each["case_checks"]] if each.get("class") == "CASE" else []
            inside.extend(
                (select, select.query.text(test), column) for test in tests if (column := _timed(select, test))
            )
        yield from _alike(inside)
        tests = [each for each in select.conjuncts if _timed(select, each)]
        if tests and not inside:
            column = _timed(select, tests[0])
            whole += [(select, "true", column)] if column else []
    yield from _alike(whole)


def _alike(found: Sequence[tuple[Select, str, Node]]) -> Iterator[tuple[list[tuple[Select, str]], Node]]:
    """Return those about the same column of one table, when there are several."""
    if not found:
        return
    select, _, column = found[0]
    origin = select.origin(column)
    same = [
        (each, test)
        for each, test, other in found
        if (own := each.origin(other)) and origin and (own.table, own.column) == (origin.table, origin.column)
    ]
    if len(dict.fromkeys((id(each), test) for each, test in same)) > 1:
        yield same, column


def _timed(select: Select, test: Node) -> Node | None:
    """Return the one column that a condition compares with constants, if its name or a function shows that it is a
    time."""
    columns = {tuple(each["column_names"]): each for each in columns_in(test)}
    if len(columns) != 1 or not (owned := select.owner(column := next(iter(columns.values())))):
        return None
    calls = {each["function_name"].lower() for each in walked(test, into=False) if each.get("class") == "FUNCTION"}
    casts = any(each.get("class") == "CAST" for each in walked(test, into=False))
    return column if calls & TIME_CALLS or casts or set(words(owned[1])) & TIME_WORDS else None


def _picked_groups(probe: Prober, sources: Sequence[tuple[Select, str]], column: Node) -> list[Group]:
    found: list[Group] = []
    for select, test in sources:
        value = select.query.text(column) if len(select.relations) > 1 else f'"{column["column_names"][-1]}"'
        row = probe.one(
            f"{select.prefix}SELECT list(DISTINCT left(CAST({value} AS VARCHAR), 10)) FILTER ({test}) "
            f"FROM {select.source()}{select.where()}"
        )
        periods = [period(each) for each in (row[0] if row else None) or () if each is not None]
        if not periods or any(each is None for each in periods):
            return []
        ordered = sorted({each.number: each for each in periods if each}.values(), key=lambda each: each.start)
        if all(each.periods != tuple(ordered) for each in found):
            found.append(Group(f"{ordered[0].start} to {ordered[-1].start}", tuple(ordered)))
    return found


def _times(select: Select) -> Iterator[Node]:
    """Return references to possible time columns, those in GROUP BY first."""
    seen: set[tuple[str, ...]] = set()
    grouped = [each for group in select.groups() for each in columns_in(group)]
    named = [
        reference(each.alias, name)
        for each in select.relations
        for name in select.names(each)
        if set(words(name)) & TIME_WORDS
    ]
    for each in (*grouped, *named):
        place = tuple(each["column_names"][-1:])
        if place not in seen and select.owner(each):
            seen.add(place)
            yield each


def _groups(select: Select, probe: Prober, column: Node) -> list[Group]:
    """Return the groups with the periods of ``column`` in each; empty when it has no times."""
    value = select.query.text(column)
    siblings = [name for each in select.relations for name in select.names(each)]
    quarter = next((name for name in siblings if name.lower() in {"quarter", "qtr"}), "")
    shown, parts = "CAST(moment AS VARCHAR)", f"{value} AS moment"
    if column["column_names"][-1].lower() in {"year", "jahr"} and quarter and not _grouped_by(select, quarter):
        shown, parts = "concat(moment, '-Q', part)", f"{value} AS moment, {quarter} AS part"
    keys = [select.query.text(each) for each in select.groups()]
    rows = probe.rows(
        f"{select.prefix}SELECT name, list(DISTINCT left({shown}, 10)) FROM (SELECT DISTINCT "
        f"concat_ws(' ', {', '.join(keys)}) AS name, {parts} FROM {select.source()}{select.where()}) "
        "GROUP BY name LIMIT 1000"
    )
    found: list[Group] = []
    for name, values in rows:
        periods = [period(each) for each in values or () if each is not None]
        if not periods or any(each is None for each in periods):
            return []
        ordered = sorted({each.number: each for each in periods if each}.values(), key=lambda each: each.start)
        found.append(Group(str(name), tuple(ordered)))
    grains = {each.grain for group in found for each in group.periods}
    return found if len(found) > 1 and len(grains) == 1 else []


def _grouped_by(select: Select, name: str) -> bool:
    return any(each["column_names"][-1] == name for group in select.groups() for each in columns_in(group))


def _partial(
    select: Select, column: Node, groups: Sequence[Group], today: Callable[[str], date]
) -> Iterator[TrapFinding]:
    table = select.table
    spans = [(group.periods[0].start, group.periods[-1].start) for group in groups]
    ordered = sorted(range(len(groups)), key=lambda each: spans[each])
    apart = all(spans[one][1] < spans[other][0] for one, other in pairwise(ordered))
    if apart:
        yield from _in_series(select, column, [groups[each] for each in ordered], today(table))
    else:
        yield from _by_entity(select, column, groups)


def _in_series(select: Select, column: Node, groups: Sequence[Group], today: date) -> Iterator[TrapFinding]:
    """Find a first or last group of a time series that covers only part of its period."""
    grain = _grain(groups)
    base = groups[0].periods[0].grain
    if not grain or grain == base:
        return
    regular = _regular(groups)
    partial: list[tuple[Group, str]] = []
    for group in dict.fromkeys((groups[0], groups[-1])):
        start, end = _bounds(grain, group.periods[0].start)
        whole = WHOLE.get((grain, base)) or (end - start).days
        others = [len(each.periods) for each in groups if each is not group]
        usual = max(whole, 1) if base == "day" else min(whole, max(others, default=whole))
        if _as_far(group, groups, grain):
            continue
        if group is groups[-1] and start <= today < end:
            partial.append((group, f"was not over on {today}"))
        elif regular and len(group.periods) < 0.8 * usual and base in {"day", "month", "quarter", "week"}:
            partial.append((group, f"has {len(group.periods)} of {usual} {base}s"))
        elif group is groups[-1] and base == "day" and _breaks_off(group, groups, grain):
            partial.append((group, f"ends on {group.periods[-1].start}"))
    if not partial:
        return
    named = ", ".join(f"{grain} {group.name} {why}" for group, why in partial)
    complete = len(groups) > len(partial)
    for trap, what in (
        ("partial_period", "it is no whole period"),
        ("partial_comparison", "but is compared with whole periods"),
    ):
        if trap == "partial_period" or complete:
            yield _finding(select, column, trap, f"{named}: {what}.")


def _breaks_off(group: Group, groups: Sequence[Group], grain: str) -> bool:
    """Return whether the last group's events end in the first half of its period, while all others reach the last
    quarter."""

    def reach(each: Group) -> float:
        start, end = _bounds(grain, each.periods[0].start)
        return ((each.periods[-1].start - start).days + 1) / (end - start).days

    others = [each for each in groups if each is not group]
    fewest = min(len(each.periods) for each in others)
    whole = len(others) > 2 and all(reach(each) >= 0.75 for each in others)
    return whole and reach(group) <= 0.5 and len(group.periods) <= fewest


def _as_far(group: Group, groups: Sequence[Group], grain: str) -> bool:
    """Return whether the other groups end at the same point of their periods, such as the first ten days of each
    month."""

    def reached(each: Group) -> int:
        return (each.periods[-1].start - _bounds(grain, each.periods[0].start)[0]).days

    start, end = _bounds(grain, group.periods[0].start)
    far = max(reached(each) for each in groups if each is not group)
    return far <= reached(group) + max(1, 0.05 * (end - start).days) and far < 0.8 * (end - start).days


def _grain(groups: Sequence[Group]) -> str:
    """Return the period of a group: the shortest that contains each of them."""
    for grain in ("week", "month", "quarter", "year"):
        bounds = [_bounds(grain, group.periods[0].start) for group in groups]
        fits = all(start <= group.periods[-1].start < end for (start, end), group in zip(bounds, groups, strict=True))
        if fits and len(set(bounds)) == len(groups):
            return grain
    return ""


def _bounds(grain: str, day: date) -> tuple[date, date]:
    if grain == "week":
        start = date.fromordinal(day.toordinal() - day.weekday())
        return start, date.fromordinal(start.toordinal() + 7)
    months = {"month": 1, "quarter": 3, "year": 12}[grain]
    first = (day.year * 12 + day.month - 1) // months * months
    return date(first // 12, first % 12 + 1, 1), date((first + months) // 12, (first + months) % 12 + 1, 1)


def _regular(groups: Sequence[Group]) -> bool:
    """Return whether the data has equal steps."""
    numbers = sorted({each.number for group in groups for each in group.periods})
    steps = Counter(after - before for before, after in pairwise(numbers))
    return len(numbers) > 4 and steps[1] >= 0.9 * steps.total()


def _by_entity(select: Select, column: Node, groups: Sequence[Group]) -> Iterator[TrapFinding]:
    """Find a group with fewer periods than the others over the same time."""
    most = max(len(group.periods) for group in groups)
    short = [group for group in groups if len(group.periods) <= 0.7 * most]
    whole = [group for group in groups if len(group.periods) == most]
    regular = groups[0].periods[0].grain in {"month", "quarter", "year", "week"}
    if not regular or not short or most < 4 or len(whole) * 2 < len(groups) or not _regular(groups):
        return
    if any(is_call(call, "count", "count_star") for call, _ in select.aggregates()):
        return
    message = f"{short[0].name} has {count(len(short[0].periods), short[0].periods[0].grain)}, others have {most}."
    yield _finding(select, column, "partial_comparison", message)


def _finding(select: Select, column: Node, trap: str, message: str) -> TrapFinding:
    value = select.query.text(column)
    keys = [select.query.text(each) for each in select.groups()]
    names = "".join(f"{key} AS group_{number}, " for number, key in enumerate(keys, 1))
    grouped = f" GROUP BY {', '.join(keys)} ORDER BY first" if keys else ""
    proof = (
        f"{select.prefix}SELECT {names}min({value}) AS first, max({value}) AS last, count(DISTINCT {value}) AS n "
        f"FROM {select.source()}{select.where()}{grouped}"
    )
    origin = select.origin(column)
    table, name = (origin.table, origin.column) if origin else (select.table, column["column_names"][-1])
    return TrapFinding(trap, table, message, proof, name)


def mixed_by_column(select: Select, probe: Prober) -> Iterator[TrapFinding]:
    """Find values that are combined although another column shows that their units differ."""
    reported: set[tuple[str, str]] = set()
    for node in _used(select):
        measured = arguments(node)[0] if is_call(node, *MEASURED) else node
        if (
            any(each.get("class") == "CASE" for each in walked(measured, into=False))
            or len(select.touched(measured)) != 1
        ):
            continue
        for column in columns_in(measured):
            for found in _beside(select, probe, column, node):
                if (found.trap, found.dataset) not in reported:
                    reported.add((found.trap, found.dataset))
                    yield found


def _used(select: Select) -> list[Node]:
    """Return what a query sums, ranks by, or groups by a part of a time."""
    added = [call for call, _ in select.aggregates() if is_call(call, *MEASURED) and arguments(call)]
    orders = [
        order["expression"]
        for each in select.node["modifiers"]
        if each["type"] == "ORDER_MODIFIER"
        for order in each["orders"]
        if order["expression"]["class"] == "COLUMN_REF" and select.owner(order["expression"])
    ]
    return [*added, *orders, *(each for each in select.groups() if each["class"] == "FUNCTION")]


def _beside(select: Select, probe: Prober, column: Node, call: Node) -> Iterator[TrapFinding]:
    owned, origin = select.owner(column), select.origin(column)
    if not owned or not origin or origin.selects:
        return
    relation, name = owned
    for other in select.names(relation):
        for trap, (what, named) in KINDS.items():
            if other == name or not set(words(other)) & named or not _of_kind(trap, (name, other), call, probe, select):
                continue
            unit = f'"{relation.alias}"."{other}"'
            keys = [select.query.text(each) for each in select.groups()]
            if any(key.split(".")[-1].strip('"') == other for key in keys):
                continue
            by = f" GROUP BY {', '.join(keys)}" if keys else ""
            proof = (
                f"{select.prefix}SELECT list_sort(list(DISTINCT {unit})) AS {what} FROM {select.source()}"
                f"{select.where()}{by} HAVING count(DISTINCT {unit}) > 1"
            )
            ranked = any(each["type"] == "ORDER_MODIFIER" for each in select.node["modifiers"])
            if trap != "mixed_timezones" and keys and ranked:
                # A ranking compares groups even if each has one unit.
                proof = (
                    f"{select.prefix}SELECT list_sort(list(DISTINCT {unit})) AS {what} FROM {select.source()}"
                    f"{select.where()} HAVING count(DISTINCT {unit}) > 1"
                )
            if row := probe.one(proof):
                shown = ", ".join(map(str, row[0][:4]))
                message = (
                    f"{select.query.part(call)} takes values of several {what} together: {shown}, as {other} says."
                )
                yield TrapFinding(trap, origin.table, message, proof, name, select.query.part(call))


def _of_kind(trap: str, names: tuple[str, str], call: Node, probe: Prober, select: Select) -> bool:
    """Return whether a column can have the kind of unit in the neighbouring text column: amounts have units, moments
    have zones."""
    name, other = names
    types = ", ".join(f"typeof({quoted(each)})" for each in names)
    row: Sequence[Any] = probe.one(f"{select.prefix}SELECT {types} FROM {select.source()} LIMIT 1")
    if not row or row[1] != "VARCHAR" or (trap == "mixed_units" and set(words(other)) & BUSINESS):
        return False
    if trap == "mixed_timezones":
        return str(row[0]).startswith("TIMESTAMP") and not is_call(call, *ADDED)
    numeric = str(row[0]).startswith(("BIGINT", "INTEGER", "DOUBLE", "DECIMAL", "FLOAT", "HUGEINT"))
    factors = {word for each in walked(arguments(call)) if is_call(each, "*", "/") for column in columns_in(each)
               for word in words(column["column_names"][-1])}  # fmt: skip
    converted = factors & RATES if trap == "mixed_currency" else factors
    return numeric and not converted and not set(words(name)) & CONVERTED and _is_amount(call)


def _is_amount(node: Node) -> bool:
    """Return whether amounts are summed or ranked rather than grouped."""
    return is_call(node, *MEASURED) or node["class"] == "COLUMN_REF"
