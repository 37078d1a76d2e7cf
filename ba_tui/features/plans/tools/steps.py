"""How a session does the steps of a plan: calls of its tools within their guards, and agents below the main one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.calls import callable_tool, run_call
from ba_tui.core.effects import Effect
from ba_tui.core.errors import (
    PERMANENT,
    RETRYABLE,
    BudgetUsed,
    ConnectionLost,
    Overloaded,
    RateLimited,
    StorageError,
    UsageError,
)
from ba_tui.core.events.plan_course import NAMED
from ba_tui.core.messages import ToolUse
from ba_tui.core.ports.delegation import Delegation, Order
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork.plans import SubTask
from ba_tui.core.text.wording import clipped, one_line, sentence
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.features.plans.engine.filling import REVISE, revision
from ba_tui.features.plans.engine.flow_results import message
from ba_tui.features.plans.engine.plan_run import Outcome, held
from ba_tui.plotting.plans.checking import REFERENCE
from ba_tui.sessions.results.artifacts import Artifacts

ROLE = "general"
"""The agent of a step that names none."""
ACCEPTED = "Where a failure is what was asked for, end with a command that accepts it, such as `command || true`."
LONGEST = 4_000
"""Characters of a result that a plan holds; all of a longer one is stored."""
DATA = 20_000
"""Characters of a result as JSON that a plan holds."""
MAX_BYTES = 10_000_000
PASSING = frozenset({RateLimited.kind, Overloaded.kind, ConnectionLost.kind})
"""Failures of an agent that say nothing about its step."""


class StepWork:
    """``tools``: those of the session within their guards, by name. ``call_id``: the call that runs the plan, empty
    when the person does. ``deadline`` of one agent, in seconds."""

    def __init__(
        self,
        tools: Callable[[], Mapping[str, Tool]],
        delegation: Delegation,
        results: Artifacts,
        call_id: str = "",
        deadline: float | None = None,
    ) -> None:
        self._tools = tools
        self._delegation = delegation
        self._results = results
        self._call_id = call_id
        self._deadline = deadline

    def reads(self, step: SubTask) -> bool:
        """Whether the step only reads, so that it may run beside others. Reads files of agents."""
        if step.tool_name:
            tool = self._tools().get(step.tool_name)
            return tool is None or tool.reach(step.tool_args) is Effect.READ
        try:
            return self._delegation.effect(step.role or ROLE) is Effect.READ
        except UsageError:
            return True

    async def call(self, step: SubTask, args: dict[str, Any], branch: Branch) -> Outcome:
        """Make the call of a step that names a tool."""
        tools = self._tools()
        tool = tools.get(step.tool_name)
        if tool and "output_level" in tool.input_schema.get("properties", {}):
            # What later steps get must be all of it, however much of it a model would be shown.
            args = {"output_level": "full", **args}
        id = f"{self._call_id or 'plan'}.{step.id}.{step.attempts}"
        use = ToolUse(id, step.tool_name, args)
        result = await run_call(callable_tool(use, tool, list(tools.values())), use, Call(id, branch))
        return _failed(result, tool) if result.failed else await self.returned(result)

    async def returned(self, result: ToolResult) -> Outcome:
        """Return the outcome of a call that succeeded. Raises StorageError."""
        return await self._outcome(*_data(result), result.artifact or "")

    async def answered(self, said: str, agent_id: str, note: str = "") -> Outcome:
        """Return the outcome of an agent that finished. Raises StorageError."""
        told = f"{said}\n\n{note}" if note else said
        return replace(await self._outcome(told, _parsed(said), ""), agent_id=agent_id)

    async def work(self, step: SubTask, prompt: str, branch: Branch) -> Outcome:
        """Let an agent do the step."""
        order = Order(
            step.role or ROLE,
            prompt,
            label(step),
            deadline=self._deadline,
            max_loops=step.max_loops,
            call_id=self._call_id,
            expected_output=_expected(step),
        )
        ended = await self._delegation.run(order, branch)
        said = ended.message.text.strip()
        if ended.status == "done" and ended.broken and not revision(said):
            # Exit statuses are evidence; what the agent says of them is not.
            why = f"The last command failed: {ended.broken}. {ACCEPTED}"
            return Outcome(error=f"{why} It said last: {one_line(said, 300)}", agent_id=ended.agent_id)
        if ended.status == "done" or revision(said):
            return await self.answered(said, ended.agent_id, ended.note)
        kind = ended.error.kind if ended.error else ""
        why = sentence(ended.error.with_hint if ended.error else f"The agent ended: {ended.status}")
        last = f" It said last: {one_line(said, 300)}" if said else ""
        return Outcome(
            error=f"{why}{last}",
            agent_id=ended.agent_id,
            passing=kind in PASSING,
            # Whoever cancels an agent wants no other one in its place; and nobody exceeds a budget by another try.
            blocked=ended.status == "cancelled" or kind == BudgetUsed.kind,
        )

    def whole(self, step: SubTask) -> Any:
        """All of a step's result; what the plan holds of it when the rest has expired. May read files."""
        if not step.artifact or step.value is not None:
            return held(step)
        try:
            text = _read(self._results, step.artifact)
        except StorageError:
            return step.result
        found = _parsed(text)
        return text if found is None else found

    async def _outcome(self, text: str, value: Any, artifact: str) -> Outcome:
        """A result within its bounds; what is longer is stored. Raises StorageError."""
        if len(text) > LONGEST:
            artifact = artifact or (await asyncio.to_thread(self._results.store, text)).ref
            text = clipped(text, LONGEST)
        if value is not None and len(json.dumps(value, ensure_ascii=False, default=str)) > DATA:
            value = None
        return Outcome(text, value, artifact)


def label(step: SubTask) -> str:
    """Return what lists call the agent of a step."""
    return one_line(step.description, NAMED)


def _expected(step: SubTask) -> str:
    """What the answer of the step's agent is judged by."""
    if not step.expected_output:
        return ""
    expected = REFERENCE.sub(lambda found: f"the result of {found[1]}", step.expected_output)
    return f"{sentence(expected)} An answer that begins with {REVISE} is complete, too."


def _failed(result: ToolResult, tool: Tool | None) -> Outcome:
    """A call that failed. One that may have changed something is not made again by itself."""
    kind = result.error.kind if result.error else ""
    why = sentence(message(result))
    repeatable = tool is not None and (tool.effect is Effect.READ if tool.idempotent is None else tool.idempotent)
    return Outcome(
        error=why,
        hopeless=kind in PERMANENT or not repeatable,
        passing=kind in RETRYABLE and repeatable,
        blocked=kind == "permission_denied",
    )


def _data(result: ToolResult) -> tuple[str, Any]:
    """The text of a result, and its value where it is data: a workflow's output, or JSON."""
    flow = result.meta.get("flow")
    if isinstance(flow, dict) and "output" in flow:
        return result.text, cast("Any", flow["output"])
    return result.text, _parsed(result.text) if result.kind == "json" else None


def _parsed(text: str) -> Any:
    """The JSON object or list that ``text`` is; None for anything else."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read(results: Artifacts, ref: str) -> str:
    """All of a stored result, up to ``MAX_BYTES``. Raises StorageError."""
    parts: list[str] = []
    at = 0
    while at < MAX_BYTES:
        page = results.read(ref, at, 1_000_000)
        parts.append(page.text)
        if page.last or page.upto <= at:
            break
        at = page.upto
    return "".join(parts)
