"""The tool plan: a model has its goal planned and carried out within one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError
from ba_tui.core.messages import clean_text
from ba_tui.core.results import PlanGraph, ToolResult
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.tools.answers import account, outline, results
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

NAME = "plan"


class _Inbox(Branch):
    """Reads what waits to join a branch: while a call runs, nothing joins."""

    @staticmethod
    def words(branch: Branch) -> Sequence[str]:
        """What the person said meanwhile."""
        return [message.said.strip() for message in branch._inbox if message.origin == "steer"]


@frozen
class Waiting:
    """The call of the tool; ``words``: what the person said since it began."""

    call: Call

    def words(self) -> Sequence[str]:
        return _Inbox.words(self.call.branch)


Planned: TypeAlias = Callable[[str, str, Waiting], Awaitable[Plan]]


def plan_tool(definition: Definition, planned: Planned) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            plan = await planned(clean_text(args["goal"]), clean_text(args.get("reason", "")), Waiting(call))
        except BaError as error:
            raise Failed("execution_error", str(error), error.hint) from None
        return result_of(plan)

    facts = ToolFacts(
        "tasks", "goal", subagents=False, below=lambda args: Effect.WRITE, tags=("steps", "goal", "subtasks", "dag")
    )
    return Tool(NAME, definition.description, definition.input_schema, run, timeout=None, facts=facts, idempotent=False)


def result_of(plan: Plan) -> ToolResult:
    """What the model reads of a plan that has ended, or that nobody agreed to."""
    graph = PlanGraph(plan)
    if plan.state == "rejected":
        text = "The person rejected the plan. Nothing was carried out. Ask what they want instead, or end your turn."
        return ToolResult(text, graph, summary="rejected")
    if plan.state == "proposed":
        text = f"Nobody can agree to the plan now. Give it as your final answer:\n{outline(plan)}"
        return ToolResult(text, graph, summary="nobody could be asked")
    done = sum(step.status == "completed" for step in plan.subtasks)
    end = "Write the final answer from these results, and say what is missing."
    taken = [f"Taken for granted: {each}" for each in plan.task.assumptions]
    text = "\n\n".join([*taken, results(plan), end])
    return ToolResult(
        text, graph, summary=f"{done} of {len(plan.subtasks)} steps", meta={"plan": plan.id, "account": account(plan)}
    )
