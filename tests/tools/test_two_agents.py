"""Two agents of one process at the same time: bodies, listed tools and counted calls are each one's own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from ba_tui.core.agent import Agent, run_child
from ba_tui.core.events import Asked, Event, ToolFinished
from ba_tui.core.provider import ModelInfo
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.tools.definitions import Definition
from ba_tui.tools.guards.repeats import WARNING, repeats
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.visible import Search, ToolArrivals, Visible
from tests.loopback.server import ModelServer
from tests.script import Script, collect, conversation, says

SAME = Step(calls=(ScriptedCall("echo", {"x": 1}),))
INFO = ModelInfo("openai/loopback", "openai", "loopback")


async def test_two_agents_at_once_share_nothing_of_their_conversations(definitions: Mapping[str, Definition]) -> None:
    both = asyncio.Barrier(2)

    async def echo(args: Mapping[str, Any], call: Call) -> ToolResult:
        await both.wait()
        return ToolResult(f"for {call.branch.name}")

    registry = Registry(repeats(()), ToolFiles())
    registry.add(Tool("echo", "Echoes.", {"type": "object", "properties": {"x": {}}}, echo), origin="workflow")
    registry.add(Tool("late", "Joins late.", {"type": "object", "properties": {}}, echo))
    with ModelServer([SAME] * 4, last=Step(say="Done.")) as one, ModelServer([SAME] * 4, last=Step(say="Done.")) as two:
        agents = {name: built(server, registry, definitions) for name, server in (("one", one), ("two", two))}

        async def delegate(args: Mapping[str, Any], call: Call) -> ToolResult:
            below = call.branch.fork(args["name"], agents[args["name"]].ceiling)
            return ToolResult((await run_child(agents[args["name"]], below, args["task"])).message.text)

        tasks = ({"name": "one", "task": "Use @late."}, {"name": "two", "task": "Go."})
        script = Script(says("", *(("delegate", task) for task in tasks)), says("End."))
        turn = conversation(script, Tool("delegate", "", {"type": "object"}, delegate, timeout=None)).say("go")
        asked: list[str] = []

        def answer(event: Event) -> None:
            if isinstance(event, Asked):
                asked.append(event.agent)
                turn.answer(event.ask_id, Reply("once"))

        events = await collect(turn, answer)
        for agent in agents.values():
            await agent.provider.close()
    assert sorted(asked) == ["main/one-1", "main/two-1"], "each is asked about once, for its own third call"
    for name, server, tools in (("one", one, ["echo", "late"]), ("two", two, ["echo"])):
        sent = [request.json for request in server.requests]
        assert len(sent) == 5
        assert [tool["function"]["name"] for tool in sent[-1]["tools"]] == tools
        for earlier, later in itertools.pairwise(sent):
            assert later["messages"][: len(earlier["messages"])] == earlier["messages"], "each request extends the last"
        results = [event.result.text for event in events if isinstance(event, ToolFinished) if name in event.agent]
        assert [text.startswith(f"for main/{name}-1") for text in results] == [True] * 4
        assert [WARNING in text for text in results] == [False, True, True, False]


def built(server: ModelServer, registry: Registry, definitions: Mapping[str, Definition]) -> Agent:
    visible = Visible(registry, Search(definitions["tool_search"]))
    provider = OpenAIProvider(INFO, base_url=server.openai_url)
    return Agent(provider, visible, "You are a child.", (ToolArrivals(visible),))
