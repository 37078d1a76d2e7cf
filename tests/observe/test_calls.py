"""Each tool call leaves one line in the log, and what is logged within a call says which one it is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import Event, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.observe.logs import WHERE, CallLog, LogFile, start_logging
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.resources import places

log = logging.getLogger("ba_tui.tests.calls")
TOKEN = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dE2fG4"


@pytest.fixture
def written(ba_home: Path) -> Generator[Path]:
    root, ours = logging.getLogger(), logging.getLogger("ba_tui")
    level = ours.level
    yield start_logging(places(), "info", redact)
    ours.setLevel(level)
    for handler in [each for each in root.handlers if isinstance(each, LogFile)]:
        root.removeHandler(handler)
        handler.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


async def test_calls_that_run_at_once_are_told_apart(written: Path) -> None:
    WHERE.set({})  # An earlier test of this process may have marked the context that all tests begin with.
    put_off: list[Callable[[], None]] = []
    branch = Branch(Turn(CallLog("the-session", put_off.append).apply), Transcript())
    prompt = user("go on")

    async def call(id: str, result: ToolResult) -> None:
        branch.emit(ToolStarted(ToolUse(id, "shell", {}), f"curl -H {TOKEN} {'x' * 900}"))
        await asyncio.sleep(0)
        await asyncio.to_thread(log.warning, "half of %s with %s", id, TOKEN)
        branch.emit(ToolFinished(id, result, 0.25))

    async def turn() -> None:
        branch.emit(TurnStarted(prompt))
        good, bad = ToolResult("abc"), failure("timeout", "too long")
        await asyncio.gather(call("one", good), call("two", bad))
        branch.emit(TurnEnded("error", ErrorInfo("network", "gone")))

    await asyncio.create_task(turn())
    log.warning("outside")
    (late,) = put_off
    late()
    *halves, outside = lines(written)
    assert TOKEN not in written.read_text()
    assert "session" not in outside
    assert {(line["session"], line["round"]) for line in halves} == {("the-session", prompt.id)}
    told = {line["call"]: line for line in halves if line["text"] == "tool call"}
    assert (told["one"]["tool"], told["one"]["outcome"], told["one"]["ms"], told["one"]["characters"]) == (
        "shell",
        "ok",
        250,
        3,
    )
    assert told["two"]["outcome"] == "timeout"
    assert len(told["two"]["about"]) <= 200
    assert [line["call"] for line in halves if line["text"].startswith("half of one")] == ["one"]
    (end,) = [line for line in halves if line["text"] == "turn ended"]
    assert (end["outcome"], end["error"]) == ("error", "network")


def test_a_result_without_a_call_is_nothing_to_tell(written: Path) -> None:
    events: list[Event] = [ToolFinished("lost", ToolResult("x"))]
    for event in events:
        CallLog("s").apply(event)
    assert not written.exists()
