"""Traps in data and queries, as the engine tells them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.core.ports.tables import TrapFinding
from ba_tui.features.data.analysis.card import card
from ba_tui.features.data.analysis.engine import Analysis, MutedTraps

pytestmark = pytest.mark.asyncio(loop_scope="module")

Put = Callable[[str, bytes | str], str]
ORDERS = "order_id,customer,shipping\n1,A,5\n2,B,5\n3,,0\n"
LINES = "line_id,order_id,price\n1,1,10\n2,1,20\n3,2,31\n4,,40\n"


@pytest.fixture(scope="module")
def tables(files: Path) -> None:
    (files / "orders.csv").write_text(ORDERS)
    (files / "lines.csv").write_text(LINES)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT sum(l.price), sum(o.shipping) FROM 'orders.csv' o JOIN 'lines.csv' l USING (order_id)",
            {("join_multiplies", "orders"), ("join_loses_rows", "lines"), ("join_loses_rows", "orders")},
        ),
        ("SELECT count(*) FROM orders WHERE order_id NOT IN (SELECT order_id FROM lines)", {("null_not_in", "lines")}),
        ("SELECT count(customer) AS orders FROM orders", {("count_column", "orders")}),
        ("SELECT count(customer) AS customers FROM orders", set()),
        ("SELECT order_id, price // order_id AS each FROM lines", {("integer_division", "lines")}),
        ("SELECT order_id, price FROM lines LIMIT 2", {("top_without_order", "lines")}),
        ("SELECT order_id, price FROM lines ORDER BY price LIMIT 2", set()),
        (
            "SELECT count(DISTINCT o.order_id) AS orders_with_lines FROM orders o JOIN lines l USING (order_id)",
            set(),
        ),
        ("PIVOT orders ON customer USING sum(shipping)", set()),
        ("EXPLAIN SELECT count(customer) FROM orders", set()),
    ],
)
@pytest.mark.usefixtures("tables")
async def test_a_query_tells_the_traps_it_meets(engine: Analysis, sql: str, expected: set[tuple[str, str]]) -> None:
    await engine.register("orders.csv")
    await engine.register("lines.csv")
    result = await engine.query(sql)
    assert {(each.trap, each.dataset) for each in result.findings} == expected
    for each in result.findings:
        assert (await engine.query(each.proof)).rows


@pytest.mark.parametrize(
    ("text", "trap", "column"),
    [
        ("kind,n\na,1\nb,2\nc,4\nTotal,7\n", "total_rows", "kind"),
        ("who,age\na,30\nb,40\nc,50\nd,999\ne,999\n", "sentinels", "age"),
        ("who,cost\na,1 EUR\nb,2 EUR\nc,3 USD\n", "mixed_currency", "cost"),
        ("zip,n\n01234,1\n99999,2\n", "leading_zeros", "zip"),
        ("id,day\n1,03/04/2023\n2,05/06/2023\n3,07/08/2023\n", "ambiguous_dates", "day"),
        ("id,name\n1,a\n2,b\n2,c\n4,d\n5,e\n", "duplicate_keys", "id"),
        ("month,n\n2023-01,1\n2023-02,2\n2023-03,3\n2023-04,3\n2023-06,5\n2023-07,8\n", "time_gaps", "month"),
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", "shifted_columns", ""),
        ("Sales 2026,,\nall stores,,\nday,store,n\n1,a,2\n2,b,3\n3,c,4\n", "header_footer_inside", ""),
    ],
)
async def test_a_profile_tells_the_traps_in_the_data(
    engine: Analysis, put: Put, text: str, trap: str, column: str
) -> None:
    (dataset,) = await engine.register(put("data.csv", text))
    profile = await engine.profile(dataset.name)
    found = {each.trap: each for each in profile.findings}
    assert found[trap].column == column
    assert found[trap].message in card(profile)
    assert (await engine.query(found[trap].proof)).rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(amount) FROM {}", {"total_rows"}),
        ("SELECT region, avg(amount) FROM {} GROUP BY region", {"total_rows"}),
        ("SELECT sum(amount) FROM {} WHERE region IS NOT NULL", set()),
        ("SELECT sum(amount) FILTER (WHERE \"order\" <> 'Total') FROM {}", set()),
        ('SELECT "order", sum(amount) FROM {} GROUP BY 1', set()),
        ("SELECT count(*) FROM {}", set()),
    ],
)
async def test_a_query_that_adds_totals_to_their_parts_says_so(
    engine: Analysis, put: Put, sql: str, expected: set[str]
) -> None:
    (dataset,) = await engine.register(put("sold.csv", "order,region,amount\na,N,1\nb,S,2\nc,N,4\nTotal,,7\n"))
    await engine.profile(dataset.name)
    result = await engine.query(sql.format(dataset.name))
    assert {each.trap for each in result.findings} == expected
    for each in result.findings:
        assert (await engine.query(each.proof)).rows == 1


async def test_a_number_named_units_is_no_unit_of_measure(engine: Analysis, put: Put) -> None:
    (dataset,) = await engine.register(put("counted.csv", "order_id,units,amount\n1,2,10\n2,3,20\n3,1,30\n"))
    assert not (await engine.query(f"SELECT sum(amount) FROM {dataset.name}")).findings


async def test_a_column_of_placeholders_alone_has_no_dates(engine: Analysis, put: Put) -> None:
    (dataset,) = await engine.register(put("noted.csv", "order_id,note\n1,x\n2,x\n3,x\n"))
    assert not (await engine.profile(dataset.name)).findings


async def test_muted_traps_are_marked_even_after_the_file_changed(engine: Analysis, files: Path, put: Put) -> None:
    source = put("muted.csv", "zip,n\n01234,1\n99999,\n")
    (dataset,) = await engine.register(source)
    assert (await engine.profile(dataset.name)).told
    sql = f"SELECT count(n) AS rows FROM {dataset.name}"
    assert (await engine.query(sql)).told
    paths = [each.path for each in dataset.files]
    for trap in ("leading_zeros", "count_column"):
        engine.muted.mute(trap, paths, muted=True)
    profile = await engine.profile(dataset.name)
    assert profile.findings
    assert not profile.told
    assert "leading zeros" not in card(profile)
    assert not (await engine.query(sql)).told
    (files / source).write_text("zip,n\n01234,1\n99999,\n88888,3\n")
    await engine.register(source)
    assert not (await engine.profile(dataset.name)).told
    engine.muted.mute("leading_zeros", paths, muted=False)
    assert [each.trap for each in (await engine.profile(dataset.name)).told] == ["leading_zeros"]


async def test_what_is_muted_holds_for_later_sessions(tmp_path: Path) -> None:
    store = tmp_path / "muted.json"
    zeros = TrapFinding("leading_zeros", "sales", "sales.zip …", "SELECT 1")
    MutedTraps(store).mute("leading_zeros", ["/data/sales.csv"], muted=True)
    assert [each.muted for each in MutedTraps(store).marked([zeros], ["/data/sales.csv"])] == [True]
    assert [each.muted for each in MutedTraps(store).marked([zeros], ["/data/other.csv"])] == [False]
    assert [each.muted for each in MutedTraps(None, ["all"]).marked([zeros], [])] == [True]
    store.write_text("not JSON")
    assert [each.muted for each in MutedTraps(store).marked([zeros], ["/data/sales.csv"])] == [False]
