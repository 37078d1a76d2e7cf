"""Charts as people use them: below a call, in the inspector, from the grid and the data screen, saved as a picture."""

from __future__ import annotations

import pytest
from textual.widgets import Input, Static

from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Column, RowFilter
from ba_tui.core.results import Chart, ChartRequest, ChartSeries, ToolResult
from ba_tui.faces.tui.acts.view import inspect
from ba_tui.faces.tui.chart_pane import ChartPane, ChartScreen, ChartView, changed
from ba_tui.faces.tui.grid.data_pane import AskLine
from ba_tui.faces.tui.grid.pane import GridScreen
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.transcript.lines import PreviewSpace
from ba_tui.faces.tui.transcript.palette import ASCII, Palette
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.faces.tui.transcript.rows import preview
from ba_tui.features.data.tui import DataList
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.grid.tables import Tables
from tests.faces.tui.sheets import shown

REQUEST = ChartRequest("R1", "bar", "region", ("amount",), aggregate="sum")
CHART = Chart(
    REQUEST, "category", "region", "sum of amount", (ChartSeries("amount", (0, 1), (3, 1)),), ("north", "south")
)


@pytest.fixture
def tables(world: World) -> Tables:
    made = Tables()
    world.brain.inventory = Inventory(features={Datasets: made})
    return made


def pane(hand: Hand) -> ChartPane:
    return hand.app.screen.query_one(ChartPane)


def seen(hand: Hand) -> str:
    view = hand.app.screen.query_one(ChartView)
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))


def said(hand: Hand) -> str:
    return str(hand.app.screen.query_one(ChartPane).query_one(".said", Static).content)


def about(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".about", Static).content)


async def drawn(hand: Hand, tables: Tables, count: int) -> ChartRequest:
    """The newest request, once there were so many."""
    await hand.until(lambda: len(tables.charts) >= count and pane(hand).view.chart is not None)
    return tables.charts[-1][0]


async def test_a_chart_of_the_rows_that_the_grid_shows(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.send("/data R1")
        await shown(hand, GridScreen)
        await hand.until(lambda: "1,000 rows" in about(hand))
        await hand.press("f")
        await hand.until(lambda: hand.app.screen.query_one(AskLine).display)
        hand.app.screen.query_one(Input).value = "> 10"
        await hand.press("enter")
        await hand.until(lambda: "id > 10" in about(hand))
        await hand.press("p")
        await shown(hand, ChartScreen)
        assert await drawn(hand, tables, 1) == ChartRequest("R1")
        assert tables.charts[0][1].filters == (RowFilter("id", ">", "10"),)
        assert "sum of amount by region" in seen(hand)
        assert "█" in seen(hand)
        await hand.press("escape")
        await shown(hand, GridScreen)


async def test_keys_change_the_chart_and_a_refusal_is_said(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.press("f4")
        await shown(hand, DataList)
        await hand.press("alt+p")
        await shown(hand, ChartScreen)
        await drawn(hand, tables, 1)
        await hand.press("k")
        assert (await drawn(hand, tables, 2)).kind == "line"
        await hand.press("x")
        assert (await drawn(hand, tables, 3)).x == "amount"
        await hand.press("l")
        assert (await drawn(hand, tables, 4)).log
        await hand.press("r")
        assert await drawn(hand, tables, 5) == ChartRequest("R1")
        pane(hand).wanted = ChartRequest("R1", "heatmap")
        tables.charts.clear()
        await hand.press("k")
        await hand.until(lambda: "A pie of 9 slices can't be read." in said(hand))
        assert "█" in seen(hand)


async def test_a_picture_is_saved_and_asks_before_it_overwrites(world: World, tables: Tables) -> None:
    tables.exports.there = {"x.svg"}
    async with running(world) as hand:
        await hand.press("f4")
        await shown(hand, DataList)
        await hand.press("alt+p")
        await shown(hand, ChartScreen)
        await drawn(hand, tables, 1)
        for text in ("x.svg", "y"):
            await hand.press(*(["e"] if text == "x.svg" else []))
            await hand.until(lambda: hand.app.screen.query_one(AskLine).display)
            if text == "x.svg":
                assert hand.app.screen.query_one(Input).value == "sum-of-amount-by-region.png"
            hand.app.screen.query_one(Input).value = text
            await hand.press("enter")
            await hand.until(lambda: bool(said(hand)) and "Drawing" not in said(hand))
        assert said(hand) == "Saved x.svg (2.5 KB)."
        assert [path for _, path, _ in tables.exports.files] == ["x.svg"]


async def test_the_inspector_shows_a_chart_that_fits_its_size(world: World, tables: Tables) -> None:
    row = ToolRow(call_id="1", name="chart", result=ToolResult("words", CHART, summary="bar"), state="ok")
    async with running(world, size=(100, 30)) as hand:
        await inspect(hand.chat, row)
        await shown(hand, InspectorScreen)
        await hand.until(lambda: bool(hand.app.screen.query(ChartView)) and "█" in seen(hand))
        before = seen(hand)
        await hand.pilot.resize_terminal(60, 20)
        await hand.until(lambda: seen(hand) != before)
        assert max(map(len, seen(hand).split("\n"))) <= 60
        await hand.press("k")
        assert (await drawn(hand, tables, 1)).kind == "line"


def test_a_small_drawing_stands_below_the_call() -> None:
    row = ToolRow(call_id="1", name="chart", result=ToolResult("words", CHART), state="ok")
    folded = [line.text.rstrip() for line in preview(row, PreviewSpace(60, Palette(), 5))]
    assert len(folded) == 10
    assert folded[-1].split() == ["north", "south"]
    plain = preview(row, PreviewSpace(60, Palette(glyphs=ASCII), 5))
    assert all(line.text.isascii() for line in plain)
    unfolded = preview(row, PreviewSpace(60, Palette(), 30, unfolded=True))
    assert unfolded[0].text.strip() == "sum of amount by region"


def test_columns_are_chosen_round_the_end() -> None:
    columns = (
        Column("day", "DATE"),
        Column("region", "VARCHAR"),
        Column("amount", "DOUBLE"),
        Column("units", "BIGINT"),
    )
    wish = changed(ChartRequest("R1"), CHART, columns, "y")
    assert (wish.request.x, wish.request.y) == ("region", ("units",))
    counted = changed(wish.request, CHART, columns, "y").request
    assert (counted.y, counted.aggregate) == ((), "count")
    assert changed(REQUEST, CHART, columns, "series").request.series == "day"
    assert changed(REQUEST, CHART, columns, "aggregate").request.aggregate == "mean"
