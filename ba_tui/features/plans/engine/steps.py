"""The steps of a session's plan: calls of its guarded tools, and agents below the main one."""

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
    RateLimited,
    ServerOverloaded,
    StorageError,
    UsageError,
)
from ba_tui.core.messages import ToolUse
from ba_tui.core.plan_folds import NAMED
from ba_tui.core.ports.agents import Delegation, Order
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import SubTask
from ba_tui.core.text.json_text import read_json
from ba_tui.core.text.wording import clipped, one_line, sentence
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.features.plans.engine.filling import REVISE, revision
from ba_tui.features.plans.engine.plan_run import StepOutcome, held
from ba_tui.features.plans.engine.workflows import message, stored_text
from ba_tui.plotting.plan_edits import REFERENCE
from ba_tui.sessions.artifacts import Artifacts

ROLE = "general"
"""The default agent of a step."""
ACCEPTED = "Where a failure is what was asked for, end with a command that accepts it, such as `command || true`."
LONGEST = 4_000
"""Maximum characters of a result that a plan stores; a longer one is stored as an artifact."""
DATA = 20_000
"""Maximum characters of a result as JSON that a plan stores."""
PASSING = frozenset({RateLimited.kind, ServerOverloaded.kind, ConnectionLost.kind})
"""Agent failures that say nothing about the step."""


class StepWork:
    """``tools``: the session's guarded tools by name. ``call_id``: the call that runs the plan, empty if the user
    started it.
    """

    def __init__(
        self,
        tools: Callable[[], Mapping[str, Tool]],
        delegation: Delegation,
        results: Artifacts,
        call_id: str = "",
    ) -> None:
        self._tools = tools
        self._delegation = delegation
        self._results = results
        self._call_id = call_id

    def reads(self, step: SubTask) -> bool:
        """Return whether the step is read-only and may run in parallel. Reads agent files."""
        if step.tool_name:
            tool = self._tools().get(step.tool_name)
            return tool is None or tool.reach(step.tool_args) is Effect.READ
        try:
            return self._delegation.effect(step.role or ROLE) is Effect.READ
        except UsageError:
            return True

    async def call(self, step: SubTask, args: dict[str, Any], branch: Branch) -> StepOutcome:
        """Make the call of a step that names a tool."""
        tools = self._tools()
        tool = tools.get(step.tool_name)
        if tool and "output_level" in tool.input_schema.get("properties", {}):
            # Later steps need the complete result, even if a model would see only a part.
            args = {"output_level": "full", **args}
        id = f"{self._call_id or 'plan'}.{step.id}.{step.attempts}"
        use = ToolUse(id, step.tool_name, args)
        result = await run_call(callable_tool(use, tool, list(tools.values())), use, Call(id, branch))
        return _failed(result, tool) if result.failed else await self.returned(result)

    async def returned(self, result: ToolResult) -> StepOutcome:
        """Return the outcome of a call that succeeded. Raises StorageError."""
        return await self._outcome(*_data(result), result.artifact or "")

    async def answered(self, said: str, agent_id: str, note: str = "") -> StepOutcome:
        """Return the outcome of an agent that finished. Raises StorageError."""
        told = f"{said}\n\n{note}" if note else said
        return replace(await self._outcome(told, _parsed(said), ""), agent_id=agent_id)

    async def work(self, step: SubTask, prompt: str, branch: Branch) -> StepOutcome:
        """Have an agent do the step."""
        order = Order(
            step.role or ROLE,
            prompt,
            label(step),
            max_loops=step.max_loops,
            call_id=self._call_id,
            expected_output=_expected(step),
        )
        ended = await self._delegation.run(order, branch)
        said = ended.message.text.strip()
        if ended.status == "done" and ended.broken and not revision(said):
            # Exit codes are evidence; the agent's description of them is not.
            why = f"The last command failed: {ended.broken}. {ACCEPTED}"
            return StepOutcome(error=f"{why} It said last: {one_line(said, 300)}", agent_id=ended.agent_id)
        if ended.status == "done" or revision(said):
            return await self.answered(said, ended.agent_id, ended.note)
        kind = ended.error.kind if ended.error else ""
        why = sentence(ended.error.with_hint if ended.error else f"The agent ended: {ended.status}")
        last = f" It said last: {one_line(said, 300)}" if said else ""
        return StepOutcome(
            error=f"{why}{last}",
            agent_id=ended.agent_id,
            passing=kind in PASSING,
            # A user who cancels an agent wants no replacement, and a retry does not fix an exceeded budget.
            blocked=ended.status == "cancelled" or kind == BudgetUsed.kind,
        )

    def whole(self, step: SubTask) -> Any:
        """Return the complete result of a step; the part in the plan if the rest has expired. May read files."""
        if not step.artifact or step.value is not None:
            return held(step)
        try:
            text = stored_text(self._results, step.artifact)
        except StorageError:
            return step.result
        found = _parsed(text)
        return text if found is None else found

    async def _outcome(self, text: str, value: Any, artifact: str) -> StepOutcome:
        """Return a result within its limits; a longer one is stored. Raises StorageError."""
        if len(text) > LONGEST:
            artifact = artifact or (await asyncio.to_thread(self._results.store, text)).ref
            text = clipped(text, LONGEST)
        if value is not None and len(json.dumps(value, ensure_ascii=False, default=str)) > DATA:
            value = None
        return StepOutcome(text, value, artifact)


def label(step: SubTask) -> str:
    """Return the name of the step's agent in lists."""
    return one_line(step.description, NAMED)


def _expected(step: SubTask) -> str:
    """Return the criterion for the answer of the step's agent."""
    if not step.expected_output:
        return ""
    expected = REFERENCE.sub(lambda found: f"the result of {found[1]}", step.expected_output)
    return f"{sentence(expected)} An answer that begins with {REVISE} is complete, too."


def _failed(result: ToolResult, tool: Tool | None) -> StepOutcome:
    """Return the outcome of a failed call. A call that may have changed something is not retried automatically."""
    kind = result.error.kind if result.error else ""
    why = sentence(message(result))
    repeatable = tool is not None and (tool.effect is Effect.READ if tool.idempotent is None else tool.idempotent)
    return StepOutcome(
        error=why,
        hopeless=kind in PERMANENT or not repeatable,
        passing=kind in RETRYABLE and repeatable,
        blocked=kind == "permission_denied",
    )


def _data(result: ToolResult) -> tuple[str, Any]:
    """Return the text of a result, and its value if it is data: a workflow's output, or JSON."""
    flow = result.meta.get("flow")
    if isinstance(flow, dict) and "output" in flow:
        return result.text, cast("Any", flow["output"])
    return result.text, _parsed(result.text) if result.kind == "json" else None


def _parsed(text: str) -> Any:
    """Return ``text`` as a JSON object or list; None for anything else."""
    return read_json(text) if text.startswith(("{", "[")) else None
