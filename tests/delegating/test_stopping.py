"""An agent that is stopped does no more work, whatever was said about its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.events import TextDelta, TurnEnded
from ba_tui.core.provider import ModelRequest, ReplyChunk
from tests.delegating.house import AgentHouse, delegates
from tests.script import collect, says

EXPLORE = {"description": "look", "agent_type": "explore", "prompt": "Look."}


@pytest.mark.parametrize("background", [False, True])
async def test_an_agent_that_is_stopped_does_no_more_work(tmp_path: Path, ba_home: Path, background: bool) -> None:
    """Its file stops growing, and so does that of the agent below it; the agent above goes on."""
    house = AgentHouse(tmp_path)
    ticks: dict[str, int] = {}
    began = asyncio.Event()

    def working(name: str) -> Any:
        async def work(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
            while True:
                ticks[name] = ticks.get(name, 0) + 1
                began.set()
                await asyncio.sleep(0)
                yield TextDelta("on ")

        return work

    house.plays(general=[[delegates(EXPLORE)]], explore=[[working("below")]])
    house.main.steps = [
        delegates({"description": "a task", "agent_type": "general", "prompt": "Go.", "background": background}),
        says("Done."),
    ]
    turn = house.talk.say("go")
    following = asyncio.create_task(collect(turn))
    await began.wait()
    assert house.agents.cancel("main/general-1")
    async with asyncio.timeout(20):
        while house.agents.works("main/general-1") or house.agents.works("main/general-1/explore-1"):  # noqa: ASYNC110
            await asyncio.sleep(0)
    done = dict(ticks)
    for _ in range(20):
        await asyncio.sleep(0)
    assert ticks == done
    assert not house.agents.cancel("main/general-1")
    events = await following
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
