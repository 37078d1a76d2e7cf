"""What the engine of plans costs above the work itself: for each step, in short and in long plans."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from ba_tui.core.teamwork.plans import Plan, SubTask, Task
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.planning.plan_run import Outcome, PlanMeans, PlanRun
from tests.bench.figures import Effort, Figure, median

ROUNDS = 5


def made(count: int) -> Plan:
    """Chains of four steps each."""
    steps = (SubTask(f"s{n}", f"do {n}", dependencies=(f"s{n - 1}",) if n % 4 else ()) for n in range(count))
    return Plan("plan", Task("task", "the goal"), tuple(steps))


def each(count: int) -> float:
    """Milliseconds for each of ``count`` steps that do nothing."""

    async def work(step: SubTask, prompt: str, branch: Branch) -> Outcome:
        return Outcome("done")

    async def call(step: SubTask, args: dict[str, Any], branch: Branch) -> Outcome:
        return Outcome("done")

    async def run() -> float:
        means = PlanMeans(call, work, lambda step: True)
        start = time.perf_counter()
        ended = await PlanRun(made(count), Branch(Turn(), Transcript()), means).run()
        assert ended.state == "completed"
        return (time.perf_counter() - start) / count * 1000

    return median([asyncio.run(run()) for _ in range(ROUNDS)])


def overhead(effort: Effort) -> Iterator[Figure]:
    few, many = each(20), each(1_000)
    yield Figure("a step of a plan of 20, above its work", few, "ms", 1.0)
    yield Figure("a step of a plan of 1,000, above its work", many, "ms", 1.0, f"of 20: {few:.2f} ms")
