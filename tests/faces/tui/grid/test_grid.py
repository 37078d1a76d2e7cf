"""The data screen and the grid, as people use them: what stands where after which keys."""

from __future__ import annotations

import asyncio

import pytest
from textual.widgets import Input, Static

from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, RowFilter, RowOrder
from ba_tui.core.results import CommandText, Table, ToolResult
from ba_tui.faces.tui.acts.view import inspect
from ba_tui.faces.tui.displays.table import TableView
from ba_tui.faces.tui.grid.data_pane import AskLine
from ba_tui.faces.tui.grid.feed import output_format
from ba_tui.faces.tui.grid.pane import CellScreen, GridPane, GridScreen
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.features.data.tui import DataList
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.grid.tables import Tables, sales
from tests.faces.tui.sheets import keys, lines, shown


@pytest.fixture
def tables(world: World) -> Tables:
    made = Tables()
    world.brain.inventory = Inventory(features={Datasets: made})
    return made


def pane(hand: Hand) -> GridPane:
    return hand.app.screen.query_one(GridPane)


def seen(hand: Hand) -> list[str]:
    """The lines of the grid, its head first."""
    view = pane(hand).view
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def part(hand: Hand, name: str) -> str:
    return str(hand.app.screen.query_one(f".{name}", Static).content)


def whole(hand: Hand) -> str:
    """The lines of an opened cell."""
    view = hand.app.screen.query_one(RowView)
    return "\n".join(view.render_line(y).text for y in range(view.size.height))


async def opened(hand: Hand) -> None:
    await hand.send("/data R1")
    await shown(hand, GridScreen)
    await settled(hand)


async def settled(hand: Hand) -> None:
    """The grid has the rows that it wants."""
    view = pane(hand).view
    await hand.until(lambda: view.feed.ready and not view.busy and not view._reading)


async def answer(hand: Hand, key: str, text: str) -> None:
    """Press the key of a question, and type its answer."""
    await hand.press(key)
    await hand.until(lambda: hand.app.screen.query_one(AskLine).display)
    hand.app.screen.query_one(Input).value = text
    await hand.press("enter")
    await settled(hand)


