"""Means of means, and of ratios, whose groups are of different size."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.ports.tables import Finding
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probing import Prober
from ba_tui.features.data.analysis.engine_process.traps.syntax import (
    Node,
    Origin,
    Select,
    arguments,
    columns_in,
    home,
    is_call,
    walked,
)
from ba_tui.features.data.analysis.engine_process.traps.wording import known, says, stems

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


def average_of_averages(select: Select, probe: Prober) -> Iterator[Finding]:
    """Means of means or ratios whose groups are of different size."""
    for call, _ in select.aggregates():
        if not is_call(call, "avg", "mean"):
            continue
        given = arguments(call)[0]
        part = select.query.part(call)
        if given["class"] == "COLUMN_REF" and (origin := select.origin(given)):
            found = _of_groups(probe, origin, part) if origin.selects else _of_means(select, probe, origin, part)
            if found:
                yield found
        elif is_call(given, "/") and len(arguments(given)) == 2:
            yield from _of_ratios(select, probe, call)
        elif groups := _mean_below(select, given):
            yield from filter(None, [_of_groups(probe, groups, part)])
    yield from _of_windows(select, probe)
    yield from _of_sums(select, probe)


def _mean_below(select: Select, given: Node) -> Origin | None:
    """Where the mean of each group comes from, in an expression around its column such as ``round(mean, 1)``."""
    if any(is_call(each, "*") for each in walked(given, into=False)):
        return None
    origins = [origin for each in columns_in(given) if (origin := select.origin(each))]
    return origins[0] if len(origins) == 1 and origins[0].selects else None


def _of_windows(select: Select, probe: Prober) -> Iterator[Finding]:
    """A window that averages the means of the groups of its own SELECT."""
    for item in select.items:
        for each in walked(item):
            if each.get("class") != "WINDOW" or each["function_name"].lower() not in {"avg", "mean"}:
                continue
            made = arguments(each)[0]
            columns = columns_in(made)
            origin = select.origin(columns[0]) if columns else None
            if origin:
                whole = Origin(origin.table, origin.column, (select,), (made,))
                yield from filter(None, [_of_groups(probe, whole, select.query.part(each))])


def _of_sums(select: Select, probe: Prober) -> Iterator[Finding]:
    """The sum of means, divided by their number."""
    for item in select.items:
        for each in walked(item, into=False):
            if not is_call(each, "/") or len(arguments(each)) != 2:
                continue
            over, below = arguments(each)
            sums = [call for call in walked(over, into=False) if is_call(call, "sum")]
            counts = [call for call in walked(below, into=False) if is_call(call, "count", "count_star")]
            given = arguments(sums[0])[0] if len(sums) == 1 and counts else None
            origin = select.origin(given) if given is not None and given["class"] == "COLUMN_REF" else None
            if origin and origin.selects:
                yield from filter(None, [_of_groups(probe, origin, select.query.part(each))])


def _averages(made: Node) -> bool:
    """Whether an expression is the mean or ratio of a group."""
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


def _of_groups(probe: Prober, origin: Origin, part: str) -> Finding | None:
    """A mean over the groups of a subquery, which has a mean of each."""
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
            return Finding("average_of_averages", origin.table, message, proof, origin.column, part)
    return None


def _of_means(select: Select, probe: Prober, origin: Origin, part: str) -> Finding | None:
    """A mean over a column of means that stands beside a column with the sizes of the groups."""
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
            return Finding("average_of_averages", origin.table, message, proof, origin.column, part)
    return None


def _of_ratios(select: Select, probe: Prober, call: Node) -> Iterator[Finding]:
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
        yield Finding("average_of_averages", home(select, over), message, proof, over["column_names"][-1], part)
