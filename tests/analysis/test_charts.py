"""Charts of tables by the real engine: what is chosen, computed, joined and left out, and the pictures of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ba_tui.core.ports.tables import Arrangement, RowFilter
from ba_tui.core.results import Chart, ChartRequest
from ba_tui.features.data.analysis.charts import description, specification
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import QueryFailed, UnknownTable
from ba_tui.plotting.drawing import text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
Put = Callable[[str, bytes | str], str]
SALES = """date,region,product,units,amount,rate
2026-01-05,North,A,3,10.5,0.1
2026-01-20,South,A,4,20,0.2
2026-02-03,North,B,5,,0.3
2026-02-14,East,B,1,-7,nan
2026-04-01,South,C,2,40,0.5
2026-04-02,,C,9,1,0.6
"""


@pytest_asyncio.fixture(loop_scope="module")
async def sales(engine: Analysis, files: Path) -> str:
    if not (files / "sales.csv").exists():
        (files / "sales.csv").write_text(SALES)
    return (await engine.register("sales.csv"))[0].name


async def drawn(engine: Analysis, data: str, kind: Any = None, x: str = "", y: str = "", **more: Any) -> Chart:
    return await engine.chart(ChartRequest(data, kind, x, tuple(y.split()), **more))


def values(chart: Chart) -> dict[str, float | None]:
    """The first series by label."""
    series = chart.series[0]
    return {chart.labels[int(x)]: y for x, y in zip(series.x, series.y, strict=True)}


async def test_numbers_of_orders_are_not_added_up(engine: Analysis, put: Put) -> None:
    name = put("numbered.csv", "order,day,amount\n7,2026-01-05,3\n8,2026-01-06,4\n9,2026-01-07,1\n")
    (dataset,) = await engine.register(name)
    assert (await drawn(engine, dataset.name)).title == "amount by day"


@pytest.mark.parametrize("name", ["b", "c", "k", "n", "o", "q1", "r", "s", "v", "v0", "x", "y"])
async def test_the_names_of_columns_change_no_chart_and_no_profile(engine: Analysis, put: Put, name: str) -> None:
    """Queries of charts name what they compute, and a column may have the same name."""
    rows = "".join(f"{place},{number % 7},{number % 3}\n" for number, place in enumerate(["N", "S", "N", "E"] * 5))
    columns = ("place", "first", "second")

    async def seen(head: tuple[str, ...]) -> list[object]:
        (dataset,) = await engine.register(put(f"{'_'.join(head)}.csv", f"{','.join(head)}\n{rows}"))
        place, first, second = head
        found: list[object] = [column.top for column in (await engine.profile(dataset.name)).columns]
        for kind, x, y, more in (
            ("bar", place, first, {}),
            ("bar", place, first, {"limit": 2}),
            ("bar", place, first, {"series": second}),
            ("line", first, second, {}),
            ("histogram", first, "", {}),
            ("box", place, second, {}),
            ("scatter", first, second, {}),
            ("heatmap", first, "", {"series": second}),
        ):
            chart = await drawn(engine, dataset.name, kind, x, y, **more)
            found.append((kind, chart.labels, [(each.x, each.y) for each in chart.series], chart.boxes))
        return found

    usual = await seen(columns)
    for place in range(3):
        assert await seen((*columns[:place], name, *columns[place + 1 :])) == usual


async def test_bars_are_aggregated_and_sorted(engine: Analysis, sales: str) -> None:
    chart = await drawn(engine, sales, "bar", "REGION", "amount")
    assert list(values(chart).items()) == [("South", 60.0), ("North", 10.5), ("NULL", 1.0), ("East", -7.0)]
    assert (chart.title, chart.rows) == ("sum of amount by region", 6)
    assert chart.notes == ("1 of 6 rows without amount are left out.",)
    by_name = await drawn(engine, sales, "bar", "region", "amount", order="label", aggregate="max")
    assert list(values(by_name).items()) == [("East", -7.0), ("NULL", 1.0), ("North", 10.5), ("South", 40.0)]
    counted = await drawn(engine, sales, "bar", "region")
    assert values(counted) == {"North": 2, "South": 2, "East": 1, "NULL": 1}
    assert counted.y_title == "number of rows"


@pytest.mark.parametrize(
    ("given", "kind", "x", "y", "aggregate"),
    [
        ({}, "line", "date", ("units",), "sum"),
        ({"x": "region"}, "bar", "region", (), "count"),
        ({"x": "region", "y": "amount"}, "bar", "region", ("amount",), "sum"),
        ({"y": "rate"}, "line", "date", ("rate",), "mean"),
        ({"kind": "histogram"}, "histogram", "units", (), "count"),
        ({"kind": "scatter"}, "scatter", "units", ("amount",), None),
        ({"kind": "box"}, "box", "region", ("units",), None),
        ({"kind": "heatmap"}, "heatmap", "date", ("units",), "sum"),
        ({"kind": "histogram", "x": "region"}, "bar", "region", (), "count"),
    ],
)
async def test_what_is_left_out_is_chosen(
    engine: Analysis, sales: str, given: dict[str, Any], kind: str, x: str, y: tuple[str, ...], aggregate: str | None
) -> None:
    request = (await drawn(engine, sales, **given)).request
    assert (request.kind, request.x, request.y, request.aggregate) == (kind, x, y, aggregate)


async def test_numbers_that_name_rows_are_not_added_up(engine: Analysis, put: Put) -> None:
    orders = (await engine.register(put("orders.csv", "day,order,amount\n2026-01-05,1001,10.5\n2026-01-06,1002,20\n")))[
        0
    ].name
    assert (await drawn(engine, orders)).request.y == ("amount",)


async def test_times_keep_their_distances_and_many_are_joined(engine: Analysis, sales: str, put: Put) -> None:
    chart = await drawn(engine, sales, "line", "date", "units")
    (series,) = chart.series
    days = [int(each / 86_400) for each in series.x]
    assert [day - days[0] for day in days] == [0, 15, 29, 40, 86, 87]
    assert series.y == (3, 4, 5, 1, 2, 9)
    assert chart.y_title == "units"
    rows = "".join(f"{date(2020, 1, 1) + timedelta(days=day)},1\n" for day in range(2_000))
    (long,) = await engine.register(put("long.csv", f"day,n\n{rows}"))
    weekly = await drawn(engine, long.name, "line", "day", "n")
    assert weekly.x_title == "day (week)"
    assert weekly.notes == ("2,000 different times are joined by week.",)
    assert weekly.series[0].y[1:3] == (7, 7)
    bars = await drawn(engine, long.name, "bar", "day", "n")
    assert bars.labels[:2] == ("2020 Q1", "2020 Q2")
    assert sum(values(bars).values()) == 2_000  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_of_many_categories_the_largest_stay(engine: Analysis, put: Put) -> None:
    rows = "".join(f"c{number},{number}\n" for number in range(5_000))
    (many,) = await engine.register(put("many.csv", f"name,n\n{rows}"))
    chart = await drawn(engine, many.name, "bar", "name", "n", limit=5)
    assert list(values(chart)) == ["c4999", "c4998", "c4997", "c4996"]
    assert chart.notes == (
        "4 of 5,000 values of name are shown; the other 4,996 are joined.",
        "The joined ones are not drawn: their sum is 12.4775M.",
    )
    largest = await drawn(engine, many.name, "bar", "name", "n", limit=5, aggregate="max")
    assert values(largest)["other"] == 4_995
    assert list(values(largest))[-1] == "other"


async def test_series_come_from_a_column_from_several_columns_or_from_the_keys(engine: Analysis, sales: str) -> None:
    grouped = await drawn(engine, sales, "bar", "product", "units", series="region")
    assert [each.name for each in grouped.series] == ["NULL", "North", "South", "East"]
    both = await drawn(engine, sales, "bar", "product", "units amount")
    assert [each.name for each in both.series] == ["units", "amount"]
    pairs = await engine.query(f"SELECT product, region, sum(units) AS u FROM {sales} WHERE region > '' GROUP BY ALL")
    keyed = await drawn(engine, pairs.handle)
    assert (keyed.request.x, keyed.request.series, keyed.request.y) == ("product", "region", ("u",))
    with pytest.raises(QueryFailed, match="not both"):
        await drawn(engine, sales, "bar", "product", "units amount", series="region")


async def test_results_and_calendars_keep_their_order(engine: Analysis, put: Put) -> None:
    result = await engine.query("SELECT * FROM (VALUES ('low', 1), ('middle', 9), ('high', 5)) AS t(level, n)")
    assert list(values(await drawn(engine, result.handle))) == ["low", "middle", "high"]
    (months,) = await engine.register(put("months.csv", "month,n\nMarch,1\nJanuary,2\nFebruary,9\n"))
    assert list(values(await drawn(engine, months.name, "bar", "month", "n"))) == ["January", "February", "March"]


async def test_a_histogram_counts_each_value_once(engine: Analysis, put: Put) -> None:
    (ages,) = await engine.register(put("ages.csv", "age\n" + "".join(f"{number}\n" for number in range(100))))
    chart = await drawn(engine, ages.name, "histogram", "age")
    assert sum(value or 0 for value in chart.series[0].y) == 100
    assert chart.step == 20
    (same,) = await engine.register(put("same.csv", "v\n" + "7.5\n" * 9))
    assert sum(value or 0 for value in (await drawn(engine, same.name, "histogram", "v")).series[0].y) == 9


async def test_boxes_have_quartiles_and_count_outliers(engine: Analysis, put: Put) -> None:
    rows = "".join(f"a,{number}\n" for number in range(1, 10)) + "a,100\nb,5\n"
    (table,) = await engine.register(put("boxes.csv", f"g,v\n{rows}"))
    (one, other) = (await drawn(engine, table.name, "box", "g", "v")).boxes
    assert (one.label, one.low, one.median, one.high, one.count, one.outliers) == ("a", 1, 5.5, 9, 10, 1)
    assert (other.label, other.low, other.high, other.count, other.outliers) == ("b", 5, 5, 1, 0)


async def test_many_points_are_joined_and_keep_their_number(engine: Analysis) -> None:
    result = await engine.query("SELECT i AS x, i * 2.0 AS y FROM range(10000) AS t(i)")
    chart = await drawn(engine, result.handle, "scatter", "x", "y")
    (series,) = chart.series
    assert len(series.x) <= 3_200
    assert sum(series.weights) == 10_000
    assert chart.correlation == pytest.approx(1)
    assert "y 0 to 19,998" in chart.notes[0]
    assert "Correlation (Pearson) 1.000: strong linear relation." in description(chart)


async def test_odd_values_are_left_out_and_said(engine: Analysis, sales: str) -> None:
    chart = await drawn(engine, sales, "bar", "product", "rate")
    assert chart.y_title == "mean of rate"
    assert values(chart)["B"] == pytest.approx(0.3)
    assert chart.notes == ("1 value of NaN or infinity in rate is left out.",)
    logged = await drawn(engine, sales, "bar", "region", "amount", log=True)
    assert "1 value at or below zero on a logarithmic axis is left out." in logged.notes
    area = await drawn(engine, sales, "area", "date", "amount")
    assert area.kind == "line"


@pytest.mark.parametrize("kind", ["bar", "line", "area", "scatter", "histogram", "box", "heatmap", "pie", None])
async def test_empty_single_and_endless_values_draw(engine: Analysis, kind: Any) -> None:
    columns = "SELECT 'a' AS g, 'b' AS h, DATE '2026-01-01' AS d, {} AS n, {} AS m"
    for value in ("1", "NULL::DOUBLE", "'nan'::DOUBLE", "'inf'::DOUBLE"):
        result = await engine.query(columns.format(value, value))
        for data in (result.handle, (await engine.query(f"FROM {result.handle} WHERE false")).handle):
            chart = await drawn(engine, data, kind)
            assert text_of(chart)
            assert description(chart)
            assert specification(chart)


@pytest.mark.parametrize(
    ("request_", "words", "hint"),
    [
        ({"kind": "bar", "x": "regin"}, "sales has no column regin.", "Did you mean region?"),
        ({"kind": "bar", "x": "date", "y": "region"}, "region is VARCHAR, not a number.", "units"),
        ({"kind": "scatter", "x": "region", "y": "units"}, "a scatter plot needs numbers or times", "box"),
        ({"kind": "pie", "x": "date", "y": "units", "limit": 40}, "A pie can't show negative values.", ""),
        ({"kind": "histogram", "x": "units", "series": "region"}, "A histogram shows one column.", "box"),
    ],
)
async def test_what_can_not_be_drawn_is_one_line(
    engine: Analysis, sales: str, request_: dict[str, Any], words: str, hint: str
) -> None:
    if "pie" in words:
        request_ = {**request_, "x": "region", "y": "amount"}
    with pytest.raises(QueryFailed) as caught:
        await drawn(engine, sales, **request_)
    assert words in str(caught.value)
    assert hint in caught.value.hint
    with pytest.raises(UnknownTable):
        await drawn(engine, "nothing")


async def test_a_pie_of_many_slices_is_refused_with_a_better_chart(engine: Analysis) -> None:
    result = await engine.query("SELECT chr(65 + i::INTEGER) AS g, i + 1 AS n FROM range(9) AS t(i)")
    with pytest.raises(QueryFailed, match="9 slices can't be read") as caught:
        await drawn(engine, result.handle, "pie", "g", "n")
    assert "kind=bar" in caught.value.hint
    chart = await drawn(engine, result.handle, "pie", "g", "n", limit=6)
    assert len(chart.labels) == 6
    assert "%" in text_of(chart)


async def test_a_chart_of_filtered_rows(engine: Analysis, sales: str) -> None:
    wanted = ChartRequest(sales, "bar", "product", ("units",))
    chart = await engine.chart(wanted, Arrangement((), (RowFilter("region", "=", "South"),)))
    assert (values(chart), chart.rows) == ({"A": 4, "C": 2}, 2)


async def test_the_description_tells_extent_course_and_what_is_left_out(engine: Analysis, sales: str) -> None:
    told = description(await drawn(engine, sales, "bar", "region", "amount", unit="EUR"))
    assert told.split("\n") == [
        "Bar chart of sales (6 rows): sum of amount by region.",
        "Unit: EUR.",
        "4 values; highest 60 at South, lowest -7 at East, total 64.5.",
        "region,sum of amount",
        "South,60",
        "North,10.5",
        "NULL,1",
        "East,-7",
        "1 of 6 rows without amount are left out.",
    ]
    rising = await engine.query("SELECT DATE '2026-01-01' + i::INTEGER AS d, i * 2 + 1 AS n FROM range(80) AS t(i)")
    told = description(await drawn(engine, rising.handle))
    assert "80 points from 1 at 2026-01-01 to 159 at 2026-03-21 (+15800.0%)" in told
    assert "Trend: rising steadily." in told


async def test_pictures_come_from_the_same_values(engine: Analysis, sales: str) -> None:
    chart = await drawn(engine, sales, "bar", "region", "amount", title="<South> & more")
    async with engine.picture(chart, "svg") as path:
        text = path.read_text()
    assert text.startswith("<svg")
    assert "&lt;South&gt; &amp; more" in text
    assert not path.exists()
    async with engine.picture(chart, "png") as path:
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["line", "area", "scatter", "histogram", "box", "heatmap", "pie", "bar"])
async def test_every_kind_has_a_picture(engine: Analysis, kind: Any) -> None:
    random.seed(3)
    rows = ", ".join(f"({n % 3}, 'g{n % 4}', {abs(math.sin(n)) * 9 + n})" for n in range(40))
    result = await engine.query(f"SELECT * FROM (VALUES {rows}) AS t(step, grp, v)")
    x = "grp" if kind in {"pie", "box", "bar"} else "v" if kind == "histogram" else "step"
    y = () if kind == "histogram" else ("v",)
    chart = await engine.chart(ChartRequest(result.handle, kind, x, y))
    async with engine.picture(chart, "svg") as path:
        assert "<path" in path.read_text()


async def test_a_million_rows_send_a_few_hundred_values(engine: Analysis, tmp_path: Path) -> None:
    sql = "SELECT (i * 7919) % 100 AS g, i % 1000 AS n FROM range(100000) AS t(i)"
    result = await engine.query(sql)
    chart = await drawn(engine, result.handle, "line", "g", "n")
    assert len(chart.series[0].x) == 100
    assert sum(value or 0 for value in chart.series[0].y) == 49_950_000
