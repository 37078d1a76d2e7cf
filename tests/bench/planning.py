"""What plans cost beside the model and the work: making one, and each step of the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ba_tui.core.messages import Message, ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import Plan, PlanTask, SubTask
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.plans.engine.plan_run import PlanMeans, PlanRun, StepOutcome
from ba_tui.features.plans.engine.planner import NoPlan, Planner
from tests.bench.figures import Effort, Figure, median

ROUNDS = 5
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


async def _unused(args: Any, call: Call) -> ToolResult:
    return ToolResult("")


READ = Tool("read_file", "Reads a file.", SCHEMA, _unused)


def planning(effort: Effort) -> Iterator[Figure]:
    asyncio.run(_planned(3))
    yield Figure(
        "a plan of 20 steps, without the model", median([asyncio.run(_planned(20)) for _ in range(20)]), "ms", 5.0
    )
    yield Figure("refusing a plan of 1,000 steps", asyncio.run(_planned(1_000)), "ms", 50.0)


async def _planned(steps: int) -> float:
    """Milliseconds."""
    plan = {"goal": "Sum them", "subtasks": [_step(number) for number in range(steps)]}

    async def ask(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        return Message("assistant", (ToolUse("p", "submit_plan", plan),), stop="tool_use")

    began = time.perf_counter()
    try:
        draft = await Planner(ask).create_plan("Sum them", (READ,))
        assert len(draft.plan.execution_order) == steps
    except NoPlan:
        assert steps > 200
    return 1e3 * (time.perf_counter() - began)


def _step(number: int) -> dict[str, Any]:
    """Every third one is a call; each waits for the three before it."""
    before = [f"s{other}" for other in range(max(0, number - 3), number)]
    call = {"tool_name": "read_file", "tool_args": {"path": f"{number}.csv"}} if number % 3 == 0 else {}
    return {
        "id": f"s{number}",
        "description": f"Step {number}",
        "expected_output": "It",
        "dependencies": before,
        **call,
    }


def _chains(count: int) -> Plan:
    """Chains of four steps each."""
    steps = (SubTask(f"s{n}", f"do {n}", dependencies=(f"s{n - 1}",) if n % 4 else ()) for n in range(count))
    return Plan("plan", PlanTask("task", "the goal"), tuple(steps))


def _each(count: int) -> float:
    """Milliseconds for each of ``count`` steps that do nothing."""

    async def work(step: SubTask, prompt: str, branch: Branch) -> StepOutcome:
        return StepOutcome("done")

    async def call(step: SubTask, args: dict[str, Any], branch: Branch) -> StepOutcome:
        return StepOutcome("done")

    async def run() -> float:
        means = PlanMeans(call, work, lambda step: True)
        start = time.perf_counter()
        ended = await PlanRun(_chains(count), Branch(Turn(), Transcript()), means).run()
        assert ended.state == "completed"
        return (time.perf_counter() - start) / count * 1000

    return median([asyncio.run(run()) for _ in range(ROUNDS)])


def overhead(effort: Effort) -> Iterator[Figure]:
    few, many = _each(20), _each(1_000)
    yield Figure("a step of a plan of 20, above its work", few, "ms", 1.0)
    yield Figure("a step of a plan of 1,000, above its work", many, "ms", 1.0, f"of 20: {few:.2f} ms")
