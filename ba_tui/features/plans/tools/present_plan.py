"""The tool present_plan: the end of plan mode. What it asks and what follows stands in planning/plan_mode.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.features.plans.engine.plan_mode import NAME, PlanMode
from ba_tui.tools.definitions import Definition


def present_plan_tool(definition: Definition, plan_mode: PlanMode) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await plan_mode.present(args["plan"], call)

    facts = ToolFacts("tasks", target_of=_title, subagents=False)
    return Tool(NAME, definition.description, definition.input_schema, run, timeout=None, facts=facts, idempotent=False)


def _title(args: Mapping[str, Any]) -> str:
    """The first line of the plan, without the marks of a heading."""
    lines = (line.strip().strip("#*").strip() for line in str(args.get("plan") or "").splitlines())
    return next((line for line in lines if line), "")
