"""What ba remembers, as people see and change it: the browser, lines in the conversation, proposals."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from textual.widgets import Static, TextArea

from ba_tui.core.events import (
    MemoriesUsed,
    MemoryChanged,
    MemoryLine,
    MessageDone,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.ports.memory import Draft, Entry, Memory, MemoryState, Proposal, RecalledEntry
from ba_tui.core.results import ToolResult
from ba_tui.core.start import Start
from ba_tui.faces.tui.screens.sheet import MarkdownSheet
from ba_tui.faces.tui.transcript.fold import fold
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.records import MemoryNote, ToolRow
from ba_tui.features.memory.tui.browser import NONE_YET, EntryEditor, MemoryBrowser
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fake_memory import KeptMemory
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import keys, lines, shown

NOW = time.time()


@pytest.fixture
def memory(world: World) -> KeptMemory:
    kept = KeptMemory()
    world.brain.inventory = replace(world.brain.inventory, features={Memory: kept})
    return kept


def filled(memory: KeptMemory) -> KeptMemory:
    memory.put(
        Entry("m1", "The fiscal year begins in January", project="app", at=NOW - 90_000),
        Entry("m2", "The fiscal year begins in April", project="app", at=NOW - 4_000, supersedes="m1"),
        Entry("m3", "Answer in British English", "preference", pinned=True, at=NOW - 200_000, used=3, last_used=NOW),
    )
    return memory


def text(hand: Hand, selector: str) -> str:
    return str(hand.app.screen.query_one(selector, Static).content)


async def opened(hand: Hand, command: str = "/memory") -> None:
    await hand.send(command)
    await shown(hand, MemoryBrowser)
    await hand.until(lambda: "Looking" not in lines(hand))


async def test_the_browser_lists_searches_and_filters(world: World, memory: KeptMemory) -> None:
    filled(memory)
    memory.recalled = [RecalledEntry(memory.entries["m2"], 2.0, "shares “fiscal year”")]
    memory.standing = MemoryState(size=2_400, why="no AVX2 here", indexed=(1, 3), skipped=2)
    async with running(world) as hand:
        await opened(hand)
        listed = lines(hand).splitlines()
        assert listed[0].startswith("  Answer in British English"), "pinned first"
        assert listed[0].split()[-4:] == ["pinned", "global", "2", "d"]
        assert listed[1].strip().startswith("preference · used 3 times, last ")
        assert "used now: shares “fiscal year”" in lines(hand)
        assert "replaced by: The fiscal year begins in April" in lines(hand)
        assert text(hand, ".title") == "Memory · 3 entries · 2.4 KB"
        assert "no AVX2 here · 1 of 3 indexed · 2 unreadable lines kept aside" in text(hand, ".lead")
        memory.standing = MemoryState(size=2_400)
        await hand.until(lambda: not hand.app.screen.query_one(".lead").display)
        await hand.press(*"april")
        await hand.until(lambda: "shares “april”" in lines(hand))
        assert "British" not in lines(hand)
        await hand.press("ctrl+o", "ctrl+o")
        await hand.until(lambda: "Nothing matches." in lines(hand))
        assert "global" in text(hand, ".title")
        await hand.press("ctrl+u", *"british")
        await hand.until(lambda: "British" in lines(hand))
        await hand.press("enter")
        await shown(hand, MarkdownSheet)
        page = hand.app.screen.query_one(MarkdownPage)
        await hand.until(lambda: page.records)
        assert "> Answer in British English" in str(getattr(page.records[0], "text", ""))
        assert "all projects" in str(getattr(page.records[0], "text", ""))


async def test_entries_are_edited_pinned_made_global_and_forgotten_with_undo(world: World, memory: KeptMemory) -> None:
    filled(memory)
    async with running(world) as hand:
        await opened(hand)
        await hand.press("down", "ctrl+e")
        await shown(hand, EntryEditor)
        field = hand.app.screen.query_one(TextArea)
        field.insert(", password x")
        await hand.press("ctrl+s")
        await hand.until(lambda: "holds a password" in keys(hand))
        field.text = "The fiscal year begins in May"
        await hand.press("ctrl+s")
        await shown(hand, MemoryBrowser)
        await hand.until(lambda: "begins in May" in lines(hand))
        await hand.press("ctrl+d")
        await hand.until(lambda: "m2" not in memory.entries and "Ctrl+Z brings it back" in keys(hand))
        await hand.press("ctrl+z")
        await hand.until(lambda: "m2" in memory.entries and "is back" in keys(hand))
        await hand.press("ctrl+z")
        await hand.until(lambda: memory.entries["m2"].text == "The fiscal year begins in April")
        await hand.press("pageup", "ctrl+t")
        await hand.until(lambda: "Unpinned “Answer" in keys(hand))
        assert not memory.entries["m3"].pinned
        await hand.press("ctrl+z")
        await hand.until(lambda: memory.entries["m3"].pinned)
        await hand.press("pagedown", "ctrl+g")
        assert "Press Ctrl+G again" in keys(hand)
        assert memory.entries["m1"].project == "app", "it asks first"
        await hand.press("ctrl+g")
        await hand.until(lambda: not memory.entries["m1"].project)
        await hand.press("ctrl+z")
        await hand.until(lambda: memory.entries["m1"].project == "app")


async def test_nothing_remembered_says_what_to_do_and_leads_to_the_files(world: World, memory: KeptMemory) -> None:
    async with running(world) as hand:
        await opened(hand)
        assert NONE_YET in lines(hand)
        await hand.press("ctrl+f")
        await hand.until(lambda: "This session has no list of instruction files." in hand.said())


async def test_a_text_is_remembered_replaced_and_taken_back(world: World, memory: KeptMemory) -> None:
    async with running(world) as hand:
        await hand.send("# We use tabs")
        await hand.until(lambda: "Remembered for this project: “We use tabs”." in hand.said())
        await hand.send("/remember global We use tabs of four")
        told = "Remembered for all projects: “We use tabs of four” replaces “We use tabs”."
        await hand.until(lambda: told in hand.said())
        await hand.send("/remember global my password is x")
        await hand.until(lambda: "The text holds a password, so it is not stored." in hand.said())
        assert hand.text == "/remember global my password is x", "the words are not lost"
        await hand.press("ctrl+u")
        await hand.send("/memory undo")
        await hand.until(lambda: len(memory.entries) == 1 and not memory.entries["m0"].superseded_by)
        await hand.send("/forget tabs")
        await shown(hand, MemoryBrowser)
        await hand.until(lambda: "shares “tabs”" in lines(hand))
        await hand.press("ctrl+d")
        await hand.until(lambda: not memory.entries)
        await hand.press("escape")
        await hand.send("/memory undo")
        await hand.until(lambda: "This change of memory can't be undone any more." in hand.said())
        await hand.press("ctrl+u")
        await hand.send("/memory undo")
        await hand.until(lambda: "There is nothing to undo." in hand.said())
        await hand.press("ctrl+u")
        await hand.send("/remember")
        await hand.until(lambda: hand.text == "/remember ")


async def test_what_was_used_and_changed_stands_in_the_conversation(world: World, memory: KeptMemory) -> None:
    filled(memory)
    used = MemoryLine("m2", "The fiscal year begins in April", why="shares “fiscal year”")
    changed = MemoryLine("m9", "Reports go to Ana", older="Reports go to Bo")
    told = [
        TurnStarted(user("When does the fiscal year begin?")),
        MemoriesUsed((used, MemoryLine("gone", "Forgotten since"))),
        MessageDone(answer("In April.")),
        MemoryChanged((changed,)),
        TurnEnded("done"),
    ]
    world.shelf.put("aaaa1111", "Fiscal", told)
    async with running(world, Start(resume="aaaa")) as hand:
        notes = [each for each in hand.chat.transcript.records if isinstance(each, MemoryNote)]
        assert [each.text for each in notes] == [
            "2 memories used",
            "Remembered “Reports go to Ana” (before: “Reports go to Bo”).",
        ]
        await hand.press("tab", "up", "up", "up")
        assert hand.chat.transcript.current() is notes[0]
        await hand.press("enter")
        await shown(hand, MemoryBrowser)
        await hand.until(lambda: "Looking" not in lines(hand))
        assert "shares “fiscal year”" in lines(hand)
        assert "British" not in lines(hand)
        assert "Forgotten since" not in lines(hand)
        await hand.press("ctrl+d")
        await hand.until(lambda: text(hand, ".title") == "Memory · 0 entries used with this prompt")
        assert "m2" not in memory.entries
        await hand.press("ctrl+o")
        await hand.until(lambda: "British" in lines(hand))


def test_a_call_that_writes_to_memory_says_so_in_its_own_row() -> None:
    call, line = ToolUse("c1", "remember", {"text": "x"}), MemoryLine("m1", "Reports go to Ana", older="Bo gets them")
    told = [
        TurnStarted(user("Remember it")),
        MessageDone(answer("", call)),
        ToolStarted(call, "x"),
        MemoryChanged((line,)),
        ToolFinished("c1", ToolResult("Stored.", summary="replaced")),
        MemoryChanged((MemoryLine("m2", "Long words", kind="summary"),)),
    ]
    records = fold(told)
    row = next(each for each in records if isinstance(each, ToolRow))
    assert row.summary == "replaced · before: “Bo gets them” · /memory undo"
    assert row.changed
    assert row.changed.memories == (line,)
    notes = [each.text for each in records if isinstance(each, MemoryNote)]
    assert notes == ["Remembered a summary of this session."]


async def test_a_proposal_takes_one_key_and_no_typed_letter(world: World, memory: KeptMemory) -> None:
    filled(memory)
    older = memory.entries["m2"]
    tabs = Proposal("p1", Draft("I use tabs of four"))
    year = Proposal("p2", Draft("Our fiscal year begins in July", subject="year"), older)
    async with running(world) as hand:
        memory.waiting = [tabs, year]
        await hand.send("I use tabs of four")
        await hand.idle()
        line = hand.chat.composer.query_one("#proposal", Static)
        await hand.until(lambda: line.display)
        assert str(line.content) == "? Remember: “I use tabs of four”?  Ctrl+S save · Esc drop · +1"
        await hand.press("y", "n")
        assert hand.text == "yn"
        assert memory.waiting == [tabs, year]
        await hand.press("ctrl+s")
        await hand.until(lambda: "Remembered for this project: “I use tabs of four”." in hand.said())
        assert hand.text == "yn"
        await hand.until(lambda: "in place of: “The fiscal year begins in April”" in str(line.content))
        assert all(len(row) <= 78 for row in str(line.content).splitlines())
        await hand.press("escape")
        await hand.until(lambda: not memory.waiting)
        assert not line.display
        assert hand.text == "yn"
        memory.waiting = [tabs]
        await hand.press("enter")
        await hand.idle()
        await hand.until(lambda: line.display)
        await hand.send("next")
        await hand.idle()
        assert not line.display, "the next prompt passes it over"
        colour = Proposal("p3", Draft("I prefer blue bars"))
        memory.waiting.append(colour)
        await hand.send("I prefer blue bars")
        await hand.idle()
        await hand.until(lambda: "blue bars" in str(line.content))
        await hand.press("ctrl+s", "ctrl+s")
        await hand.until(lambda: memory.waiting == [tabs])
        await hand.until(lambda: not line.display)
        await opened(hand)
        assert "proposed" in lines(hand)
        await hand.press("ctrl+s")
        await hand.until(lambda: not memory.waiting)
