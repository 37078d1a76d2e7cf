"""The tool browser, the background shells and the marks of tool rows, as people use them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from textual.widgets import Input, Static

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.screens.status import ShellList
from ba_tui.faces.tui.screens.tools import ToolBrowser, ToolPage
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import keys, lines, sheet_text, shown


async def browse(hand: Hand) -> None:
    await hand.send("/tools")
    await shown(hand, ToolBrowser)
    await hand.until(lambda: "read_file" in lines(hand))


async def test_every_tool_says_how_it_is(world: World) -> None:
    async with running(world, size=(110, 40)) as hand:
        await browse(hand)
        text = lines(hand)
        for words in ("always on", "on demand", "broken", "requirement missing", "24 calls, 1 failed"):
            assert words in text
        assert "! failed too often: paused for 1 min 0 s · slow: it timed out repeatedly" in text
        assert "! .ba/tools/stocks.py:3: No module named 'yfin'" in text
        assert (
            str(hand.app.screen.query_one(".title", Static).content) == "6 tools, 2 off or on demand, 2 can't be used"
        )
        timer = hand.app.screen.query_one(Input)._blink_timer
        assert timer
        assert not timer._active.is_set(), "idle means idle"
        await hand.press(*"cells")
        assert "notebook" in lines(hand)
        assert "read_file" not in lines(hand)


async def test_a_tool_is_switched_for_the_session(world: World) -> None:
    async with running(world) as hand:
        await browse(hand)
        await hand.press(*"notebook", "ctrl+s")
        await hand.until(lambda: "notebook is on for this session" in keys(hand))
        assert world.tool_shelf.switched == [("notebook", True)]
        assert "on" in lines(hand)
        await hand.press(*["backspace"] * 8, *"read_file", "ctrl+s")
        await hand.until(lambda: "read_file can't be switched. Always on." in keys(hand))


async def test_one_tool_in_full(world: World) -> None:
    async with running(world) as hand:
        await browse(hand)
        await hand.press(*"read_file", "enter")
        await shown(hand, ToolPage)
        text = sheet_text(hand.app.screen.query_one(RowView).rows)
        assert "Read a [text] file" in text
        assert "24 calls, 96 % succeeded, 2 retries, 3 from the cache" in text
        assert "42ms on average, 95 of 100 under 0.2s" in text
        assert "limit:" in text
        await hand.press("y")
        await hand.until(lambda: '"required"' in hand.app.clipboard)
        await hand.press("escape")
        await shown(hand, ToolBrowser)
        await hand.press(*["backspace"] * 9, *"weather", "enter")
        await shown(hand, ToolPage)
        await hand.press("s")
        await hand.until(lambda: "weather is on" in keys(hand))
        await hand.press("s")
        await hand.until(lambda: "pinned by a skill. End the skill first." in keys(hand))


async def test_a_session_without_any_says_so(world: World) -> None:
    world.brain.inventory = Inventory()
    async with running(world) as hand:
        for command in ("/tools", "/shells", "/background"):
            before = len(hand.said())
            await hand.send(command)
            await hand.until(lambda before=before: len(hand.said()) > before)
        assert hand.app.screen is hand.chat


async def test_shells_are_counted_listed_shown_and_ended(world: World) -> None:
    jobs = world.job_shelf
    async with running(world, size=(100, 30)) as hand:
        jobs.begin("bg-1", "npm run dev", time.time() - 3_700, "ready [on] \x1b[32mport 3000\x1b[0m\n")
        await hand.until(lambda: "1 shell" in hand.status)
        await hand.send("/shells")
        await shown(hand, ShellList)
        await hand.until(lambda: "npm run dev" in lines(hand))
        assert "running" in lines(hand)
        assert "1:01:4" in lines(hand)
        await hand.press("enter")
        await shown(hand, InspectorScreen)
        await hand.until(
            lambda: "ready [on] port 3000" in sheet_text(hand.app.screen.query_one("#sheet", RowView).rows)
        )
        await hand.press("y")
        await hand.until(lambda: "ready [on]" in hand.app.clipboard)
        await hand.until(lambda: any("Copied" in toast.message for toast in hand.app._notifications))
        await hand.press("escape")
        await shown(hand, ShellList)
        await hand.press("x")
        assert "x again to stop bg-1" in keys(hand)
        assert jobs.jobs["bg-1"].state == "running"
        await hand.press("x")
        await hand.until(lambda: "bg-1 was ended." in keys(hand))
        assert "killed" in lines(hand)
        await hand.press("escape")
        await hand.until(lambda: "shell" not in hand.status)


async def test_ctrl_b_moves_the_running_command_or_the_cursor(world: World) -> None:
    gate = asyncio.Event()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        await gate.wait()
        return ToolResult("done")

    world.brain.tools = (Tool("shell", "Run.", {"type": "object"}, run),)
    world.script.turns = [[answer("", ToolUse("c1", "shell", {"command": "make"}))], ["Done."]]
    async with running(world) as hand:
        await hand.type("ab")
        await hand.press("ctrl+b")
        assert hand.chat.composer.prompt.cursor_location == (0, 1)
        await hand.press("ctrl+u", "ctrl+k")
        await hand.send("go")
        await hand.until(
            lambda: any(getattr(record, "state", "") == "running" for record in hand.chat.transcript.records)
        )
        await hand.press("ctrl+b")
        assert world.job_shelf.detached == ["c1"]
        assert "Moved to the background" in hand.hint
        world.job_shelf.waits = False
        await hand.type("ab")
        await hand.press("ctrl+b")
        assert hand.chat.composer.prompt.cursor_location == (0, 1)
        gate.set()
        await hand.idle()


SPECIAL = [
    (ToolResult("a", summary="6 lines", meta={"cached_s": 120}), "from cache, 2m00s old, 6 lines"),
    (ToolResult("a", summary="200 OK", meta={"retries": 2}), "2 retries, 200 OK"),
    (
        ToolResult("a", is_error=True, error=ErrorInfo("timeout", "Took too long.", retries=1), meta={"slow": True}),
        "1 retry, slow tool, timed out",
    ),
    (
        ToolResult("ab", is_error=True, error=ErrorInfo("timeout", "Took too long."), meta={"partial": True}),
        "partial output, timed out",
    ),
    (ToolResult("x" * 2_000), "2.0 KB"),
]


async def test_rows_say_in_words_what_was_special(world: World) -> None:
    calls = [ToolUse(f"c{n}", "web_fetch", {"url": f"https://a{n}.example"}) for n in range(len(SPECIAL))]
    told: list[Event] = [TurnStarted(user("go")), MessageDone(answer("", *calls))]
    for call, (result, _) in zip(calls, SPECIAL, strict=True):
        told += [ToolStarted(call, call.input["url"]), ToolFinished(call.id, result, 0.2)]
    world.shelf.put("aaaa1111", "Before", [*told, TurnEnded("done")])
    async with running(world, size=(100, 48)) as hand:
        await hand.send("/resume Before")
        await hand.until(lambda: f"a{len(SPECIAL) - 1}.example" in seen(hand))
        lines = seen(hand).split("\n")
        for call, (_, words) in zip(calls, SPECIAL, strict=True):
            (row,) = [line for line in lines if call.input["url"] in line]
            assert words in row, lines


async def test_a_long_target_leaves_room_for_the_outcome(world: World) -> None:
    call = ToolUse("c1", "shell", {"command": "echo long " * 40})
    story = [TurnStarted(user("go")), MessageDone(answer("", call)), ToolStarted(call, "echo long " * 40)]
    world.shelf.put("aaaa1111", "Before", [*story, ToolFinished("c1", ToolResult("a", summary="exit 0"), 1.4)])
    async with running(world) as hand:
        await hand.send("/resume Before")
        await hand.until(lambda: "echo long" in seen(hand))
        assert "exit 0    1.4s" in seen(hand)


def seen(hand: Hand) -> str:
    view = hand.chat.transcript
    return "\n".join(view.render_line(y).text for y in range(view.size.height))
