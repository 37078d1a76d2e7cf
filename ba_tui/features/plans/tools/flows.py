"""Workflows as tools, which a model calls like any other tool.

The steps pass the guards one by one, so each effect is judged at its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.ports.tools import Reader
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.features.plans.engine.flow_checks import check, name_conflict
from ba_tui.features.plans.engine.flow_run import Runtime, run_flow
from ba_tui.features.plans.engine.workflows import Flow, FlowBranch, effect_of
from ba_tui.settings.document import Problem

Tools = Callable[[], Mapping[str, Tool]]


def flow_tools(
    flows: Mapping[str, Flow], tools: Mapping[str, Tool], now: Tools, results: Reader | None = None
) -> tuple[list[Tool], list[Problem]]:
    """Return a tool for each valid workflow that works with ``tools``, and the problems of the others.

    ``now`` returns the guarded tools when a workflow runs, including these; ``results`` stores long results.
    """
    good = {name: flow for name, flow in flows.items() if not name_conflict(flow, tools)}
    problems = [problem for flow in flows.values() for problem in name_conflict(flow, tools)]
    while wrong := {name: found for name, flow in good.items() if (found := check(flow, tools, good))}:
        # A workflow that uses a broken one is broken too, so the rest is checked again.
        problems += [problem for found in wrong.values() for problem in found]
        good = {name: flow for name, flow in good.items() if name not in wrong}
    runtime = Runtime(now, good, results)
    return [_flow_tool(flow, tools, runtime) for flow in good.values()], problems


def _flow_tool(flow: Flow, tools: Mapping[str, Tool], runtime: Runtime) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await run_flow(flow, args, call, runtime)
        # The output as data is for an enclosing workflow; the text says the same within its limits.
        return result if isinstance(call.branch, FlowBranch) else replace(result, meta=_without_output(result.meta))

    text = {"type": "string"}
    texts = [name for name, part in flow.takes.items() if isinstance(part, dict) and {**part, **text} == part]
    return Tool(
        flow.name,
        flow.description,
        flow.parameters,
        run,
        effect=effect_of(flow, tools, runtime.flows),
        timeout=None,
        facts=ToolFacts("workflows", target=texts[0] if texts else "", version=flow.version),
        idempotent=False,
    )


def _without_output(meta: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = meta.get("flow", {})
    return {**meta, "flow": {name: value for name, value in facts.items() if name != "output"}}
