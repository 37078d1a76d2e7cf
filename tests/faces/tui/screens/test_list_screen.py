"""The one list of the app: its line of keys, messages, second key presses, groups, and reading of rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.screens.list_screen import RELOAD, ListContent, ListRow, ListScreen


class Fruits(ListScreen[str]):
    """Fruits by colour, which are eaten by pressing x twice."""

    FILTERED: ClassVar[bool] = False
    ENTER: ClassVar[str] = "peel"
    BINDINGS: ClassVar[list[BindingType]] = [RELOAD, Binding("x,delete", "eat", "eat"), Binding("z", "eat", show=False)]

    def __init__(self, fruits: dict[str, str]) -> None:
        super().__init__("Fruits")
        self.fruits = fruits
        self.trouble = ""

    def read(self) -> ListContent[str]:
        if self.trouble:
            raise UsageError(self.trouble)
        rows = [ListRow(name, (name,), value=name, group=colour) for name, colour in self.fruits.items()]
        return ListContent(rows, f"{len(rows)} fruits", empty="All eaten.")

    def action_eat(self) -> None:
        name = self.item
        if name and self.confirmed(name, f"Press x again to eat {name}"):
            self.perform(lambda: self._eat(name), f"{name} is eaten.")

    async def _eat(self, name: str) -> None:
        del self.fruits[name]


class Numbers(ListScreen[str]):
    MOST: ClassVar[int] = 50


@asynccontextmanager
async def opened(screen: ListScreen[str], width: int = 100) -> AsyncGenerator[Pilot[None]]:
    app = App[None]()
    async with app.run_test(size=(width, 30)) as pilot:
        await app.push_screen(screen)
        await until(pilot, lambda: screen.query_one(OptionList).option_count > 0 and screen.empty != screen.READING)
        yield pilot


async def until(pilot: Pilot[None], met: Callable[[], bool]) -> None:
    while not met():
        await pilot.pause(0.01)


def keys(screen: ListScreen[str]) -> str:
    return str(screen.query_one(".keys", Static).content)


def shown(screen: ListScreen[str]) -> list[str]:
    return [str(option.prompt).strip() for option in screen.query_one(OptionList).options]


FRUITS = {"cherry": "Red", "apple": "Red", "lemon": "Yellow"}


async def test_the_line_of_keys_is_made_from_the_bindings() -> None:
    screen = Fruits(dict(FRUITS))
    async with opened(screen):
        assert keys(screen) == "Enter peel · r refresh · x eat · Esc close"


async def test_a_narrow_line_of_keys_breaks_between_keys() -> None:
    screen = Fruits(dict(FRUITS))
    async with opened(screen, width=40):
        assert keys(screen) == "Enter peel · r refresh\nx eat · Esc close"


async def test_the_cursor_moves_over_headings_and_keeps_its_row_when_rows_are_read_again() -> None:
    screen = Fruits(dict(FRUITS))
    async with opened(screen) as pilot:
        assert shown(screen) == ["Red", "cherry", "apple", "Yellow", "lemon"]
        assert screen.highlighted == "cherry"
        await pilot.press("j", "down")
        assert screen.highlighted == "lemon"
        screen.fruits = {"lime": "Green", **screen.fruits}
        await pilot.press("r")
        await until(pilot, lambda: "lime" in shown(screen))
        assert screen.highlighted == "lemon"
        await pilot.press("down")
        assert screen.highlighted == "lime", "a single step goes around the ends"


async def test_a_second_press_at_the_same_row_confirms() -> None:
    screen = Fruits(dict(FRUITS))
    async with opened(screen) as pilot:
        await pilot.press("x")
        assert keys(screen) == "Press x again to eat cherry"
        await pilot.press("down")
        assert keys(screen).startswith("Enter peel"), "the question ends when the cursor moves"
        await pilot.press("up", "x")
        assert screen.fruits == FRUITS
        await pilot.press("x")
        await until(pilot, lambda: keys(screen) == "cherry is eaten.")
        assert shown(screen) == ["Red", "apple", "Yellow", "lemon"]
        assert str(screen.query_one(".title", Static).content) == "2 fruits"


async def test_an_error_is_shown_in_place_of_the_keys() -> None:
    screen = Fruits(dict(FRUITS))
    async with opened(screen) as pilot:
        screen.trouble = "The basket is locked."
        await pilot.press("r")
        await until(pilot, lambda: keys(screen) == "The basket is locked.")
        assert "cherry" in shown(screen)


async def test_an_empty_list_says_why() -> None:
    screen = Fruits({})
    async with opened(screen) as pilot:
        await until(pilot, lambda: shown(screen) == ["All eaten."])
        await pilot.press("enter", "x")
        assert screen.is_current


async def test_of_many_rows_the_first_are_shown_and_all_are_found() -> None:
    screen = Numbers("Numbers", [ListRow(str(number), (f"number {number}",)) for number in range(1_000)])
    async with opened(screen) as pilot:
        await until(pilot, lambda: len(shown(screen)) == 50)
        assert keys(screen) == "50 of 1,000 shown: type to find others · Enter choose · Esc close"
        await pilot.press(*"999")
        await until(pilot, lambda: shown(screen) == ["number 999"])
        assert keys(screen) == "Enter choose · Esc close"
