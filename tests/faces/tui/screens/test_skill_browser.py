"""The skill browser and the page of one skill, as people use them."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest
from textual.widgets import Input, Static

from ba_tui.core.ports.context import SkillLine
from ba_tui.faces.tui.screens.skills import SkillBrowser, SkillPage, page
from ba_tui.faces.tui.transcript.page import MarkdownPage
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import keys, lines
from tests.faces.tui.test_command_table import Skilled

BODY = "# Reading\n\nFirst **look**, then read.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee [the forms](forms.md).\n"


@pytest.fixture
def skilled(world: World) -> Skilled:
    held = [
        SkillLine("charts", "active", "bundled", "Draw charts", 1_200, files=("scripts/chart.py",)),
        SkillLine(
            "pdf",
            "on",
            "project",
            "Work with [PDF] files_of_any kind",
            900,
            warnings=("its instructions are long",),
            path="/srv/.ba/skills/pdf",
            tools=("shell(pdftotext:*)",),
            model="some/model",
        ),
        SkillLine("old", "broken", "user", trouble="SKILL.md:3: no YAML", path="/home/me/old"),
        SkillLine("sql", "off", "bundled", "Ask databases", 400),
        SkillLine("sql", "shadowed", "user", "Another", 300, path="/home/me/sql"),
    ]
    skilled = Skilled(held, dict.fromkeys(("charts", "pdf", "sql"), BODY))
    world.brain.inventory = changed(world.brain.inventory, skills=skilled)
    return skilled


def shown(hand: Hand) -> str:
    text = hand.app.screen.query_one(MarkdownPage)
    return "\n".join(text.render_line(y).text for y in range(text.size.height))


async def browse(hand: Hand) -> None:
    await hand.send("/skills")
    await hand.until(lambda: isinstance(hand.app.screen, SkillBrowser) and hand.app.screen.is_mounted)
    await hand.until(lambda: "charts" in lines(hand))


async def open_page(hand: Hand, name: str) -> None:
    await browse(hand)
    await hand.press(*name, "enter")
    await hand.until(lambda: isinstance(hand.app.screen, SkillPage) and hand.app.screen.is_mounted)
    await hand.until(lambda: "State" in shown(hand))


async def test_the_list_says_how_every_skill_stands_and_its_keys_act(world: World, skilled: Skilled) -> None:
    async with running(world, size=(100, 30)) as hand:
        await browse(hand)
        text = lines(hand)
        for words in ("● charts", "active", "1.2k tokens", "! its instructions are long", "! SKILL.md:3: no YAML"):
            assert words in text
        assert "shadowed" in text
        title = str(hand.app.screen.query_one(".title", Static).content)
        assert title == "5 skills, 1 active, 1 off, 1 can't be used"
        await hand.press(*"databases")
        assert "sql" in lines(hand)
        assert "charts" not in lines(hand)
        await hand.press("ctrl+s")
        await hand.until(lambda: keys(hand) == "sql is on for the model in this session.")
        assert skilled.done == [("switch", "sql", "True")]
        await hand.press("ctrl+e")
        await hand.until(lambda: "The skill sql is not active." in keys(hand))
        await hand.press("ctrl+u", *"old", "ctrl+s")
        assert "old can't be switched now. Broken" in keys(hand)
        await hand.press("ctrl+a")
        await hand.until(lambda: isinstance(hand.app.screen, SkillPage))
        await hand.until(lambda: "It can't be started. Broken" in keys(hand))
        await hand.until(lambda: "Broken: SKILL.md:3: no YAML" in shown(hand))
        await hand.press("v")
        await hand.until(lambda: keys(hand) == "It is not valid: 1 error.")
        await hand.press("s")
        assert "can't be switched now" in keys(hand)
        await hand.press("escape", "escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_a_page_reads_from_its_top_on_a_small_screen(world: World, skilled: Skilled) -> None:
    async with running(world, size=(40, 10)) as hand:
        await open_page(hand, "pdf")
        assert "State    On: you or the model" in shown(hand)
        await hand.until(lambda: hand.app.screen.query_one(MarkdownPage).records)
        await hand.press("end")
        await hand.until(lambda: "1 │ 2" in shown(hand).replace("  ", " "))
        await hand.press("g")
        await hand.until(lambda: "State" in shown(hand))
        seen = page(skilled.held[1], BODY)
        assert "\\[PDF\\] files\\_of\\_any" in seen
        assert "you are asked once, when it starts" in seen


async def test_arrows_scroll_a_page_and_a_link_is_copied(world: World, skilled: Skilled) -> None:
    async with running(world, size=(40, 10)) as hand:
        await open_page(hand, "pdf")
        await hand.until(lambda: hand.app.screen.query_one(MarkdownPage).records)
        first = shown(hand)
        await hand.press("down")
        await hand.until(lambda: shown(hand) != first)
        await hand.press("tab", "enter")
        await hand.until(lambda: keys(hand) == "Copied: forms.md")


async def test_it_is_started_with_parameters_ended_and_checked(world: World, skilled: Skilled) -> None:
    async with running(world, size=(100, 40)) as hand:
        await open_page(hand, "pdf")
        assert keys(hand) == "a start · s off · v check · Esc close"
        await hand.press("a", *"the report", "escape")
        assert not hand.app.screen.query_one(Input).display
        await hand.press("a", "ctrl+u", *"too much", "enter")
        await hand.until(lambda: keys(hand) == "That is too much. Put it into a file.")
        await hand.press("a", *"a.pdf", "enter")
        await hand.until(lambda: keys(hand) == "pdf applies from your next message.")
        assert skilled.done == [("activate", "pdf", "a.pdf")]
        assert "It applies from your next message." in shown(hand)
        await hand.press("v")
        await hand.until(lambda: keys(hand) == "It is valid, 1 warning.")
        assert "description is short" in shown(hand)
        await hand.press("e")
        await hand.until(lambda: keys(hand) == "pdf ends with your next message.")
        await hand.press("s")
        await hand.until(lambda: "pdf is off for the model" in keys(hand))
        await hand.press("q")
        await hand.until(lambda: isinstance(hand.app.screen, SkillBrowser))
        await hand.until(lambda: "2 off" in str(hand.app.screen.query_one(".title", Static).content))
