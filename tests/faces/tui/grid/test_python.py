"""Python's variables and files on the data screen, and the command /python."""

from __future__ import annotations

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets, PythonFile, PythonState, Variable
from ba_tui.faces.tui.grid.pane import GridScreen
from ba_tui.features.data.tui import DataList
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World
from tests.faces.tui.grid.tables import Tables
from tests.faces.tui.sheets import keys, lines, shown


class Python:
    """A Python session in memory."""

    def __init__(self) -> None:
        self.running = True

    async def state(self) -> PythonState:
        if not self.running:
            return PythonState()
        files = (PythonFile("figure-1.png", 12_000),)
        return PythonState(True, False, (Variable("df", "DataFrame", "3 × 2"), Variable("x", "int", "5")), files)

    async def keep(self, name: str) -> str:
        if name != "df":
            raise UsageError("ba.keep takes a DataFrame of pandas or polars, not int.")
        return "R1"

    async def reset(self) -> bool:
        ran, self.running = self.running, False
        return ran

    async def save(self, name: str, path: str = "") -> PythonFile:
        return PythonFile(path or name, 12_000)


async def test_python_is_on_the_data_screen(world: World) -> None:
    python = Python()
    world.brain.inventory = Inventory(features={Datasets: Tables(python=python)})
    async with running(world) as hand:
        await hand.send("/python")
        await shown(hand, DataList)
        await hand.until(lambda: "df  DataFrame" in lines(hand))
        assert "artifacts/figure-1.png" in lines(hand)
        await hand.press(*"figure", "enter")
        await hand.until(lambda: "/python save figure-1.png [PATH]" in keys(hand))
        await hand.press(*["backspace"] * 6, *"int", "enter")
        await hand.until(lambda: "takes a DataFrame" in keys(hand))
        await hand.press(*["backspace"] * 3, *"reset", "enter")
        await hand.until(lambda: "Python was reset" in keys(hand))
        assert not python.running
        python.running = True
        await hand.press("escape")
        await hand.send("/data")
        await shown(hand, DataList)
        await hand.press(*"dataframe", "enter")
        await shown(hand, GridScreen)
        await hand.press("escape", "escape")
        for words, said in (
            ("save figure-1.png plot.png", "Saved plot.png (12.0 KB)."),
            ("reset", "Python was reset: its variables are gone."),
            ("reset", "Python holds no variables."),
            ("run", "/python knows no 'run'"),
        ):
            await hand.send(f"/python {words}")
            await hand.until(lambda said=said: said in "\n".join(hand.said()))
