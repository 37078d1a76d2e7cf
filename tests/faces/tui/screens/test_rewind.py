"""Rewinding with keys: the list, what would change, the choice, the words back in the input, and forth again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ba_tui.core.events import Checkpointed, Event, MessageDone, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, user
from ba_tui.core.ports.brain import Inventory
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.rewind import RewindDialog, RewindList
from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints, TurnWrites
from ba_tui.sessions.checkpoints.shadow import Store
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


def told(prompt: str, id: str = "", number: int = 0) -> list[Event]:
    kept: list[Event] = [Checkpointed(id, number)] if id else []
    return [
        TurnStarted(user(prompt)),
        *kept,
        MessageDone(Message("assistant", (Text(f"About {prompt}."),))),
        TurnEnded("done"),
    ]


@pytest.fixture
def changed(world: World) -> World:
    """Two turns that changed files, a third that only talked, and a change by hand."""
    own = SessionCheckpoints(Store(world.cwd.parent / "store", world.cwd), "s1")
    world.brain.inventory = Inventory(checkpoints=lambda: own)
    (world.cwd / "a.txt").write_text("one\n")
    (world.cwd / "mine.md").write_text("m\n")
    first = own.take(1)
    (world.cwd / "a.txt").write_text("one\ntwo\n")
    own.settle(1)
    second = own.take(2)
    (world.cwd / "new.txt").write_text("n\n")
    own.settle(2)
    (world.cwd / "mine.md").write_text("m\nby hand\n")
    events = [*told("add two", first, 1), *told("make a file", second, 2), *told("[b]just talk")]
    world.shelf.put("s1", "Earlier", events)
    return world


def page(hand: Hand, kind: type[RewindList] | type[RewindDialog]) -> str:
    """What stands on the screen, without its looks."""
    assert isinstance(hand.app.screen, kind)
    strips = hand.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def opened(hand: Hand) -> None:
    await hand.send("/resume earlier")
    await hand.until(lambda: "About add two." in hand.said())


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


async def test_escape_twice_and_back_to_before_a_prompt_and_forth(changed: World):
    async with running(changed) as hand:
        await opened(hand)
        await hand.press("escape")
        assert hand.hint == "Press Esc again to rewind."
        await hand.press("escape")
        await hand.until(lambda: isinstance(hand.app.screen, RewindList))
        await hand.until(lambda: "1 file +1 -0" in page(hand, RewindList))
        shown = page(hand, RewindList).partition("before a prompt")[2]
        assert shown.index("[b]just talk") < shown.index("make a file") < shown.index("add two")
        await hand.press("down")
        assert "new.txt +1 -0" in page(hand, RewindList)
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "2 files would change." in page(hand, RewindDialog))
        shown = page(hand, RewindDialog)
        assert "Rewind to before “make a file”" in shown
        assert "! 1 edited by you since; your edits will be lost." in shown
        assert "This prompt and 1 after it are removed" in shown
        await hand.press("d")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        await hand.press("escape")
        shown = page(hand, RewindDialog)
        assert shown.index("Conversation only") < shown.index(
            "Conversation and files, including 1 file that you edited"
        )
        await hand.press("down", "enter")
        await hand.until(lambda: hand.text == "make a file")
        await hand.until(lambda: "About add two." in hand.said())
        assert "About make a file." not in hand.said()
        assert "Rewound to here, files included." in hand.said()
        assert files(changed.cwd) == {"a.txt": "one\ntwo\n", "mine.md": "m\n"}
        hand.chat.composer.clear()
        await hand.send("/rewind undo")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "2 files would change." in page(hand, RewindDialog))
        await hand.press("enter")
        await hand.until(lambda: "About [b]just talk." in hand.said())
        assert files(changed.cwd)["mine.md"] == "m\nby hand\n"


async def test_enter_alone_keeps_what_was_changed_by_hand(changed: World):
    async with running(changed) as hand:
        await opened(hand)
        await hand.send("/rewind 2")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "2 files would change." in page(hand, RewindDialog))
        await hand.press("enter")
        await hand.until(lambda: hand.text == "make a file")
        assert files(changed.cwd) == {"a.txt": "one\ntwo\n", "mine.md": "m\nby hand\n", "new.txt": "n\n"}


async def test_what_is_left_and_what_can_not_be_is_told(changed: World):
    async with running(changed, size=(60, 16)) as hand:
        await hand.send("/rewind")
        await hand.until(lambda: "Nothing to rewind yet." in hand.said())
        await hand.send("/diff")
        await hand.until(lambda: "This session changed no files." in hand.said())
        await opened(hand)
        await hand.send("/rewind 9")
        await hand.until(lambda: "There is no turn 9 to go back to." in hand.said())
        await hand.send("/rewind undo")
        await hand.until(lambda: "Nothing was rewound in this session." in hand.said())
        await hand.send("/diff")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        await hand.press("escape")
        await hand.send("/rewind 1")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "3 files would change." in page(hand, RewindDialog))
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)
        assert files(changed.cwd)["mine.md"] == "m\nby hand\n"


async def test_a_store_that_is_gone_leaves_the_conversation_to_rewind(changed: World):
    async with running(changed) as hand:
        await opened(hand)
        (changed.cwd.parent / "store" / "HEAD").unlink()
        for path in sorted((changed.cwd.parent / "store" / "objects").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        await hand.send("/rewind 2")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "The checkpoint was deleted" in page(hand, RewindDialog))
        assert "Conversation and files" not in page(hand, RewindDialog)
        await hand.press("enter")
        await hand.until(lambda: hand.text == "make a file")
        assert "new.txt" in files(changed.cwd)


async def test_files_of_other_programs_are_named_and_stay(changed: World):
    make = changed.brain.inventory.checkpoints
    assert make
    own = make()
    assert isinstance(own, SessionCheckpoints)
    writes = TurnWrites()
    writes.begin("c1", ["new.txt"])
    writes.end("c1")
    probe, ended = changed.cwd.parent / "probe", time.time_ns()
    probe.write_text("")
    while probe.stat().st_ctime_ns <= ended:
        # The clock of a file system moves on with the ticks of the kernel.
        probe.write_text("")
    (changed.cwd / "other.log").write_text("o\n")
    writes.close()
    own.settle(2, writes)
    async with running(changed) as hand:
        await opened(hand)
        await hand.send("/rewind 2")
        await hand.until(lambda: isinstance(hand.app.screen, RewindDialog))
        await hand.until(lambda: "1 file of other programs would stay." in page(hand, RewindDialog))
        shown = page(hand, RewindDialog)
        assert "keep: other program" in shown
        assert "other.log" in shown
        await hand.press("enter")
        left = "1 file was left unchanged. other.log: another program wrote it during the turn."
        await hand.until(lambda: left in hand.said())
        assert files(changed.cwd) == {"a.txt": "one\ntwo\n", "mine.md": "m\n", "other.log": "o\n"}
