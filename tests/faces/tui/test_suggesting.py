"""A session that suggests what to say next."""

from __future__ import annotations

import asyncio

from ba_tui.core.start import Start
from ba_tui.faces.tui.transcript.records import Prompt
from ba_tui.faces.tui.widgets.prompt import PLACEHOLDER
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

START = Start("hello", suggestions={"Welcome.": "tell me more", "More.": "/help", "Help.": ""}, kept=False)


def prompts(hand: Hand) -> list[str]:
    return [record.text for record in hand.chat.transcript.records if isinstance(record, Prompt)]


def offered(hand: Hand) -> str:
    return str(hand.chat.composer.prompt.placeholder)


async def test_enter_on_the_empty_input_sends_what_is_suggested(world: World) -> None:
    world.script.turns = [["Welcome."], ["More."], ["The end."]]
    async with running(world, START) as hand:
        await hand.until(lambda: offered(hand) == "Enter sends: tell me more")
        await hand.press("enter")
        await hand.until(lambda: offered(hand) == "Enter sends: /help")
        assert prompts(hand) == ["hello", "tell me more"]
        await hand.press("enter")
        await hand.until(lambda: hand.app.screen is not hand.chat)
        await hand.press("escape")
        assert offered(hand) == "Enter sends: /help", "a command may be left without its work"
        await hand.send("something else")
        await hand.until(lambda: prompts(hand)[-1] == "something else")
        await hand.idle()
        assert offered(hand) == PLACEHOLDER


async def test_a_turn_that_was_stopped_is_followed_by_the_way_on(world: World) -> None:
    world.script.turns = [["Wel", asyncio.Event()], ["Welcome."]]
    async with running(world, START) as hand:
        await hand.until(lambda: "Wel" in hand.said())
        assert offered(hand) == PLACEHOLDER
        await hand.press("escape")
        await hand.until(lambda: offered(hand) == "Enter sends: go on")
        assert "Press Enter to go on with the demo." in hand.said()
        await hand.press("enter")
        await hand.until(lambda: offered(hand) == "Enter sends: tell me more")
        assert prompts(hand) == ["hello", "go on"]


async def test_without_suggestions_enter_on_the_empty_input_sends_nothing(world: World) -> None:
    async with running(world, Start("hello")) as hand:
        await hand.until(lambda: "Done." in hand.said())
        await hand.idle()
        await hand.press("enter")
        assert prompts(hand) == ["hello"]
        assert offered(hand) == PLACEHOLDER


async def test_a_session_that_is_not_kept_offers_no_way_back_and_takes_no_key(world: World) -> None:
    async with running(world, START) as hand:
        await hand.idle()
        assert hand.chat.resume_hint() == ""
        await hand.send("/setup")
        await hand.until(lambda: any("saves no settings" in text for text in hand.said()))
