"""Pictures of a few states at fixed sizes. What moves stands still: cursor, clock, times of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ba_tui.cli.commands import app_parts
from ba_tui.core.events import Event, MessageDone, Notice, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, Usage
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.ports.settings import FoundServer
from ba_tui.core.ports.tools import Job
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import Diff, StateChange, Todo, Todos, ToolResult
from ba_tui.core.start import Start
from ba_tui.faces.tui.app import BaApp
from ba_tui.faces.tui.inspector.paged import PagedView
from ba_tui.faces.tui.screens.permissions import PermissionsScreen
from ba_tui.faces.tui.screens.status import ShellList
from ba_tui.faces.tui.screens.tools import ToolBrowser, ToolPage
from ba_tui.sessions.artifacts import Artifacts
from tests.faces.tui.conftest import Hand
from tests.faces.tui.fakes import World

Scene = Callable[[Hand], Awaitable[None]]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 36), id="120x36")]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def message(role: Any, *blocks: Any, **more: Any) -> Message:
    return Message(role, blocks, id="0" * 32, at=NOON, origin="user" if role == "user" else "assistant", **more)


def story() -> list[Event]:
    """One turn with an edit and todos."""
    at = NOON.timestamp()
    todos = (Todo("1", "Read the data", "completed"), Todo("2", "Correct order 1052", "in_progress", "high"))
    edit = ToolUse("c1", "edit_file", {"path": "sales.csv", "old": "390.00", "new": "39.00"})
    plan = ToolUse("c2", "todo_write", {"items": ["…"]})
    words = "Order **1052** is wrong: one gift box costs 39.00.\n\n- I correct it.\n- Then I add it all up again."
    usage = Usage(1_200, 80, 10_000)
    changed = ToolResult("ok", Diff("sales.csv", "a,390.00\n", "a,39.00\n"), summary="+1 -1")
    planned = ToolResult("ok", Todos(todos), summary="1/2 done", changes=StateChange(todos))
    return [
        TurnStarted(message("user", Text("What is wrong with the sales data?")), at=at),
        MessageDone(message("assistant", Text(words), edit, plan, usage=usage, stop="tool_use"), 0.0123, at=at + 2),
        ToolStarted(edit, "sales.csv", at=at + 2),
        ToolFinished("c1", changed, 0.02, at=at + 3),
        ToolStarted(plan, "", at=at + 3),
        ToolFinished("c2", planned, 0.01, at=at + 3),
        MessageDone(message("assistant", Text("Done: `sales.csv` adds up."), usage=usage), 0.0041, at=at + 5),
        TurnEnded("done", at=at + 5),
    ]


@pytest.fixture
def world() -> World:
    made = World(Path("/home/ann/coffee"))
    made.shelf.model = "anthropic/claude-sonnet-4-5"
    made.shelf.put("aaaa1111", "Sales data", story())
    return made


def pictured(snap_compare: Any, world: World, start: Start, size: tuple[int, int], scene: Scene) -> None:
    app = BaApp(world.connect, start, app_parts)

    async def before(pilot: Pilot[None]) -> None:
        hand = Hand(app, pilot)
        await hand.opened()
        await hand.until(lambda: hand.chat.session.started or hand.chat.main_area.start_page)
        hand.chat.composer.prompt.still = True
        hand.chat.composer.prompt._restart_blink()
        await scene(hand)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=before)


async def told(hand: Hand) -> None:
    await hand.until(lambda: any("adds up" in text for text in hand.said()))
    meter = "↑" if hand.app.size.width >= 100 else "%"
    await hand.until(lambda: meter in hand.status)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_conversation(snap_compare: Any, world: World, size: tuple[int, int], theme: str) -> None:
    pictured(snap_compare, world, Start(resume="aaaa", theme=theme), size, told)


@pytest.mark.parametrize("size", [*SIZES, pytest.param((40, 10), id="40x10")])
def test_completion(snap_compare: Any, world: World, size: tuple[int, int]) -> None:
    world.notices = (Notice("config.yaml line 3: there is no setting “modle”.", "warning", "Did you mean model?"),)

    async def scene(hand: Hand) -> None:
        await hand.press("slash", "m")

    pictured(snap_compare, world, Start(theme="dark"), size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_first_start(snap_compare: Any, world: World, size: tuple[int, int]) -> None:
    world.ways.reason = "There is no key for anthropic/claude-sonnet-4-5."
    model = ModelInfo("openai/qwen3-coder", "openai", "qwen3-coder")
    world.ways.found = (FoundServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", (model,)),)

    async def scene(hand: Hand) -> None:
        await hand.until(lambda: hand.app.screen is not hand.chat)
        await hand.until(lambda: "Ollama" in str(hand.app.screen.query_one("#ways").render_line(3).text))

    pictured(snap_compare, world, Start(theme="dark"), size, scene)


def test_a_paused_queue(snap_compare: Any, world: World) -> None:
    async def scene(hand: Hand) -> None:
        await told(hand)
        hand.chat.turns.waiting.extend(["and then the [next] one", "and the one after it\nwith two lines"])
        hand.chat.turns.paused = True
        hand.chat.show_facts()

    pictured(snap_compare, world, Start(resume="aaaa", theme="dark"), (80, 24), scene)


def test_without_colour(snap_compare: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    pictured(snap_compare, world, Start(resume="aaaa", theme="dark", color=False), (80, 24), told)


@pytest.mark.parametrize("size", [*SIZES, pytest.param((40, 10), id="40x10")])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_tool_browser(snap_compare: Any, world: World, size: tuple[int, int], theme: str) -> None:
    async def scene(hand: Hand) -> None:
        await hand.send("/tools")
        await hand.until(lambda: isinstance(hand.app.screen, ToolBrowser) and hand.app.screen.rows)

    pictured(snap_compare, world, Start(theme=theme), size, scene)


def test_one_tool(snap_compare: Any, world: World) -> None:
    async def scene(hand: Hand) -> None:
        await hand.send("/tools")
        await hand.until(lambda: isinstance(hand.app.screen, ToolBrowser) and hand.app.screen.rows)
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, ToolPage) and hand.app.screen.is_mounted)

    pictured(snap_compare, world, Start(theme="dark"), (80, 24), scene)


def test_background_shells(snap_compare: Any, world: World) -> None:
    at = NOON.timestamp()
    world.job_shelf.jobs = {
        "bg-1": Job("bg-1", "npm run build -- --watch", at, at + 75, "ended", 0, 1_200, None),
        "bg-2": Job("bg-2", "python -m http.server", at, at + 3_700, "killed", 143, 64_000_000, "data/" + "0" * 32),
    }

    async def scene(hand: Hand) -> None:
        await hand.send("/shells")
        await hand.until(lambda: isinstance(hand.app.screen, ShellList) and hand.app.screen.is_mounted)

    pictured(snap_compare, world, Start(theme="dark"), (80, 24), scene)


@pytest.mark.parametrize("size", [*SIZES, pytest.param((40, 10), id="40x10")])
def test_a_whole_result(snap_compare: Any, world: World, size: tuple[int, int], tmp_path: Path) -> None:
    stored = Artifacts(tmp_path / "data")
    text = "".join(f"2026-11-21 12:00:{n % 60:02} request {n} \x1b[32mok\x1b[0m in {n % 97} ms\n" for n in range(9_000))
    made = stored.store(text.replace("request 40 ", "request 40 WRONG "))
    world.brain.inventory = Inventory(results=stored)
    call = ToolUse("c1", "shell", {"command": "cat server.log"})
    at = NOON.timestamp()
    result = ToolResult("the beginning and the end", summary="exit 0", artifact=made.ref)
    world.shelf.put(
        "bbbb1111",
        "Logs",
        [
            TurnStarted(message("user", Text("Read the log.")), at=at),
            MessageDone(message("assistant", call, stop="tool_use"), 0.01, at=at),
            ToolStarted(call, "cat server.log", at=at),
            ToolFinished("c1", result, 0.4, at=at),
            TurnEnded("done", at=at),
        ],
    )

    async def scene(hand: Hand) -> None:
        await hand.until(lambda: hand.chat.transcript.records)
        await hand.press("ctrl+o")
        await hand.until(lambda: hand.app.screen.query(PagedView) and hand.app.screen.query_one(PagedView).line_count)
        await hand.press("ctrl+f", *"wrong", "enter")
        paged = hand.app.screen.query_one(PagedView)
        await hand.until(lambda: paged.finding and not paged.finding.due and paged.finding.found)

    pictured(snap_compare, world, Start(resume="bbbb", theme="dark"), size, scene)


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_permissions(snap_compare: Any, world: World, size: tuple[int, int]) -> None:
    world.brain.permissions.held += [
        RuleLine("shell(git diff:*)", "allow", "built in", 12, "bundled"),
        RuleLine("edit_file(.git/**)", "ask", "built in", 1, "bundled"),
        RuleLine("web_fetch(domain:docs.python.org)", "allow", ".ba/config.yaml:14", 0, "project", waiting=True),
    ]

    async def scene(hand: Hand) -> None:
        await hand.send("/permissions")
        await hand.until(lambda: isinstance(hand.app.screen, PermissionsScreen) and hand.app.screen.rows)
        await hand.press("down")

    pictured(snap_compare, world, Start(theme="light"), size, scene)
