"""A stage for workflows: a few plain tools that note what was asked of them, a branch, and a person who answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from ba_tui.core.events import Asked, Event, ToolProgress
from ba_tui.core.ports.tools import Reader
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.plans.engine.flow_checks import check
from ba_tui.features.plans.engine.flow_files import flow_in
from ba_tui.features.plans.engine.flow_run import Runtime, run_flow
from ba_tui.features.plans.engine.workflows import Flow
from ba_tui.settings.document import Problem, parse_document

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ANYTHING = {"type": "object", "properties": {"value": {}}, "required": ["value"]}


def parse_flow(path: Path, text: str) -> tuple[Flow | None, tuple[Problem, ...]]:
    """The flow in ``text``, as if it stood at ``path``."""
    return flow_in(parse_document(path, text))


class Stage:
    """``log`` holds every call, in order, as ``tool:text``."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.events: list[Event] = []
        self.flows: dict[str, Flow] = {}
        self.results: Reader | None = None
        self.failures: dict[str, int] = {}
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.at_once = 0
        self.most_at_once = 0
        self.answer: Callable[[Question], Reply] = lambda question: Reply("once")
        self.turn = Turn(self._hear)
        self.branch = Branch(self.turn, Transcript())
        self.tools = {tool.name: tool for tool in self._tools()}

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Asked):
            asyncio.get_running_loop().call_soon(self.turn.answer, event.ask_id, self.answer(event.question))

    @property
    def asked(self) -> list[Question]:
        return [event.question for event in self.events if isinstance(event, Asked)]

    @property
    def reported(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ToolProgress))

    def _tools(self) -> list[Tool]:
        async def say(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.log.append(f"say:{args['text']}")
            if self.failures.get(args["text"], 0):
                self.failures[args["text"]] -= 1
                return failure("execution_error", f"{args['text']} went wrong")
            return ToolResult(str(args["text"]), summary="said")

        async def give(args: Mapping[str, Any], call: Call) -> ToolResult:
            import json

            self.log.append(f"give:{args['value']}")
            return ToolResult(json.dumps(args["value"]), kind="json")

        async def look(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.at_once -= 1
            self.log.append(f"look:{args['text']}")
            return ToolResult(str(args["text"]))

        async def hang(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.entered.set()
            await self.gate.wait()
            return ToolResult("over")

        async def deny(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.log.append("deny")
            return failure("permission_denied", "not here")

        async def ask(args: Mapping[str, Any], call: Call) -> ToolResult:
            reply = await call.ask(Question("permission", "Allow ask?", call_id=call.id, tool="ask", reason="It must."))
            return ToolResult(reply.choice)

        write = Tool("say", "", TEXT, say, effect=Effect.WRITE)
        return [
            write,
            Tool("give", "", ANYTHING, give),
            Tool("look", "", TEXT, look),
            replace(write, name="hang", run=hang),
            replace(write, name="deny", run=deny),
            replace(write, name="ask", run=ask),
        ]

    def flow(self, text: str, name: str = "one") -> Flow:
        """The workflow with these steps (and other keys); it must be in order as far as its file goes."""
        head = f"name: {name}\ndescription: Does it.\n"
        flow, problems = parse_flow(Path(f"{name}.yaml"), head + dedent(text))
        assert not problems, list(map(str, problems))
        assert flow
        self.flows[flow.name] = flow
        return flow

    def wrong(self, text: str) -> list[str]:
        """What the checks say, a line each."""
        return [str(problem) for problem in check(self.flow(text), self.tools, self.flows)]

    async def run(self, text: str, **args: Any) -> ToolResult:
        return await self.perform(self.flow(text), **args)

    async def perform(self, flow: Flow, **args: Any) -> ToolResult:
        return await run_flow(flow, args, Call("call-1", self.branch), self.runtime)

    @property
    def runtime(self) -> Runtime:
        return Runtime(lambda: self.tools, self.flows, self.results)
