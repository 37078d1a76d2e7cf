"""The agent browser and the page of one agent, as people use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

import pytest
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.agents import AgentLine
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.features.agents.tui.screen import AgentBrowser, AgentPage, page
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import keys, lines

PROMPT = "# Review\n\nRead **all** of it. See [the rules](rules.md).\n"
HELD = (
    AgentLine(
        "reviewer", "partly", "project", "/srv/.claude/agents/reviewer.md", "Reviews [code] changes", "x/sonnet",
        ("read_file", "grep"), (), "it only reads", 40, "red", ("hooks: its own hooks do not run",), ("vibe",),
        ("name is missing; the file's name is used",),
    ),
    AgentLine("general", "ready", "bundled", "/ba/general.md", "Does it all", without=("shell",), max_loops=100),
    AgentLine("odd", "broken", "user", "/home/me/odd.md", trouble="line 1: the front matter is not closed"),
)  # fmt: skip


@dataclass
class Described:
    held: Sequence[AgentLine] = HELD

    def lines(self) -> Sequence[AgentLine]:
        return self.held

    def search(self, words: str) -> Sequence[AgentLine]:
        return ()

    def prompt(self, path: str) -> str:
        if path == "/ba/general.md":
            raise UsageError(f"{path} is gone.")
        return PROMPT


@pytest.fixture
def described(world: World) -> Described:
    agents = Described()
    world.brain.inventory = changed(world.brain.inventory, agents=agents)
    return agents


def shown(hand: Hand) -> str:
    text = hand.app.screen.query_one(MarkdownPage)
    return "\n".join(text.render_line(y).text for y in range(text.size.height))


async def browse(hand: Hand) -> None:
    await hand.send("/agents files")
    await hand.until(lambda: isinstance(hand.app.screen, AgentBrowser) and hand.app.screen.is_mounted)


async def test_the_list_says_what_is_made_of_each_file(world: World, described: Described) -> None:
    async with running(world, size=(100, 44)) as hand:
        await browse(hand)
        await hand.until(lambda: "reviewer" in lines(hand))
        for words in ("partly", "project", "2 tools", "sonnet", "all tools", "! line 1: the front matter"):
            assert words in lines(hand)
        assert str(hand.app.screen.query_one(".title", Static).content) == "3 agents, 1 can't be used"
        assert keys(hand) == "Enter open · Esc close · To start one, ask for it by its name."
        await hand.press(*"sonnet")
        assert "general" not in lines(hand)
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, AgentPage) and hand.app.screen.is_mounted)
        await hand.until(lambda: "Read all of it." in shown(hand))
        for words in (
            "State    Partly",
            "Tools    read_file, grep",
            "Limits   it only reads; 40 model",
            "Colour   red",
        ):
            assert words in shown(hand)
        assert "hooks: its own hooks do not run" in shown(hand)
        assert "Ignored fields: vibe" in shown(hand)
        await hand.press("tab", "enter")
        await hand.until(lambda: keys(hand) == "Copied: rules.md")
        await hand.press("q", "escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


@pytest.mark.parametrize(("name", "words"), [("odd", "Broken: line 1"), ("general", "/ba/general.md is gone.")])
async def test_a_page_says_why_there_is_no_prompt(world: World, described: Described, name: str, words: str) -> None:
    async with running(world, size=(100, 44)) as hand:
        await browse(hand)
        await hand.until(lambda: "reviewer" in lines(hand))
        await hand.press(*name, "enter")
        await hand.until(lambda: isinstance(hand.app.screen, AgentPage) and hand.app.screen.is_mounted)
        await hand.until(lambda: words in shown(hand))


def test_signs_of_a_file_stay_signs() -> None:
    assert "Reviews \\[code\\] changes" in page(HELD[0], "")
    assert "all but shell" in page(HELD[1], "")
