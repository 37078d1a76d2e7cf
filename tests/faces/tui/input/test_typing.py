"""What somebody types goes to the input, whole and in order, whatever else is on the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events

from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.tui.inspector.pane import Inspector, InspectorScreen
from ba_tui.faces.tui.widgets.ask import AskPanel
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer

WORDS = "please plan a nice fix, just (k)eep it quick; y/n? grow w/o [d]elay"


async def show(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("ok", CommandText("make", output="shown", exit_code=0))


async def ask(args: Mapping[str, Any], call: Call) -> ToolResult:
    reply = await call.ask(Question("permission", "Run it?", call.id, "ask", {"command": "make"}, rule="shell(make)"))
    return ToolResult(reply.choice, CommandText("make", output=reply.choice, exit_code=0))


@pytest.fixture
def world(world: World) -> World:
    world.brain.tools = (Tool("show", "Shows.", {}, show), Tool("ask", "Asks.", {}, ask))
    return world


def burst(hand: Hand, *keys: str) -> None:
    """Keys as a terminal delivers them: all of them before the first one is taken."""
    for key in keys:
        hand.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def arrived(hand: Hand, words: str) -> None:
    await hand.until(lambda: len(hand.text) >= len(words))
    assert hand.text == words
    assert hand.chat.composer.prompt.has_focus


@asynccontextmanager
async def talking(world: World) -> AsyncGenerator[Hand]:
    """The app with something in the conversation."""
    async with running(world, Start(prompt="hello")) as hand:
        await hand.until(lambda: "Done." in hand.said() and not hand.chat.turns.busy)
        yield hand


async def test_words_typed_in_the_conversation_arrive_whole(world: World) -> None:
    async with talking(world) as hand:
        await hand.press("tab")
        await hand.until(lambda: hand.chat.transcript.has_focus)
        burst(hand, *WORDS)
        await arrived(hand, WORDS)


async def test_a_paste_in_the_conversation_goes_to_the_input(world: World) -> None:
    async with talking(world) as hand:
        await hand.press("tab")
        await hand.until(lambda: hand.chat.transcript.has_focus)
        hand.app.post_message(events.Paste("pasted words"))
        burst(hand, *" and typed")
        await arrived(hand, "pasted words and typed")


async def test_a_search_of_the_conversation_keeps_its_words(world: World) -> None:
    async with talking(world) as hand:
        await hand.press("tab")
        await hand.until(lambda: hand.chat.transcript.has_focus)
        burst(hand, "ctrl+f", *"needle")
        await hand.until(lambda: hand.chat.transcript.search and hand.chat.transcript.search.query == "needle")
        await hand.press("escape")
        assert not hand.text


@asynccontextmanager
async def inspecting(world: World) -> AsyncGenerator[tuple[Hand, Inspector]]:
    world.script.turns = [[answer("", ToolUse("c1", "show", {}))], ["Shown."]]
    async with running(world, size=(160, 36)) as hand:
        await hand.send("begin")
        await hand.until(lambda: "Shown." in hand.said() and not hand.chat.turns.busy)
        await hand.press("ctrl+o")
        await hand.until(lambda: hand.chat.main_area.inspector and hand.chat.main_area.inspector.has_focus_within)
        assert hand.chat.main_area.inspector
        yield hand, hand.chat.main_area.inspector


async def test_words_typed_beside_the_conversation_arrive_whole(world: World) -> None:
    async with inspecting(world) as (hand, pane):
        burst(hand, *WORDS)
        await arrived(hand, WORDS)
        assert pane.is_attached


async def test_the_inspector_names_keys_that_work_where_it_is(world: World) -> None:
    async with inspecting(world) as (hand, pane):
        assert "Enter full screen · Ctrl+Y copy · Alt+W wrap" in str(pane.query_one(".keys").render())
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        await hand.pilot.pause()
        assert "y copy · w wrap" in str(hand.app.screen.query_one(".keys").render())
        await hand.press("q")
        await hand.until(lambda: hand.app.screen is hand.chat)
        assert not hand.text


@asynccontextmanager
async def asking(
    world: World, *, typed: str = "", clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[tuple[Hand, AskPanel]]:
    """A question waits; ``typed`` was in the input before."""
    gate = asyncio.Event()
    world.script.turns = [[gate, answer("", ToolUse("c1", "ask", {}))], ["Ran."]]
    async with running(world, size=(100, 36)) as hand:
        await hand.send("run it")
        await hand.press(*typed)
        panel = hand.chat.ask = AskPanel(writing=lambda: bool(hand.text), clock=clock)
        await hand.chat.mount(panel, after=hand.chat.main_area)
        gate.set()
        await hand.until(lambda: panel.waiting and (typed or panel.has_focus_within))
        yield hand, panel
        hand.chat.turns.cancel()


def waits(panel: AskPanel) -> bool:
    """The question says that it takes no answer now."""
    return "Answer keys are off while the input holds text" in str(panel.query_one("#ask-hint").render())


async def test_what_is_being_written_answers_no_question(world: World) -> None:
    async with asking(world, typed="ed") as (hand, panel):
        await hand.press(*"it yes 1 n and 3 always")
        await arrived(hand, "edit yes 1 n and 3 always")
        assert panel.waiting == 1
        assert waits(panel)
        # It is queued, and the question gets the keys.
        await hand.press("enter")
        assert list(hand.chat.turns.waiting) == ["edit yes 1 n and 3 always"]
        await hand.until(lambda: panel.has_focus_within)
        assert not waits(panel)
        while panel.waiting:
            await hand.press("y")
        await hand.until(lambda: "Ran." in hand.said())


@pytest.mark.parametrize("key", ["enter", "escape", "tab", "y", "n", "1", "e"])
async def test_the_panel_takes_no_key_while_the_input_holds_text(world: World, key: str) -> None:
    async with asking(world) as (hand, panel):
        hand.chat.composer.prompt.insert("words")
        await hand.until(lambda: waits(panel))
        panel.query_one("AskForm").post_message(events.Key(key, key if len(key) == 1 else None))
        await hand.pilot.pause()
        assert panel.waiting == 1
        assert hand.text == "words"
        assert not panel.query("Input, TextArea")


@pytest.mark.parametrize("words", ["now eat 1 and say yes", "please", "a new way", "3 days"])
async def test_words_begun_as_a_question_appears_go_to_the_input(world: World, words: str) -> None:
    async with asking(world, clock=lambda: 1.0) as (hand, panel):
        burst(hand, *words)
        await arrived(hand, words)
        assert panel.waiting == 1
        assert not panel.query("Input, TextArea")


@pytest.mark.parametrize("words", ["draft words", "now edit yes 1 please", "yes and no", "always", "1 and 2"])
async def test_a_word_begun_at_a_question_answers_nothing(world: World, words: str) -> None:
    now = [0.0]
    async with asking(world, clock=lambda: now[0]) as (hand, panel):
        now[0] = 60.0
        burst(hand, *words)
        await arrived(hand, words)
        assert panel.waiting == 1
        assert hand.app.screen is hand.chat
        assert not panel.query("Input, TextArea")


@pytest.mark.parametrize("keys", [["y"], ["y", "y"], ["down", "enter"], ["n"], ["2"]])
async def test_a_letter_alone_answers(world: World, keys: list[str]) -> None:
    now = [0.0]
    async with asking(world, clock=lambda: now[0]) as (hand, panel):
        now[0] = 60.0
        burst(hand, *keys)
        await hand.until(lambda: not panel.waiting)


async def test_clearing_the_input_gives_the_question_its_keys(world: World) -> None:
    async with asking(world, typed="words") as (hand, panel):
        await hand.press("escape", "escape")
        await hand.until(lambda: panel.has_focus_within)
        assert panel.waiting == 1
        assert hand.chat.turns.busy
        assert not waits(panel)


async def test_a_field_of_the_question_keeps_its_words(world: World) -> None:
    async with asking(world) as (hand, panel):
        while not panel.query("Input"):
            await hand.press("tab")
        burst(hand, *"yes, do it")
        await hand.until(lambda: panel.query_one("WordsInput").value == "yes, do it")  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
        assert not hand.text
