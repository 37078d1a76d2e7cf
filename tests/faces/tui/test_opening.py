"""What is typed and pasted before the chat is there: every key does what it does later, in its order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from textual.css.stylesheet import Stylesheet
from textual.events import Key, Paste

from ba_tui.cli.commands import app_parts
from ba_tui.core.start import Start
from ba_tui.faces.tui.app import BaApp
from ba_tui.faces.tui.transcript.records import Prompt
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


def keys() -> list[Key | Paste]:
    """``a1b``."""
    edits = Key("backspace", "\x7f"), Key("left", None), Key("1", "1"), Key("end", None)
    return [Key("a", "a"), Key("b", "b"), Key("x", "x"), *edits]


async def when(moment: Callable[[BaApp], bool], app: BaApp, *events: Key | Paste) -> None:
    while not (app.screen_stack and moment(app)):  # noqa: ASYNC110 - what comes this early has no event
        await asyncio.sleep(0)
    for event in events:
        # Made one after the other on a busy machine they may stand apart; here all come at one moment.
        event.time = events[0].time
        app.post_message(event)


def at_once(app: BaApp) -> bool:
    return app.chat is None


def between(app: BaApp) -> bool:
    """The chat is in front and does not yet have what was typed before."""
    return app.chat is not None and app.screen is app.chat and app.focused is None


@pytest.mark.parametrize("moment", [at_once, between])
async def test_keys_and_pastes_that_come_early_do_what_they_do_later(
    world: World, moment: Callable[[BaApp], bool]
) -> None:
    app = BaApp(world.connect, Start(), app_parts)
    lines = Key("enter", "\r"), Key("c", "c"), Paste("pasted\nwords"), Key("d", "d")
    typing = asyncio.create_task(when(moment, app, *keys(), *lines))
    async with app.run_test(size=(80, 24)) as pilot:
        await typing
        hand = Hand(app, pilot)
        await hand.until(lambda: app.chat and app.chat.early is None)
        await hand.until(lambda: hand.text.endswith("d"))
        assert hand.text == "a1b\ncpasted\nwordsd"


async def without_a_pause(app: BaApp) -> str:
    """Keys, from when the chat comes in front until it has them: more at a time than are taken meanwhile."""
    typed = ""
    while not between(app):  # noqa: ASYNC110 - what comes this early has no event
        await asyncio.sleep(0)
    while app.chat and app.chat.early is not None and len(typed) < 2_000:
        for letter in "abcde":
            app.post_message(Key(letter, letter))
            typed += letter
        await asyncio.sleep(0)
    return typed


async def test_keys_that_never_pause_do_not_keep_the_chat_from_taking_them(world: World) -> None:
    app = BaApp(world.connect, Start(), app_parts)
    typing = asyncio.create_task(without_a_pause(app))
    async with app.run_test(size=(80, 24)) as pilot:
        typed = await typing
        hand = Hand(app, pilot)
        assert hand.chat.early is None
        await hand.until(lambda: len(hand.chat.composer.prompt.value) == len(typed))
        assert hand.chat.composer.prompt.value == typed


@pytest.mark.parametrize(("key", "letter"), [("enter", "\r"), ("ctrl+j", "\n")])
async def test_an_enter_at_the_end_of_what_comes_early_sends_it(world: World, key: str, letter: str) -> None:
    """A terminal that nobody has switched over yet makes a line feed of it."""
    app = BaApp(world.connect, Start(), app_parts)
    typing = asyncio.create_task(when(at_once, app, *keys(), Key(key, letter)))
    async with app.run_test(size=(80, 24)) as pilot:
        await typing
        hand = Hand(app, pilot)
        await hand.opened()
        await hand.until(lambda: any(isinstance(record, Prompt) for record in hand.chat.transcript.records))
        await hand.idle()
        assert hand.said()[0] == "a1b"
        assert not hand.text


async def test_names_are_offered_for_what_was_typed_early_as_soon_as_they_are_known(
    world: World, services: threading.Event
) -> None:
    async with running(world, ready=False) as hand:
        await hand.press("@")
        assert not hand.chat.composer.popup.display
        services.set()
        await hand.until(lambda: hand.chat.composer.popup.display)


async def test_style_sheets_are_read_again_for_other_colours_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, again = Stylesheet.reparse, list[Stylesheet]()
    monkeypatch.setattr(Stylesheet, "reparse", lambda self: (again.append(self), read(self))[1])
    app = BaApp(world.connect, Start(theme="light"), app_parts)
    async with app.run_test(size=(80, 24)) as pilot:
        await Hand(app, pilot).opened()
        assert not again
        light = app.screen.background_colors[1]
        app.theme = "dark"
        await pilot.pause()
        assert len(again) == 1
        assert app.screen.background_colors[1].brightness < 0.2 < light.brightness
