"""What is done ahead of the first prompt is not done twice."""

from __future__ import annotations

import asyncio
import threading

from ba_tui.core.agent import Agent
from tests.script import Mind, Script, collect, says, thinking


class Slow(Mind):
    """Making an agent takes until ``gate`` is open."""

    def __init__(self, provider: Script) -> None:
        super().__init__(provider)
        self.begun, self.gate, self.made = threading.Event(), threading.Event(), 0

    def agent(self, model: str) -> Agent:
        self.made += 1
        self.begun.set()
        self.gate.wait(10)
        return super().agent(model)


async def test_a_prompt_that_comes_while_the_agent_is_made_waits_for_it() -> None:
    mind = Slow(Script(says("Hi.")))
    talk = thinking(mind)
    ahead = asyncio.ensure_future(talk.warm())
    await asyncio.to_thread(mind.begun.wait)
    answer = asyncio.ensure_future(collect(talk.say("hello")))
    for _ in range(20):
        await asyncio.sleep(0)
    mind.gate.set()
    await asyncio.gather(ahead, answer)
    assert mind.made == 1
    await talk.close()
