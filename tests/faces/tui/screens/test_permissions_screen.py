"""The rules on the screen: grouped and found, given, changed and taken back by keys alone; and the mode above them."""

from __future__ import annotations

from textual.widgets import OptionList, Static

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.faces.tui.screens.permissions import PermissionsScreen, RuleForm
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import keys


def listed(hand: Hand) -> list[str]:
    options = hand.app.screen.query_one(OptionList)
    return [str(options.get_option_at_index(index).prompt).strip() for index in range(options.option_count)]


def detail(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".detail", Static).content)


async def shown(hand: Hand) -> None:
    await hand.send("/permissions")
    await hand.until(lambda: isinstance(hand.app.screen, PermissionsScreen) and len(listed(hand)) > 2)


async def settled(hand: Hand) -> None:
    await hand.pilot.pause()
    await hand.app.workers.wait_for_complete([w for w in hand.app.workers if w.group == "rules"])
    await hand.pilot.pause()


async def test_rules_are_given_changed_and_taken_back(world: World) -> None:
    rules = world.brain.permissions
    async with running(world, size=(40, 10)) as hand:
        await shown(hand)
        assert listed(hand)[0].startswith("Mode  default")
        assert listed(hand)[1].startswith("Deny")
        assert listed(hand)[2].startswith("shell(rm *)")

        await hand.press("a")
        assert isinstance(hand.app.screen, RuleForm)
        await hand.press(*"web_fetch", "down", "right", "down", "right", "enter")
        await settled(hand)
        assert rules.held[0] == RuleLine("web_fetch", "allow", "project config", 0, "project")
        assert keys(hand) == "web_fetch: allow, for this project."

        await hand.press("down")
        assert "shell(rm *): deny" in detail(hand)
        assert "user config.yaml" in detail(hand)
        await hand.press("enter", "tab", "right", "enter")
        await settled(hand)
        assert RuleLine("shell(rm *)", "ask", "user config", 0, "user") in rules.held
        assert not [line for line in rules.held if line.verdict == "deny"]
        assert keys(hand) == "shell(rm *): ask instead of shell(rm *): deny."

        await hand.press("home", "down", "d")
        assert "Press d again to remove" in keys(hand)
        before = list(rules.held)
        await hand.press("down", "up", "d")
        assert rules.held == before, "another row in between is another mind"
        await hand.press("d")
        await settled(hand)
        assert len(rules.held) == len(before) - 1


async def test_what_is_not_the_persons_own_says_so(world: World) -> None:
    rules = world.brain.permissions
    async with running(world) as hand:
        await shown(hand)
        await hand.press("end", "d", "d")
        assert "read_file can't be removed: it is built in." in keys(hand)
        await hand.press("pagedown")
        assert "read_file" in detail(hand), "a page stops at the end"
        await hand.press("pageup", "pageup", "pageup")
        assert "Asks" in detail(hand) or "default" in listed(hand)[0]
        await hand.press("end")
        await hand.press("enter", "tab", "left", "left", "enter")
        await settled(hand)
        assert "The rule of built in stays" in keys(hand)
        assert {line.verdict for line in rules.held if line.rule == "read_file"} == {"allow", "deny"}
        await hand.press("a", *"bad", "enter")
        await settled(hand)
        assert "bad is no rule. Name a tool." in keys(hand)
        await hand.press("a", *"((", "enter")
        assert isinstance(hand.app.screen, RuleForm), "what is no rule at all is said in the form"
        await hand.press("escape", "escape")
        assert hand.app.screen is hand.chat


async def test_letters_find_and_the_mode_goes_round(world: World) -> None:
    async with running(world) as hand:
        await shown(hand)
        await hand.press("m", "enter")
        assert world.brain.permissions.mode == "plan"
        assert "plan" in hand.status
        assert listed(hand)[0].startswith("Mode  plan")
        await hand.press(*"read")
        assert [row.split("  ")[0] for row in listed(hand)[1:]] == ["read_file"]
        await hand.press("enter", "a")
        assert isinstance(hand.app.screen, RuleForm), "the search is over, letters are keys again"
        await hand.press("escape", "escape")
        assert len(listed(hand)) == 5
        await hand.press("escape")
        assert hand.app.screen is hand.chat
