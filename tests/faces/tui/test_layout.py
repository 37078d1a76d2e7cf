"""Panels, inspector, questions: what shows at which width, and where the focus goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, StateChange, Todo, Todos, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.widgets.main_area import todo_lines
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer

ITEMS = (Todo("1", "Read [all] data", "completed"), Todo("2", "Write", "in_progress"))


async def plan(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("ok", Todos(ITEMS), changes=StateChange(ITEMS))


async def shell(args: Mapping[str, Any], call: Call) -> ToolResult:
    reply = await call.ask(Question("permission", "Run it?", call.id, "shell", dict(args), CommandText("make", "")))
    return ToolResult(reply.choice, CommandText("make", output=reply.choice, exit_code=0))


@pytest.fixture
def planned(world: World) -> World:
    world.brain.tools = (Tool("plan", "Plans.", {"type": "object"}, plan), Tool("shell", "Runs.", {}, shell))
    world.script.turns = [[answer("I plan.", ToolUse("c1", "plan", {}))], ["Planned."]]
    return world


async def told(hand: Hand) -> None:
    await hand.send("plan it")
    await hand.until(lambda: "Planned." in hand.said() and not hand.chat.turns.busy)


async def test_wide_terminals_show_the_side_panel_when_it_has_something(planned: World) -> None:
    async with running(planned, size=(120, 36)) as hand:
        assert not hand.chat.main_area.side.display
        await told(hand)
        assert hand.chat.main_area.side.display
        assert "Read [all] data" in str(hand.chat.main_area.side.todos.content)
        await hand.press("f3")
        await hand.until(lambda: not hand.chat.main_area.side.display)
        await hand.pilot.resize_terminal(100, 30)
        await hand.press("f3")
        await hand.until(lambda: "wider window" in hand.hint)


@pytest.mark.parametrize("width", [110, 120, 200])
async def test_the_side_panel_takes_a_quarter_at_most(planned: World, width: int) -> None:
    async with running(planned, size=(width, 36)) as hand:
        await told(hand)
        side = hand.chat.main_area.side
        await hand.until(lambda: side.region.width)
        assert side.region.width <= width // 4
        shown = str(side.usage.content)
        assert "—" not in shown
        assert "0 of" not in shown
        assert all(len(line) <= side.usage.size.width for line in shown.splitlines()), "no row is folded"


async def test_with_nothing_to_show_there_is_no_side_panel(world: World) -> None:
    async with running(world, size=(120, 36)) as hand:
        await hand.press("f3")
        await hand.until(lambda: "nothing to show yet" in hand.hint)
        assert not hand.chat.main_area.side.display


async def test_facts_that_are_shown_already_lay_nothing_out(world: World) -> None:
    async with running(world) as hand:
        hand.chat.show_facts()
        assert [widget for widget in hand.chat.query("*") if widget._layout_required] == []


async def test_narrow_terminals_show_todos_as_a_strip(planned: World) -> None:
    async with running(planned) as hand:
        await told(hand)
        assert not hand.chat.main_area.todos.display
        await hand.press("ctrl+t")
        await hand.until(lambda: hand.chat.main_area.todos.display)
        assert "1 of 2 done" in str(hand.chat.main_area.todos.content)
        await hand.pilot.resize_terminal(16, 8)
        await hand.until(lambda: "1 above" in str(hand.chat.main_area.todos.content))
        await hand.press("ctrl+t")
        await hand.until(lambda: not hand.chat.main_area.todos.display)


def test_a_long_todo_is_folded_behind_its_mark() -> None:
    long = Todo("1", "Read all of the data", "pending", "high")
    assert todo_lines((long,), 14).plain.splitlines()[1:] == ["○ Read all of", "  the data", "  high"]


def test_more_todos_than_rows_show_those_around_what_is_being_done() -> None:
    items = tuple(Todo(str(at), f"Task {at} folded", "completed" if at < 7 else "pending") for at in range(20))
    items = (*items[:7], Todo("7", "Now", "in_progress"), *items[8:])
    shown = todo_lines(items, 9, 8).plain.splitlines()
    assert shown[1:] == ["▸ Now", "○ Task 8", "  folded", "○ Task 9", "  folded", "… 7 above, 10 below"]
    shown = todo_lines(items[:8], 9, 8).plain.splitlines()
    assert shown[1:] == ["✓ Task 5", "  folded", "✓ Task 6", "  folded", "▸ Now", "… 5 above"]
    assert len(todo_lines(items, 9, 40).plain.splitlines()) == 40


async def test_the_inspector_opens_beside_or_over_the_conversation(planned: World) -> None:
    async with running(planned, size=(120, 36)) as hand:
        await told(hand)
        await hand.press("ctrl+o")
        await hand.until(lambda: hand.chat.main_area.inspector is not None)
        assert not hand.chat.main_area.side.display
        await hand.until(lambda: hand.chat.main_area.inspector and hand.chat.main_area.inspector.has_focus_within)
        await hand.press("w", "o", "w")
        assert hand.text == "wow", "letters are no keys beside the conversation"
        await hand.press("ctrl+u", "escape")
        await hand.until(lambda: hand.chat.main_area.inspector is None and hand.chat.composer.prompt.has_focus)
        await hand.pilot.resize_terminal(80, 24)
        await hand.press("ctrl+o")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_the_inspector_without_a_call_says_so(world: World) -> None:
    async with running(world) as hand:
        await hand.press("ctrl+o")
        await hand.until(lambda: any("No tool was called yet" in text for text in hand.said()))


async def test_a_question_is_answered_by_key_and_the_focus_comes_back(planned: World) -> None:
    planned.script.turns = [[answer("I run it.", ToolUse("c1", "shell", {"command": "make"}))], ["Ran."]]
    async with running(planned, size=(100, 36)) as hand:
        await hand.send("run it")
        await hand.until(lambda: hand.chat.ask is not None and hand.chat.ask.waiting)
        assert "Waiting for you" in hand.chat.activity._word
        while "Ran." not in hand.said():
            # The first half second of keys is ignored.
            await hand.press("y")
        await hand.until(lambda: hand.chat.composer.prompt.has_focus)
        assert "once" in str(planned.script.requests[-1].messages[-1].blocks)
        assert set(hand.text) <= {"y"}


async def test_escape_on_a_question_denies_and_interrupts(planned: World) -> None:
    planned.script.turns = [[answer("I run it.", ToolUse("c1", "shell", {"command": "make"}))], ["Never said."]]
    async with running(planned, size=(100, 36)) as hand:
        await hand.send("run it")
        await hand.until(lambda: hand.chat.ask is not None and hand.chat.ask.waiting)
        while hand.chat.turns.busy:
            await hand.press("escape")
            await hand.pilot.pause(0.05)
        assert "Never said." not in hand.said()
        assert hand.chat.ask is not None
        assert not hand.chat.ask.waiting


async def test_the_bell_rings_only_while_nobody_looks(planned: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[bool] = []
    async with running(planned) as hand:
        monkeypatch.setattr(hand.app, "bell", lambda: rung.append(True))
        await told(hand)
        assert not rung
        gate = asyncio.Event()
        planned.script.turns = [[gate, "Again."]]
        await hand.send("again")
        await hand.until(lambda: len(planned.script.requests) == 3)
        hand.app.app_focus = False
        gate.set()
        await hand.until(lambda: rung)


async def test_the_title_calls_as_long_as_a_question_waits_unseen(
    planned: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The title of each moment, as it would go to the terminal."""
    sent: list[str] = []
    calls = [ToolUse("c1", "shell", {"command": "make"}), ToolUse("c2", "shell", {"command": "make"})]
    planned.script.turns = [[answer("I run both.", *calls)], ["Ran."]]
    async with running(planned, size=(100, 36)) as hand:
        monkeypatch.setattr(hand.app, "_to_terminal", sent.append)
        await hand.send("run it")
        await hand.until(lambda: hand.chat.ask is not None and hand.chat.ask.waiting)
        assert "ba needs you" not in "".join(sent), "they look at it"
        hand.app.post_message(AppBlur())
        await hand.until(lambda: sent and "ba needs you" in sent[-1])
        hand.app.post_message(AppFocus())
        await hand.until(lambda: "ba needs you" not in sent[-1])


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (80, 24), (120, 36), (200, 50)])
async def test_nothing_overlaps_at_any_size(planned: World, size: tuple[int, int]) -> None:
    async with running(planned, size=size) as hand:
        await told(hand)
        hand.chat.turns.waiting.extend(["one", "two", "three"])
        hand.chat.turns.paused = True
        hand.chat.show_facts()
        await hand.type("many\nlines\nof\na\nprompt\nthat\ngrows")
        await hand.pilot.pause()
        parts = [hand.chat.main_area, hand.chat.activity, hand.chat.queue, hand.chat.composer, hand.chat.status]
        regions = [part.region for part in parts if part.display]
        assert all(region.height > 0 for region in regions), regions
        assert regions[-1].bottom == size[1]
        for above, below in pairwise(regions):
            assert above.bottom <= below.y
        assert hand.chat.composer.prompt.size.height <= max(1, size[1] * 2 // 5)


async def test_the_conversation_is_read_from_the_input_and_sending_leads_back_to_its_end(world: World) -> None:
    world.script.turns = [["line\n\n" * 60], ["Short."]]
    async with running(world) as hand:
        view = hand.chat.transcript
        await hand.send("long")
        await hand.idle()
        await hand.until(lambda: view.max_scroll_y and view.scroll_y == view.max_scroll_y)
        await hand.press("pageup")
        await hand.until(lambda: view.scroll_y < view.max_scroll_y)
        await hand.press("ctrl+home")
        await hand.until(lambda: view.scroll_y == 0)
        await hand.press("pagedown")
        await hand.until(lambda: view.scroll_y > 0)
        assert hand.chat.composer.prompt.has_focus
        await hand.send("next")
        await hand.until(lambda: "Short." in hand.said() and view.scroll_y == view.max_scroll_y)
        sign = hand.chat.query_one("#sign")
        bright = sign.styles.color
        await hand.press("tab")
        await hand.until(lambda: view.has_focus and "↑ ↓ select" in hand.hint)
        assert sign.styles.color != bright
        await hand.press("home")
        await hand.until(lambda: view.scroll_y == 0)
        await hand.press("end", "up")
        await hand.until(lambda: view.scroll_y == view.max_scroll_y and view.cursor is not None)
        assert view.has_focus
        assert not hand.text
        await hand.press(*"jykgw")
        await hand.until(lambda: hand.chat.composer.prompt.has_focus and "↑ ↓ choose" not in hand.hint)
        assert sign.styles.color == bright
        assert hand.text == "jykgw", "letters are no keys in the conversation"


async def test_the_conversation_is_read_while_a_question_waits(planned: World) -> None:
    gate = asyncio.Event()
    planned.script.turns = [
        [answer("line\n\n" * 60, ToolUse("c1", "shell", {"command": "make"}))],
        [gate, "Ran."],
    ]
    async with running(planned, size=(100, 36)) as hand:
        await hand.send("run it")
        await hand.until(lambda: hand.chat.ask is not None and hand.chat.ask.waiting)
        view = hand.chat.transcript
        await hand.until(lambda: view.max_scroll_y and view.scroll_y == view.max_scroll_y)
        await hand.press("pageup")
        await hand.until(lambda: view.scroll_y < view.max_scroll_y)
        assert hand.chat.ask is not None
        assert hand.chat.ask.has_focus_within
