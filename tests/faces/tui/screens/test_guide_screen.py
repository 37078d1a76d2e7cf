"""The guide in the app: the list of pages, a page, its links, its search, and the completion of topics."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import OptionList

from ba_tui.faces.tui.screens.help import GuideList, GuideScreen, topics
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.guide import Guide
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import keys, lines, shown


def page(hand: Hand) -> MarkdownPage:
    return hand.app.screen.query_one(MarkdownPage)


def rows(hand: Hand) -> str:
    """The rows in sight."""
    view = page(hand)
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))


async def opened(hand: Hand, command: str) -> None:
    await hand.send(command)
    await read(hand)


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    """Two short pages and a long one."""
    texts = {
        "README": "# All\n\n## Start\n\n- [One](one.md): first\n- [Two](two.md): second\n- [Long](long.md): third\n",
        "one": "# One\n\nSee [Two](two.md), [Long](long.md) or [the web](https://example.org/x).\n",
        "two": "# Two\n\nBack to [One](one.md).\n",
        "long": "# Long\n\n" + "\n\n".join(f"Line {number}." for number in range(90)) + "\n\nTo [One](one.md).\n",
    }
    folder = tmp_path / "guide"
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return Guide(folder)


async def open_page(hand: Hand, guide: Guide, topic: str) -> None:
    hand.app.push_screen(GuideScreen(guide, guide.find(topic)))
    await read(hand)


async def read(hand: Hand) -> None:
    await shown(hand, GuideScreen)
    await hand.until(lambda: page(hand).records)
    await hand.pilot.pause()


async def test_the_command_lists_all_pages(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/guide")
        await shown(hand, GuideList)
        assert hand.app.screen.query_one(OptionList).option_count == len(Guide().pages)
        await hand.press(*"bubblewrap")
        assert lines(hand).lstrip().startswith("Run commands in a sandbox")
        await hand.press("enter")
        await shown(hand, GuideScreen)
        await hand.until(lambda: "bubblewrap on Linux" in rows(hand))
        await hand.press("escape")
        await shown(hand, GuideList)
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_links_lead_on_and_back(world: World, guide: Guide) -> None:
    async with running(world) as hand:
        await open_page(hand, guide, "one")
        await hand.press("enter")
        assert "See Two" in rows(hand)  # No link is chosen yet.
        await hand.press("tab", "tab", "shift+tab", "enter")
        await hand.until(lambda: "Back to One" in rows(hand))
        assert "Backspace" in keys(hand)
        await hand.press("backspace")
        await hand.until(lambda: "See Two" in rows(hand))
        assert "Backspace" not in keys(hand)
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_going_back_returns_to_the_rows_that_were_read(world: World, guide: Guide) -> None:
    async with running(world) as hand:
        await open_page(hand, guide, "long")
        await hand.press("tab")
        before = rows(hand)
        assert "Line 89." in before
        await hand.press("enter")
        await hand.until(lambda: "See Two" in rows(hand))
        await hand.press("backspace")
        await hand.until(lambda: rows(hand) == before)


async def test_the_chosen_link_stands_out_without_colour(world: World, guide: Guide) -> None:
    async with running(world) as hand:
        await open_page(hand, guide, "one")
        await hand.press("tab", "tab")
        marked = [
            segment.text
            for y in range(page(hand).size.height)
            for segment in page(hand).render_line(y)
            if segment.style and segment.style.reverse and segment.text.strip()
        ]
        assert "".join(marked) == "Long"


async def test_a_link_to_the_web_is_copied(world: World, guide: Guide) -> None:
    async with running(world) as hand:
        await open_page(hand, guide, "one")
        await hand.press("shift+tab", "enter")
        await hand.until(lambda: "Copied: https://example.org/x" in keys(hand))


async def test_a_click_follows_a_link(world: World, guide: Guide) -> None:
    async with running(world) as hand:
        await open_page(hand, guide, "one")
        y = next(y for y, row in enumerate(rows(hand).splitlines()) if "See Two" in row)
        x = rows(hand).splitlines()[y].index("Two")
        await hand.pilot.click(MarkdownPage, offset=(x + 1, y))
        await hand.until(lambda: "Back to One" in rows(hand))


async def test_a_page_is_searched_from_its_top(world: World) -> None:
    async with running(world) as hand:
        await opened(hand, "/guide settings")
        await hand.press("slash", *"compression")
        assert "1/" in rows(hand)
        first = rows(hand)
        await hand.press("enter")
        assert "2/" in rows(hand)
        await hand.press("up")
        assert rows(hand) == first
        await hand.press("escape")
        assert isinstance(hand.app.screen, GuideScreen)
        assert "Find:" not in rows(hand)


async def test_arrows_scroll_the_page(world: World) -> None:
    async with running(world) as hand:
        await opened(hand, "/guide settings")
        top = rows(hand).splitlines()
        await hand.press("down")
        assert rows(hand).splitlines()[0] == top[1]
        await hand.press("up")
        assert rows(hand).splitlines() == top


async def test_a_wrong_topic_names_the_nearest(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/guide sandboks")
        await hand.until(lambda: "Did you mean /guide sandbox?" in str(hand.chat.notices.kept))


@pytest.mark.parametrize(("typed", "first"), [("/guide san", "sandbox"), ("/guide ", topics()[0][0])])
async def test_topics_are_completed(world: World, typed: str, first: str) -> None:
    async with running(world) as hand:
        await hand.type(typed)
        assert hand.chat.composer.popup.choice is not None
        assert hand.chat.composer.popup.choice.insert == first
        await hand.press("tab")
        assert hand.text == f"{typed[: typed.index(' ')]} {first}"


async def test_enter_takes_a_topic_that_was_begun_and_sends_it(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/guide san")
        await shown(hand, GuideScreen)
        await hand.until(lambda: "Run commands in a sandbox" in rows(hand))


async def test_enter_behind_the_bare_name_opens_the_list(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/guide ")
        await shown(hand, GuideList)


async def test_every_page_can_be_shown_and_its_links_followed(world: World) -> None:
    guide = Guide()
    async with running(world) as hand:
        await opened(hand, "/guide install")
        for each in guide.pages:
            page(hand).read(each.text)
            addresses = {link.address for link in page(hand).links()}
            assert {address for address in addresses if "://" not in address and guide.linked(address) is None} == set()
            assert any(guide.linked(address) for address in addresses), each.topic
