"""Comparisons of two tables and cross tables: what differs, by which key, and totals that are right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ba_tui.features.data.analysis.comparison import Comparison, comparison_lines
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import QueryFailed, UnknownTable

pytestmark = pytest.mark.asyncio(loop_scope="module")
Put = Callable[[str, bytes | str], str]

OLD = "id,name,amount,code\n1,Ann,10.5,7\n2,Bo,20,8\n3,Cy,,9\n5,E,5,1\n"
NEW = "ID,name,amount,code\n1,Ann,10.5,x7\n2,Bob,21,8\n3,Cy,0,9\n4,Di,4,y\n"


async def compared(engine: Analysis, put: Put, left: str, right: str, *keys: str, tolerance: float = 0.0) -> Comparison:
    names = [(await engine.register(put(name, text)))[0].name for name, text in (("l.csv", left), ("r.csv", right))]
    return await engine.compare(names[0], names[1], keys, tolerance=tolerance)


async def test_what_differs_is_counted_and_kept(engine: Analysis, put: Put) -> None:
    found = await compared(engine, put, OLD, NEW)
    assert (found.keys, found.found, found.equal) == (("id",), True, False)
    assert (found.both, found.changed, found.only_left, found.only_right) == (3, 3, 1, 1)
    assert [(each.column, each.left, each.right) for each in found.types] == [("code", "BIGINT", "VARCHAR")]
    assert {each.column: each.rows for each in found.columns} == {"amount": 2, "name": 1, "code": 1}
    amount = next(each for each in found.columns if each.column == "amount")
    assert [(one.key, one.left, one.right) for one in amount.examples] == [((2,), 20.0, 21.0), ((3,), None, 0.0)]
    assert found.result
    rows = await engine.query(f"SELECT difference, id FROM {found.result.handle} ORDER BY id")
    left, right = found.left.name, found.right.name
    assert [row[0] for row in rows.head] == ["changed"] * 3 + [f"only in {right}", f"only in {left}"]
    lines = "\n".join(comparison_lines(found))
    assert f"Rows: 0 equal, 3 changed, 1 only in {left}, 1 only in {right}." in lines
    assert "- amount: 2 rows, such as 2: 20.0 → 21.0; 3: NULL → 0.0" in lines


async def test_numbers_within_the_tolerance_are_equal(engine: Analysis, put: Put) -> None:
    left, right = "k,v\n1,1.00\n2,2.5\n3,\n", "k,v\n1,1.001\n2,2.7\n3,\n"
    assert (await compared(engine, put, left, right, "k", tolerance=0.01)).changed == 1
    assert (await compared(engine, put, left, right, "k")).changed == 2


async def test_equal_tables_have_no_result(engine: Analysis, put: Put) -> None:
    found = await compared(engine, put, OLD, OLD)
    assert (found.equal, found.result) == (True, None)
    empty = await compared(engine, put, "id,v\n", "id,v\n")
    assert (empty.equal, empty.both) == (True, 0)
    assert list(comparison_lines(empty))[-1] == "No difference: 0 rows with 1 column compared are equal."


async def test_keys_that_are_empty_or_repeated_are_told_and_paired(engine: Analysis, put: Put) -> None:
    left, right = "k,v\n1,a\n1,b\n,c\n,d\n2,e\n", "k,v\n1,b\n1,a\n,c\n2,z\n2,e\n"
    found = await compared(engine, put, left, right, "K")
    assert (found.left.null_keys, found.left.repeated, found.right.null_keys, found.right.repeated) == (2, 2, 1, 2)
    assert (found.both, found.changed, found.only_left, found.only_right) == (4, 0, 1, 1)
    assert "2 rows with a repeated key" in "\n".join(comparison_lines(found))


async def test_two_columns_may_be_the_key(engine: Analysis, put: Put) -> None:
    text = "shop,day,v\n1,1,5\n1,2,5\n2,1,5\n2,2,6\n"
    found = await compared(engine, put, text, text.replace("6", "7"))
    assert (found.keys, found.changed) == (("shop", "day"), 1)


@pytest.mark.parametrize(
    ("left", "right", "keys", "said"),
    [
        ("a,b\n1,2\n", "c,d\n1,2\n", (), "have no column in common"),
        ("a,b\n1,2\n", "a,b\n1,2\n", ("c",), "has no column c"),
        ("a,b\n1,2\n", "a,c\n1,2\n", ("b",), "has no column b"),
        ("a\n1\n1\n", "a\n1\n1\n", (), "No column or pair of columns is unique in both"),
    ],
)
async def test_tables_that_can_not_be_compared(
    engine: Analysis, put: Put, left: str, right: str, keys: tuple[str, ...], said: str
) -> None:
    with pytest.raises(QueryFailed, match=said):
        await compared(engine, put, left, right, *keys)
    with pytest.raises(UnknownTable):
        await engine.compare("nothing", "either")


async def test_wide_tables_are_compared_in_parts(engine: Analysis, put: Put) -> None:
    columns, values = ",".join(f"c{n}" for n in range(250)), ["5"] * 250
    left = f"id,{columns}\n1,{','.join(values)}\n2,{','.join(values)}\n"
    values[3] = values[240] = "6"
    found = await compared(engine, put, left, f"id,{columns}\n1,{','.join(values)}\n2,{','.join(['5'] * 250)}\n", "id")
    assert (found.changed, [each.column for each in found.columns]) == (1, ["c3", "c240"])


SALES = "region,year,amount\nNorth,2023,1\nNorth,2024,2\nSouth,2024,4\n,2024,8\n"


async def test_a_cross_table_has_totals_of_the_rows(engine: Analysis, put: Put) -> None:
    name = (await engine.register(put("sales.csv", SALES)))[0].name
    made = await engine.pivot(name, ["region"], ["year"], "amount")
    assert [column.name for column in made.columns] == ["region", "2023", "2024", "total", "is_total"]
    assert made.head == (
        ("North", 1, 2, 3, False),
        ("South", None, 4, 4, False),
        (None, None, 8, 8, False),
        (None, 1, 14, 15, True),
    )
    mean = await engine.pivot(name, ["region"], (), "amount", "avg")
    assert mean.head[-1][1:] == (3.75, True)
    counted = await engine.pivot(name, [], ["region"], "", "count")
    assert ([column.name for column in counted.columns], counted.head) == (
        ["North", "South", "(empty)", "total"],
        ((2, 1, 1, 4),),
    )


@pytest.mark.parametrize(
    ("rows", "columns", "values", "aggregate", "said"),
    [
        (["regoin"], [], "amount", "sum", "has no column regoin"),
        (["region"], [], "region", "sum", "sum needs numbers, and region is VARCHAR"),
        (["region"], [], "", "sum", "sum needs values"),
        (["region"], [], "amount", "summ", "There is no aggregate summ"),
    ],
)
async def test_a_cross_table_that_can_not_be(
    engine: Analysis, put: Put, rows: list[str], columns: list[str], values: str, aggregate: str, said: str
) -> None:
    name = (await engine.register(put("sales.csv", SALES)))[0].name
    with pytest.raises(QueryFailed, match=said):
        await engine.pivot(name, rows, columns, values, aggregate)  # type: ignore[arg-type]


async def test_too_many_values_are_no_columns(engine: Analysis) -> None:
    many = (await engine.query("SELECT i AS n FROM range(500) t(i)")).handle
    with pytest.raises(QueryFailed, match="n would make more than 200 columns"):
        await engine.pivot(many, [], ["n"], "", "count")
