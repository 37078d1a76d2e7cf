"""What a plan of a model costs beside the model: reading, checking, mending and ordering its steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ba_tui.core.messages import Message, ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.planning.planner import NoPlan, Planner
from tests.bench.figures import Effort, Figure, median

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