async def test_the_data_screen_lists_what_there_is(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.press("f4")
        await shown(hand, DataList)
        await hand.until(lambda: "sales.csv · 2 bad rows skipped" in lines(hand))
        assert "R1  SELECT * FROM sales" in lines(hand)
        assert "1,000 rows  3 columns" in lines(hand)
        assert "id, region, amount" in lines(hand)
        assert "Enter open as a grid" in keys(hand)
        await hand.press("enter")
        await shown(hand, GridScreen)
        await settled(hand)
        assert seen(hand)[:2] == ["    id  region  amount", "  1  1  north      0.0"]
        await hand.press("escape", "escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_a_source_lists_its_tables_when_chosen_and_shows_rows_of_one(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.send("/data")
        await shown(hand, DataList)
        await hand.press(*"warehouse")
        await hand.until(lambda: "Enter lists its tables" in lines(hand))
        await hand.press("enter")
        await hand.until(lambda: "@warehouse.orders" in lines(hand))
        await hand.press("enter")
        await hand.until(lambda: "It can't be reached: refused" in keys(hand))
        await hand.press("down", "enter")
        await shown(hand, GridScreen)
        await hand.press("escape", "escape")
        await hand.until(lambda: hand.app.screen is hand.chat)
        await hand.send("/unmask clients.mail")
        await hand.until(lambda: tables.unmasked == ["clients.mail"])


async def test_a_file_is_read_and_shown(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.send("/data @sales.csv")
        await shown(hand, GridScreen)
        await settled(hand)
        assert part(hand, "about") == "sales · 1,000 rows · 3 columns"
        await hand.press("q")
        await hand.send("/data missing.csv")
        await hand.until(lambda: "No file matches missing.csv." in hand.said())


async def test_pages_are_fetched_where_the_cursor_goes(world: World, tables: Tables) -> None:
    tables.rows = sales(5_000)
    async with running(world) as hand:
        await opened(hand)
        fetched = {offset for _, offset, limit in tables.asked if limit}
        assert fetched == {0, 1_000}, "what is seen, and the page below"
        await hand.press("G")
        await settled(hand)
        assert seen(hand)[-1].split() == ["5000", "5000", "south", "NULL"]
        assert part(hand, "cell").startswith("A5000  id BIGINT: 5000")
        assert 2_000 not in {offset for _, offset, _ in tables.asked}, "what is passed by is not fetched"
        await answer(hand, "colon", "500")
        assert part(hand, "cell").startswith("A500  id")


async def test_sort_filter_and_search(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await opened(hand)
        await hand.press("s", "s")
        await settled(hand)
        assert seen(hand)[:2] == ["     id ↓  region  amount", "1000 1000  north     NULL"]
        await hand.press("right")
        await answer(hand, "f", "= south")
        await hand.press("right")
        await answer(hand, "f", "> 30")
        wanted = Arrangement(
            (RowOrder("id", True),), (RowFilter("region", "=", "south"), RowFilter("amount", ">", "30"))
        )
        assert pane(hand).view.feed.arrangement == wanted
        assert part(hand, "about").startswith(
            "R1 · 294 rows · 3 columns · region = south · amount > 30 · sorted by id ↓"
        )
        await answer(hand, "slash", "77")
        assert {row.split()[2] for row in seen(hand)[1:] if row} == {"south"}
        await answer(hand, "f", "< what")
        assert "The filter does not fit" in part(hand, "said")
        await hand.press("x")
        await settled(hand)
        assert part(hand, "about") == "R1 · 1,000 rows · 3 columns"


async def test_a_slow_sort_is_cancelled(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await opened(hand)
        tables.gate = asyncio.Event()
        await hand.press("s")
        await hand.until(lambda: "sorting … Esc cancels" in part(hand, "about"))
        await hand.press("down")
        assert part(hand, "cell").startswith("A2"), "the rows stay at hand meanwhile"
        await hand.press("escape")
        await hand.until(lambda: not pane(hand).view.busy)
        assert part(hand, "said") == "Cancelled. The rows are as before."
        assert pane(hand).view.feed.arrangement == Arrangement()
        assert part(hand, "about") == "R1 · 1,000 rows · 3 columns"


async def test_statistics_follow_the_cursor(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await opened(hand)
        await hand.press("i", "right")
        await hand.until(
            lambda: part(hand, "statistics").startswith("region VARCHAR · 1,000 rows · 0 NULL · 3 distinct")
        )
        assert "most frequent: north ×334" in part(hand, "statistics")
        await hand.press("right")
        await hand.until(lambda: "100 NULL (10.0%)" in part(hand, "statistics"))


async def test_columns_are_frozen_and_hidden(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await opened(hand)
        await hand.press("z", "right", "minus")
        assert seen(hand)[0].split() == ["id│", "amount"]
        assert part(hand, "about").endswith("1 column hidden")
        assert pane(hand).view.cursor == (0, 2)
        await hand.press("equals_sign", "left", "left", "z")
        assert seen(hand)[0].split() == ["id", "region", "amount"]


async def test_a_cell_is_opened_in_full_and_its_column_widened(world: World, tables: Tables) -> None:
    tables.rows = [(1, "first line\nsecond line " + "x" * 300, None), (2, '{"a": [1, 2]}', 1.5)]
    async with running(world) as hand:
        await opened(hand)
        await hand.press("right", "less_than_sign")
        assert "first lin" in seen(hand)[1]
        narrow = seen(hand)[0].index("amount")
        await hand.press("greater_than_sign", "greater_than_sign")
        assert seen(hand)[0].index("amount") == narrow + 8
        await hand.press("enter")
        await shown(hand, CellScreen)
        await hand.until(lambda: "second line" in whole(hand))
        assert part(hand, "title") == f"B1  region VARCHAR · {len(str(tables.rows[0][1]))} characters"
        await hand.press("y")
        await hand.until(lambda: hand.app.clipboard == tables.rows[0][1])
        await hand.press("escape", "down", "enter")
        await hand.until(lambda: '"a": [' in whole(hand))
        await hand.press("q")
        await shown(hand, GridScreen)


async def test_a_selection_is_copied(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await opened(hand)
        await hand.press("y")
        await hand.until(lambda: hand.app.clipboard == "1")
        await hand.press("down", "v", "down", "right")
        assert part(hand, "cell").endswith("selected: 2 rows × 2 columns")
        await hand.press("y")
        await hand.until(lambda: hand.app.clipboard == "id\tregion\n2\tsouth\n3\teast")
        await hand.press("c")
        await hand.until(lambda: hand.app.clipboard == "id,region\n2,south\n3,east")
        await hand.press("m")
        await hand.until(lambda: hand.app.clipboard == "| id | region |\n| ---: | --- |\n| 2 | south |\n| 3 | east |")
        await hand.press("escape")
        assert "selected" not in part(hand, "cell")


async def test_a_selection_is_mentioned_by_its_place_in_the_table(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.type("Why?")
        hand.chat.call_command("data", "R1")
        await shown(hand, GridScreen)
        await settled(hand)
        await hand.press("down", "shift+down", "shift+right", "at")
        await hand.until(lambda: hand.text == "Why? @R1[A2:B3] ")
        assert hand.app.screen is hand.chat
        hand.chat.call_command("data", "R1")
        await shown(hand, GridScreen)
        await settled(hand)
        await hand.press("right", "s", "s", "shift+down", "at")
        await hand.until(lambda: hand.text == "Why? @R1[A2:B3] @R1[B2] @R1[B5] ")
        hand.chat.call_command("data", "R1")
        await shown(hand, GridScreen)
        await settled(hand)
        await hand.press("right")
        await answer(hand, "f", "= south")
        await hand.press("a", "at")
        await hand.until(lambda: "separate places of R1" in part(hand, "said"))


async def test_an_export_asks_before_it_overwrites(world: World, tables: Tables) -> None:
    tables.exports.there = {"R1.csv"}
    async with running(world) as hand:
        await opened(hand)
        await hand.press("e", "enter")
        await hand.until(lambda: hand.app.screen.query_one(AskLine).purpose == "confirm")
        assert part(hand, "said") == "R1.csv exists already."
        await hand.press("enter")
        assert part(hand, "said") == "Nothing was written."
        await hand.press("e", "enter")
        await hand.until(lambda: hand.app.screen.query_one(AskLine).purpose == "confirm")
        await hand.press("y", "enter")
        await hand.until(lambda: part(hand, "said") == "Wrote 1,000 rows to R1.csv (2.5 KB).")
        assert tables.exports.files == [("R1", "R1.csv", Arrangement())]


async def test_an_empty_table_and_a_session_without_data(world: World, tables: Tables) -> None:
    tables.rows = []
    async with running(world) as hand:
        await opened(hand)
        assert seen(hand)[:2] == ["    id  region  amount", "No rows."]
        await hand.press("G", "y", "at", "i")
        await hand.press("q")
        world.brain.inventory = Inventory()
    async with running(world) as hand:
        await hand.press("f4")
        await hand.until(lambda: "This session has no data engine." in hand.said())


async def test_a_result_opens_from_its_call(world: World, tables: Tables) -> None:
    display = Table(("id",), ((1,),), handle="R1", total=1_000)
    async with running(world) as hand:
        call = ToolRow("c1", "query_data", "FROM sales", "ok", {"sql": "FROM sales"}, result=ToolResult("", display))
        await inspect(hand.chat, call)
        await hand.until(lambda: bool(hand.app.screen.query(GridPane)))
        await settled(hand)
        assert part(hand, "about") == "R1 · 1,000 rows · 3 columns"
        await hand.until(lambda: pane(hand).view.has_focus)
        await hand.press("s", "alt+v")
        await hand.until(lambda: bool(hand.app.screen.query(TableView)))


async def test_output_that_is_a_table_becomes_one(world: World, tables: Tables) -> None:
    printed = CommandText("report", output="id,region\n1,north\n2,south\n", exit_code=0)
    async with running(world) as hand:
        await inspect(hand.chat, ToolRow("c1", "shell", "report", "ok", result=ToolResult("", printed)))
        await shown(hand, InspectorScreen)
        await hand.until(lambda: bool(hand.app.screen.query(RowView)))
        await hand.until(lambda: "v grid" in part(hand, "keys"))
        assert tables.outputs == [], "nothing is read before somebody wants it"
        await hand.press("v")
        await hand.until(lambda: bool(hand.app.screen.query(GridPane)))
        await settled(hand)
        assert "id,region\n1,north" in tables.outputs[0]


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("a,b\n1,2\n3,4\n", "csv"),
        ('a;b\n"x;y";2\n', "csv"),
        ('{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("", None),
        ("a,b\n", None),
        ("one line\nand another\n", None),
        ("Yes, it is.\nNo, it is not, really.\n", None),
        ('{\n "a": 1\n}\n', None),
        ('{"a": ' + "[" * 3000 + "]" * 3000 + '}\n{"a": 1}\n', None),
        ("a,a\n1,2\n", None),
        ('a,b\n"1,2\n', None),
    ],
)
def test_which_output_is_a_table(text: str, format: str | None) -> None:
    assert output_format(text) == format
