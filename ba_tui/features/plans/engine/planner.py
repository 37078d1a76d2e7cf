"""Makes plans: asks a model for one, checks it, returns it once with all faults, and repairs the rest.

The model is asked through a callable; ``plan_run`` executes plans.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.messages import Message, Text, ToolOutput, user
from ba_tui.core.teamwork import Plan, PlanTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.drafting.mending import mended
from ba_tui.features.plans.engine.drafting.prompts import CUT, PROSE, again, errors, submit_tool, system, wanted
from ba_tui.features.plans.engine.drafting.reading import (
    MOST,
    QUESTIONED,
    PlanResources,
    WrittenPlan,
    complaints,
    submitted,
    tidied,
    written,
)

Ask: TypeAlias = Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]
"""Asks a model: the system prompt, the messages, the tools that it may call. Raises ProviderError."""
_NAMED = regex(r"[\"“”`]([^\"“”`\n]{2,80})[\"“”`]|(?<![\w./-])([\w-]+(?:[./][\w-]+)*\.[A-Za-z]\w{0,7})(?![\w/])")
"""Quoted texts, and names of files."""


class NoPlan(BaError):
    """The model gave no usable plan."""

    kind = "no_plan"


@frozen
class PlanDraft:
    """A plan that can be executed, and notes for the user, one sentence each.

    ``question``: the request is ambiguous; ``plan`` is for the likeliest reading. If a user can answer, the question is
    asked once, and the plan is made again with the answer as context.
    """

    plan: Plan
    notes: tuple[str, ...] = ()
    question: str = ""


class Planner:
    """Makes plans with a model. ``roles``: who may do a step, by name with the purpose; without roles a general agent
    does it.
    """

    def __init__(self, ask: Ask, roles: Mapping[str, str] | None = None) -> None:
        self._ask = ask
        self._roles = roles or {}

    async def create_plan(
        self, goal: str, tools: Sequence[Tool], context: str = "", *, may_ask: bool = True
    ) -> PlanDraft:
        """Return a plan for ``goal``, which is the user's own text. ``context``: facts for every step.

        ``may_ask``: a user can answer a question; otherwise the plan's task lists the assumptions.

        Raises:
            NoPlan: the model gave no plan twice, or one with too many steps. ProviderError: it can't be asked.
        """
        means = PlanResources({tool.name: tool for tool in tools}, self._roles)
        found = await self._drafted(wanted(goal, context, means), means, may_ask=may_ask)
        task = PlanTask(uuid.uuid4().hex, goal, found.goal or goal, context, found.assumptions)
        return _draft(Plan(uuid.uuid4().hex, task), found, means)

    async def replan(self, plan: Plan, reason: str, tools: Sequence[Tool]) -> PlanDraft:
        """Replace the unfinished steps of ``plan``, because of ``reason``. Completed steps are kept.

        Raises as ``create_plan`` does.
        """
        done = tuple(step for step in plan.subtasks if step.status == "completed")
        means = PlanResources({tool.name: tool for tool in tools}, self._roles, tuple(step.id for step in done))
        found = await self._drafted(again(plan, reason, means), means, may_ask=False)
        assumptions = tuple(dict.fromkeys([*plan.task.assumptions, *found.assumptions]))
        task = replace(plan.task, assumptions=assumptions)
        return _draft(replace(plan, task=task, subtasks=done, replans=plan.replans + 1), found, means)

    async def _drafted(self, prompt: str, means: PlanResources, *, may_ask: bool) -> WrittenPlan:
        """Return a tidied plan without faults, or the model's second answer after the faults were sent back."""
        told, tools = system(may_ask=may_ask), (submit_tool(may_ask=may_ask),)
        messages: list[Message] = [user(prompt)]
        sent_back = prose = False
        while True:
            reply = await self._ask(told, tuple(messages), tools)
            plan = submitted(reply)
            if plan is None:
                if prose:
                    message = "The model answered no plan, twice."
                    raise NoPlan(
                        message, "Choose a larger model (/model reasoning PROVIDER/MODEL), or ask without a plan."
                    )
                prose = True
                messages += _answered(reply, CUT if reply.stop == "max_tokens" else PROSE)
                continue
            found = tidied(written(plan), means)
            if not may_ask:
                found = replace(found, question="")
            wrong = complaints(found, means)
            if wrong and not sent_back:
                sent_back = True
                messages += _answered(reply, errors(wrong))
                continue
            if found.size > MOST:
                message = f"The plan has {found.size:,} steps; at most {MOST} are allowed."
                raise NoPlan(message, "Ask for a part of it, or describe the goal more broadly.")
            return replace(found, wrong=tuple(wrong))


def _answered(reply: Message, text: str) -> tuple[Message, Message]:
    """Return the messages that answer ``reply``: as the result of its call, if it made one."""
    if not reply.calls:
        said = reply if reply.blocks else replace(reply, blocks=(Text("(no answer)"),))
        return said, user(text)
    return reply, Message(
        "user", tuple(ToolOutput(call.id, text, is_error=True) for call in reply.calls), origin="tool"
    )


def _draft(plan: Plan, found: WrittenPlan, means: PlanResources) -> PlanDraft:
    """Return ``plan`` with the steps of ``found`` appended. Raises NoPlan if there is no step."""
    steps, notes = mended(found.subtasks, means, sound=not found.wrong)
    if not steps and not found.question:
        raise NoPlan("The model gave a plan without a step.", "Say more exactly what is to be done.")
    made = replace(plan, subtasks=(*plan.subtasks, *steps))
    if len(steps) > QUESTIONED:
        notes.append(f"The plan has {count(len(steps), 'step')}. More than {QUESTIONED} are hard to follow.")
    notes += _uncovered(made, found) if steps else ()
    return PlanDraft(made, tuple(notes), found.question)


def _uncovered(plan: Plan, found: WrittenPlan) -> list[str]:
    """Return the wishes of the request that no step covers, and names in the request that the plan does not contain."""
    ids = {step.id for step in plan.subtasks}
    known = {*ids, *(step.id for step in found.subtasks)}
    notes = [f"No step does this: {wanted}." for wanted, by in found.covers if wanted and not known.intersection(by)]
    texts = [f"{step.description} {step.expected_output} {step.tool_args}" for step in plan.subtasks]
    said = " ".join([*texts, *plan.task.assumptions]).casefold()
    named = dict.fromkeys(quoted or file for quoted, file in _NAMED.findall(plan.task.original_query))
    missing = [name for name in named if name.casefold() not in said]
    return [*notes, *(f"The request names {name}, and no step does." for name in missing[:3])]
