"""The guard that keeps the files before the first change: what is told meanwhile, and that nobody has to wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ba_tui.core.events import Checkpointed, ToolProgress
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.sessions.checkpoints.git import GitWatch, Stopped
from ba_tui.tools.guards.checkpoint import Checkpointing


def changing(take: Callable[[int, GitWatch], str]) -> tuple[Tool, Call, Turn]:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("changed")

    keeping = Checkpointing(take, lambda turn, writes: None, lambda: 0)
    turn = Turn()
    tool = Tool("edit", "", {}, run, Effect.WRITE)
    return keeping.guard(tool), Call("c1", Branch(turn, Transcript())), turn


async def heard(turn: Turn) -> Any:
    return await anext(aiter(turn))


async def test_it_is_told_how_far_it_is_and_then_the_call_runs() -> None:
    told = threading.Event()

    def take(number: int, watch: GitWatch) -> str:
        watch.done, watch.total = 1_200, 9_000
        told.wait(5)
        return "kept"

    tool, call, turn = changing(take)
    running = asyncio.ensure_future(tool.run({}, call))
    progress = await heard(turn)
    assert isinstance(progress, ToolProgress)
    assert progress.text == "Saving the files before the first change: 1,200 of 9,000\n"
    told.set()
    assert (await running).text == "changed"
    while isinstance(event := await heard(turn), ToolProgress):
        pass
    assert isinstance(event, Checkpointed)
    assert call.tail == ""


async def test_cancelling_does_not_wait_for_it() -> None:
    begun, ended, watches = threading.Event(), threading.Event(), list[GitWatch]()

    def take(number: int, watch: GitWatch) -> str:
        watches.append(watch)
        begun.set()
        ended.wait(5)
        watch.check()
        return "kept"

    tool, call, _ = changing(take)
    running = asyncio.ensure_future(tool.run({}, call))
    await asyncio.to_thread(begun.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(Stopped):
        watches[0].check()
    ended.set()
