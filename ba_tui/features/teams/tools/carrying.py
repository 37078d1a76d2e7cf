"""Carries out the plan of a team on the engine of plans; members do the steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ba_tui.core.errors import StorageError
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.wording import clipped
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.orchestrator import Carrying, Reading, Working
from ba_tui.sessions.results.artifacts import Artifacts

KEPT = 4_000
"""Characters of a report that its step holds; a longer one is stored, and the step says where."""
Replanning: TypeAlias = Callable[[Plan, str, Branch], Awaitable[Plan]]
"""Makes a plan anew, for a reason: what is completed stays. Raises BaError."""
NO_TOOLS = "The steps of a team are done by members; this one names a tool."


def carrying(results: Artifacts, at_once: int, replanning: Replanning | None = None) -> Carrying:
    """What carries out plans; at most ``at_once`` members that only read work at the same time. ``replanning`` makes a
    plan anew whose subtask failed; None: what needs that subtask is left out."""

    async def carry(plan: Plan, work: Working, reads: Reading, branch: Branch) -> Plan:
        from ba_tui.features.plans.engine.plan_run import Outcome, PlanBounds, PlanMeans, PlanRun  # noqa: PLC0415 - for teams alone

        async def do(step: SubTask, prompt: str, branch: Branch) -> Outcome:
            done = await work(step, prompt)
            if not done.ok:
                # It was handed out several times already.
                return Outcome(error=done.error or "it failed", agent_id=done.agent_id, hopeless=True)
            artifact = done.artifact
            if len(done.report) > KEPT and not artifact:
                artifact = await _stored(done.report, results)
            text = clipped(done.report, KEPT) if artifact else done.report
            return Outcome(text, done.value, artifact, done.agent_id)

        async def call(step: SubTask, args: dict[str, Any], branch: Branch) -> Outcome:
            return Outcome(error=NO_TOOLS, hopeless=True)

        async def anew(plan: Plan, reason: str) -> Plan:
            assert replanning
            return await replanning(plan, reason, branch)

        means = PlanMeans(call, do, reads, anew if replanning else None, gate=branch.unpaused)
        return await PlanRun(plan, branch, means, PlanBounds(at_once)).run()

    return carry


async def _stored(report: str, results: Artifacts) -> str:
    """The reference of a report that was stored; empty when there is no room for it."""
    try:
        return (await asyncio.to_thread(results.store, report, tool="team")).ref
    except StorageError:
        return ""


def whole_reports(results: Artifacts) -> Callable[[SubTask], str]:
    """Gives the whole report of a subtask. Reads files."""

    def whole(step: SubTask) -> str:
        if not step.artifact:
            return step.result
        try:
            return results.path(step.artifact).read_text("utf-8", "replace")
        except (StorageError, OSError):
            return step.result

    return whole
