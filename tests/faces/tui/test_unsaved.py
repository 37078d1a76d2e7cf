"""A session that can't be saved: the app says so for as long as that is so, and loses nothing without asking."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ba_tui.core.errors import SessionNotSaved
from ba_tui.resources import places
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

FULL = SessionNotSaved("No space left on device", "Free some space.", "/home/me/ba", partly=True)


async def full(hand: Hand, world: World) -> None:
    """The disk is full from the second prompt on."""
    await hand.send("one")
    await hand.idle()
    assert hand.chat.session.conversation
    world.shelf.journals[hand.chat.session.conversation.id].full = FULL
    await hand.send("two")
    await hand.idle()
    await hand.until(lambda: "NOT SAVED" in hand.status)


async def test_it_is_shown_until_all_is_saved_again(world: World) -> None:
    async with running(world, size=(110, 24)) as hand:
        await full(hand, world)
        lost = "The session cannot be saved to /home/me/ba: No space left on device. The session continues"
        assert lost in str(hand.said())
        await hand.send("three")
        await hand.idle()
        assert "NOT SAVED" in hand.status
        assert hand.chat.session.conversation
        journal = world.shelf.journals[hand.chat.session.conversation.id]
        journal.full = None
        await hand.send("four")
        await hand.idle()
        await hand.until(lambda: "NOT SAVED" not in hand.status)
        assert any("saved again" in text for text in hand.said())
        assert [event.prompt.text for event in journal.events if event.type == "turn_started"] == [
            "one", "two", "three", "four",
        ]  # fmt: skip


@pytest.mark.parametrize("keys", [("ctrl+q",), ("ctrl+c", "ctrl+c"), ("ctrl+d",)])
async def test_to_leave_takes_two_requests(world: World, keys: tuple[str, ...]) -> None:
    async with running(world, size=(110, 24)) as hand:
        await full(hand, world)
        await hand.press(*keys)
        await hand.until(lambda: any("/export FILE" in each.hint for each in hand.chat.notices.kept))
        assert hand.app.is_running
        assert hand.app.return_code is None
        await hand.press(*keys)
        await hand.until(lambda: hand.app.return_code is not None)
    assert hand.app.return_code == 2
    assert [line.partition(",")[0] for line in hand.chat.losses()] == ["The newest part of this session was not saved"]


async def test_what_is_saved_at_last_needs_no_second_request(world: World) -> None:
    async with running(world) as hand:
        await full(hand, world)
        assert hand.chat.session.conversation
        world.shelf.journals[hand.chat.session.conversation.id].full = None
        await hand.press("ctrl+q")
        await hand.until(lambda: hand.app.return_code is not None)
    assert hand.app.return_code == 0
    assert list(hand.chat.losses()) == []


async def test_unsent_words_that_can_not_be_kept_are_repeated(world: World) -> None:
    async with running(world) as hand:
        await hand.type("not sent\x1b[31m yet")
        state = places().state
        shutil.rmtree(state / "drafts", ignore_errors=True)
        Path(state).mkdir(parents=True, exist_ok=True)
        (state / "drafts").write_text("no folder")
        await hand.press("ctrl+q")
        await hand.until(lambda: hand.app.return_code is not None)
    (told,) = hand.chat.losses()
    assert told.startswith("This text was not sent and can't be saved:\nnot sent")
    assert "\x1b" not in told
