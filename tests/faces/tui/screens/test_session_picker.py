"""The session picker beyond titles: found by what was said, in other orders, of thousands as many as can be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import OptionList, Static

from ba_tui.core.start import Start
from ba_tui.faces.tui.screens.sessions import SHOWN, SessionPicker
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.test_commands import lines, shown, told

PICK = Start(resume="pick")


def heading(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".title", Static).content)


def first(hand: Hand) -> str:
    return str(hand.app.screen.query_one(OptionList).get_option_at_index(0).prompt)


async def test_what_was_said_is_found_and_its_place_shown(world: World) -> None:
    world.shelf.put("aaaa1111", "Fix the totals", told("the [bold]lighthouse"))
    world.shelf.put("bbbb2222", "Write the report", told("a windmill"))
    async with running(world, PICK, size=(100, 30)) as hand:
        await shown(hand, SessionPicker)
        await hand.until(lambda: "Write the report" in lines(hand))
        await hand.press(*"lighthouse")
        await hand.until(lambda: "About the [bold]lighthouse." in lines(hand))
        assert "Fix the totals" in lines(hand)
        assert "Write the report" not in lines(hand)
        await hand.press(*["backspace"] * 10, *"windmill")
        await hand.until(lambda: "Write the report" in lines(hand))
        assert "Fix the totals" not in lines(hand)
        await hand.press("enter")
        await hand.until(lambda: "About a windmill." in hand.said())


async def test_the_order_can_be_chosen(world: World) -> None:
    for id, title, cost, turns in (("aaaa1111", "Zebra", 0.5, 9), ("bbbb2222", "Ape", 2.0, 1)):
        world.shelf.infos[id] = replace(world.shelf.put(id, title, told(title)), cost=cost, turns=turns)
    async with running(world, PICK, size=(100, 30)) as hand:
        await shown(hand, SessionPicker)
        await hand.until(lambda: "Ape" in first(hand))
        seen = [first(hand).split()[0]]
        for _ in range(4):
            await hand.press("ctrl+o")
            seen.append(first(hand).split()[0])
        assert seen == ["Ape", "Ape", "Zebra", "Ape", "Ape"]
        assert heading(hand) == "Sessions of this folder"
        await hand.press("ctrl+o")
        assert heading(hand) == "Sessions of this folder · by title"


async def test_of_all_folders_each_is_named(world: World) -> None:
    world.shelf.put("aaaa1111", "Here", told("x"), cwd=world.shelf.cwd)
    world.shelf.put("bbbb2222", "There", told("y"), cwd=Path("/srv/elsewhere"))
    async with running(world, PICK, size=(100, 30)) as hand:
        await shown(hand, SessionPicker)
        await hand.press("ctrl+a")
        await hand.until(lambda: "There" in lines(hand))
        keys = str(hand.app.screen.query_one(".keys", Static).content).splitlines()
        assert [line[:6] for line in keys] == ["Enter ", "Ctrl+E"], "all the keys, on two lines"
        assert "elsewhere" in lines(hand)
        assert "open here" not in lines(hand)
        assert heading(hand) == "Sessions of all folders"


@pytest.mark.parametrize("count", [2_000])
async def test_of_thousands_the_newest_are_shown_and_all_are_found(world: World, count: int) -> None:
    for number in range(count):
        world.shelf.put(f"{number:08x}", f"Number {number}", ())
    async with running(world, PICK, size=(100, 30)) as hand:
        await shown(hand, SessionPicker)
        await hand.until(lambda: f"{SHOWN} of {count:,}" in heading(hand))
        assert hand.app.screen.query_one(OptionList).option_count == SHOWN
        await hand.press(*"1234")
        await hand.until(lambda: "Number 1234" in first(hand))
        assert hand.app.screen.query_one(OptionList).option_count == 1


async def test_what_is_open_here_is_told_from_what_is_open_elsewhere(world: World) -> None:
    world.shelf.put("aaaa1111", "Mine", told("x"))
    world.shelf.infos["bbbb2222"] = replace(world.shelf.put("bbbb2222", "Theirs", told("y")), locked_by="pid 7")
    async with running(world, Start(resume="aaaa1111"), size=(100, 30)) as hand:
        world.shelf.infos["aaaa1111"] = replace(world.shelf.infos["aaaa1111"], locked_by="pid 1")
        await hand.send("/resume")
        await shown(hand, SessionPicker)
        await hand.until(lambda: "open in pid 7: opens read-only" in lines(hand))
        assert "open here" in lines(hand)
        assert "pid 1" not in lines(hand)
