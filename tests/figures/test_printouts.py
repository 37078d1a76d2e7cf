"""True figures and wrong ones about one small table, printed in each form in which programs print tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence

HEAD = ("region", "sales", "cost", "orders")
ROWS = (
    ("North", 48210, 31500, 112), ("South", 39877, 28114, 97), ("East", 52304, 30991, 131), ("West", 21950, 19642, 64),
)  # fmt: skip
TRUE = (
    "North sold 48,210 at a cost of 31,500.",
    "Sales in the East were 52,304, 138.3% above those in the West.",
    "In total 162,341 was sold with 404 orders.",
    "North's margin is 16,710.",
    "South costs 28,114, that is 70.5% of its sales.",
    "West has 64 orders, 33 fewer than South.",
    "The average sales of a region are 40,585.25.",
    "North sold 8,333 more than South.",
)
WRONG = (
    "North sold 48,310.",
    "South costs 28,114, that is 72.5% of its sales.",
    "In total 162,541 was sold.",
    "North sold 8,533 more than South.",
)


def each(form: Callable[[str, int, int, int], str], between: str = "\n") -> str:
    return between.join(form(*row) for row in ROWS)


FORMS: Mapping[str, str] = {
    "psql expanded": "\n".join(
        f"-[ RECORD {at} ]-+-\nregion | {a}\nsales  | {b}\ncost   | {c}\norders | {d}"
        for at, (a, b, c, d) in enumerate(ROWS, 1)
    ),
    "log": each(lambda a, b, c, d: f"2026-03-01 10:15:04 INFO report region={a} sales={b} cost={c} orders={d}"),
    "names and numbers": each(lambda a, b, c, d: f"{a}: sales {b:,}, cost {c:,}, orders {d}"),
    "numbers and names": each(lambda a, b, c, d: f"{a}: {b:,} sales, {c:,} cost, {d} orders"),
    "bullets": each(lambda a, b, c, d: f"* {a}: {b:,} in sales, {c:,} in cost and {d} orders"),
    "YAML list": each(lambda a, b, c, d: f"- region: {a}\n  sales: {b}\n  cost: {c}\n  orders: {d}"),
    "YAML mapping": "regions:\n" + each(lambda a, b, c, d: f"  {a}:\n    sales: {b}\n    cost: {c}\n    orders: {d}"),
    "INI": each(lambda a, b, c, d: f"[{a}]\nsales = {b}\ncost = {c}\norders = {d}"),
    "properties": each(lambda a, b, c, d: f"{a}.sales={b}\n{a}.cost={c}\n{a}.orders={d}"),
    "blocks": each(lambda a, b, c, d: f"Region: {a}\nSales: {b}\nCost: {c}\nOrders: {d}", "\n\n"),
    "tibble": "# A tibble: 4 × 4\n  region sales  cost orders\n  <chr>  <dbl> <dbl>  <int>\n"
    + "\n".join(f"{at} {a:<6} {b:5} {c:5} {d:6}" for at, (a, b, c, d) in enumerate(ROWS, 1)),
    "pandas": "  region  sales   cost  orders\n"
    + "\n".join(f"{at}  {a:>5}  {b:5}  {c:5}  {d:6}" for at, (a, b, c, d) in enumerate(ROWS)),
    "polars": "shape: (4, 4)\n┌────────┬───────┬───────┬────────┐\n│ region ┆ sales ┆ cost  ┆ orders │\n"
    "│ ---    ┆ ---   ┆ ---   ┆ ---    │\n│ str    ┆ i64   ┆ i64   ┆ i64    │\n╞════════╪═══════╪═══════╪════════╡\n"
    + each(lambda a, b, c, d: f"│ {a:<6} ┆ {b} ┆ {c} ┆ {d:<6} │"),
    "HTML": "<table>\n<tr><th>region</th><th>sales</th><th>cost</th><th>orders</th></tr>\n"
    + each(lambda a, b, c, d: f"<tr><td>{a}</td><td class='n'>{b}</td><td>{c}</td><td><b>{d}</b></td></tr>")
    + "</table>",
    "HTML in one line": "<html><body><p>Report</p><table><tr>"
    + "".join(f"<th>{name}</th>" for name in HEAD)
    + "</tr>"
    + each(lambda a, b, c, d: f"<tr><td>{a}</td><td>{b}</td><td>{c}</td><td>{d}</td></tr>", "")
    + "</table><p>End</p></body></html>",
    "XML attributes": "<rows>\n"
    + each(lambda a, b, c, d: f'  <row region="{a}" sales="{b}" cost="{c}" orders="{d}"/>')
    + "\n</rows>",
    "LaTeX": "\\begin{tabular}{lrrr}\nregion & sales & cost & orders \\\\ \\hline\n"
    + each(lambda a, b, c, d: f"{a} & {b} & {c} & {d} \\\\")
    + "\n\\end{tabular}",
    "reStructuredText": "======  =====  =====  ======\nregion  sales  cost   orders\n"
    + "======  =====  =====  ======\n"
    + each(lambda a, b, c, d: f"{a:<6}  {b}  {c}  {d}"),
    "grid": "+--------+-------+-------+--------+\n| region | sales | cost  | orders |\n"
    + "+========+=======+=======+========+\n"
    + each(lambda a, b, c, d: f"| {a:<6} | {b} | {c} | {d:>6} |\n+--------+-------+-------+--------+"),
    "numbered": each(lambda a, b, c, d: f"1. {a} - {b} - {c} - {d}"),
    "turned": "metric North South East West\n"
    "sales 48210 39877 52304 21950\ncost 31500 28114 30991 19642\norders 112 97 131 64",
    "JSON lines": "\n".join(json.dumps(dict(zip(HEAD, row, strict=True))) for row in ROWS),
    "JSON columns": json.dumps({name: [row[at] for row in ROWS] for at, name in enumerate(HEAD)}),
    "JSON mapping": json.dumps({a: {"sales": b, "cost": c, "orders": d} for a, b, c, d in ROWS}),
    "tuples": repr(list(ROWS)),
}


def doubtful(answer: str, result: str) -> list[str]:
    evidence = Evidence()
    evidence.add_words("How are sales?")
    evidence.add("R1", result)
    verdicts = check(answer, evidence, "How are sales?").verdicts
    return [verdict.figure.text for verdict in verdicts if verdict.label in {"unsourced", "misplaced"}]


@pytest.mark.parametrize("form", FORMS)
def test_true_figures_have_a_source_whatever_the_form(form: str) -> None:
    assert {answer: found for answer in TRUE if (found := doubtful(answer, FORMS[form]))} == {}


@pytest.mark.parametrize("form", FORMS)
def test_wrong_figures_have_none_in_any_form(form: str) -> None:
    assert [answer for answer in WRONG if not doubtful(answer, FORMS[form])] == []
