"""What a person sees of traps: a line above the grid, the list with proofs, the data screen and the tool row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Static

from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import TrapFinding
from ba_tui.faces.tui.grid.pane import GridPane, GridScreen
from ba_tui.faces.tui.grid.traps import TrapList, warning_line
from ba_tui.features.data.tui import DataList
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.grid.tables import Tables
from tests.faces.tui.sheets import lines, shown

TOTAL = TrapFinding(
    "total_rows", "sales", "sales.region has totals among the rows.", "FROM sales WHERE region = 'Total'"
)
GAPS = TrapFinding("time_gaps", "sales", "sales.month lacks 2 months.", "SELECT 1")


@pytest.fixture
def tables(world: World) -> Tables:
    made = Tables(traps=(TOTAL, GAPS))
    world.brain.inventory = Inventory(features={Datasets: made})
    return made


def line(hand: Hand) -> str:
    found = hand.app.screen.query(GridPane)
    return str(found.first().query_one(".traps", Static).content) if found else ""


async def listed(hand: Hand) -> None:
    await hand.send("/data sales")
    await shown(hand, GridScreen)
    await hand.until(lambda: bool(line(hand)))
    await hand.press("w")
    await shown(hand, TrapList)


def test_the_line_counts_what_is_not_muted() -> None:
    muted = replace(TOTAL, muted=True)
    assert warning_line([TOTAL, GAPS], "w") == f"! 2 warnings · w lists · {TOTAL.message}"
    assert warning_line([muted, GAPS], "w") == f"! 1 warning · w lists · {GAPS.message}"
    assert warning_line([muted], "w") == "1 muted warning · w lists"
    assert warning_line([], "w") == ""


async def test_the_proof_of_a_warning_opens_as_a_grid(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await listed(hand)
        await hand.until(lambda: TOTAL.proof in str(hand.app.screen.query_one(".detail", Static).content))
        await hand.press("enter")
        await shown(hand, GridScreen)
        assert tables.queries == [TOTAL.proof]


async def test_a_warning_is_muted_and_told_again(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await listed(hand)
        await hand.press("m")
        await hand.until(lambda: tables.traps[0].muted)
        assert "m unmutes it" in str(hand.app.screen.query_one(".keys", Static).content)
        await hand.press("escape")
        await hand.until(lambda: line(hand) == f"! 1 warning · w lists · {GAPS.message}")
        await hand.press("w")
        await shown(hand, TrapList)
        await hand.press("down", "m")
        await hand.until(lambda: not any(each.muted for each in tables.traps))


async def test_the_data_screen_counts_warnings(world: World, tables: Tables) -> None:
    async with running(world) as hand:
        await hand.send("/data")
        await shown(hand, DataList)
        await hand.until(lambda: "! 2 warnings" in lines(hand))


async def test_a_grid_without_warnings_says_so(world: World, tables: Tables) -> None:
    tables.traps = ()
    async with running(world) as hand:
        await hand.send("/data sales")
        await shown(hand, GridScreen)
        await hand.press("w")
        await hand.until(lambda: "No problems were found" in str(hand.app.screen.query_one(".said", Static).content))
        assert not hand.app.screen.query_one(".traps").display
